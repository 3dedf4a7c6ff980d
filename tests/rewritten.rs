//! Files that commands rewrite: they are whole at any time, and what a command reads is not among them.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CHAIN: &str = "chain   c{in->  ACL(rules=[\"permit any\"]) -> out}\n";
const RESULT: &str = "{\"bench\":\"b\",\"case\":\"one\",\"unit\":\"cycles/packet\",\"value\":1.5,\"spread\":0.1}\n";
const PAGE: &str = "# Page\n<!-- b -->\nold\n<!-- /b -->\nend\n";

/// A folder with something for every command to rewrite.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        let rack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/racks/this-machine.toml");
        place.write("c.catena", CHAIN);
        place.write("rack.toml", &fs::read_to_string(rack).expect("the example"));
        place.write("page.md", PAGE);
        place.write("results.jsonl", RESULT);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect("it can be read")
    }

    /// Run `catena` by a shell, which does `before` first.
    fn shell(&self, before: &str, command: &str) -> Output {
        let script = format!("{before}\nexec \"$CATENA\" {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(self.folder.path()).env("CATENA", env!("CARGO_BIN_EXE_catena"));
        shell.output().expect("sh starts")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every command that rewrites a file, and the file.
const REWRITING: [(&str, &str); 6] = [
    ("fmt c.catena", "c.catena"),
    ("plan c.catena --rack rack.toml --profile none -o plan.json", "plan.json"),
    ("plan c.catena --rack rack.toml --profile none --draw plan.svg", "plan.svg"),
    ("bench report results.jsonl --into page.md", "page.md"),
    ("bench report results.jsonl --plot plot.svg", "plot.svg"),
    ("functions --book book", "book/README.md"),
];

/// A place where every file of [`REWRITING`] is there.
fn full() -> Place {
    let place = Place::new();
    fs::create_dir(place.at("book")).expect("a folder");
    ["plan.json", "plan.svg", "plot.svg", "book/README.md"].iter().for_each(|name| place.write(name, "old\n"));
    place
}

#[test]
fn a_file_that_cannot_be_written_to_the_end_stays_as_it_was() {
    for (command, name) in REWRITING {
        let place = full();
        let (before, names) = (place.read(name), place.names());
        // Not a byte more fits, as on a full disk.
        let output = place.shell("trap '' XFSZ; ulimit -f 0", command);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", err(&output));
        assert!(err(&output).contains(&format!("{name}: cannot be written")), "{command}: {}", err(&output));
        assert_eq!(place.read(name), before, "{command}");
        assert_eq!(place.names(), names, "{command}: nothing is left over");
    }
}

#[test]
fn a_file_is_replaced_in_one_step_and_keeps_its_permissions() {
    for (command, name) in REWRITING {
        let place = full();
        let before = place.read(name);
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(0o640)).expect("they can be set");
        // Whoever has opened it reads what it was, to its end.
        let mut opened = File::open(place.at(name)).expect("it is there");
        let output = place.shell("", command);
        assert!(output.status.success(), "{command}: {}", err(&output));
        let mut seen = String::new();
        opened.read_to_string(&mut seen).expect("it can be read");
        assert_eq!(seen, before, "{command}");
        assert_ne!(place.read(name), before, "{command}");
        assert_eq!(fs::metadata(place.at(name)).expect("it is there").mode() & 0o7777, 0o640, "{command}");
        assert!(place.names().iter().all(|name| !name.starts_with('.')), "{:?}", place.names());
    }
}

#[test]
fn links_lead_to_the_file_that_is_rewritten() {
    let place = Place::new();
    fs::create_dir(place.at("folder")).expect("a folder");
    fs::rename(place.at("c.catena"), place.at("folder/real.catena")).expect("it can be moved");
    symlink("folder/real.catena", place.at("c.catena")).expect("a link");
    symlink("folder/new.json", place.at("plan.json")).expect("a link");
    let output = place.shell("", "fmt c.catena");
    assert!(output.status.success(), "{}", err(&output));
    assert_ne!(place.read("folder/real.catena"), CHAIN);
    let output = place.shell("", "plan c.catena --rack rack.toml --profile none --seed 1 -o plan.json");
    assert!(output.status.success(), "{}", err(&output));
    assert!(place.read("folder/new.json").starts_with('{'));
    for link in ["c.catena", "plan.json"] {
        assert!(fs::symlink_metadata(place.at(link)).expect("it is there").is_symlink(), "{link}");
    }
}

#[test]
fn what_is_no_file_is_written_directly() {
    let place = Place::new();
    let plain = place.shell("", "plan c.catena --rack rack.toml --profile none --seed 1 -o plan.json");
    let (plan, table) = (place.read("plan.json"), String::from_utf8_lossy(&plain.stdout).into_owned());
    // By any of its names standard output is the plan's alone, be it a pipe or a file.
    for name in ["/dev/stdout", "-"] {
        let line = format!("plan c.catena --rack rack.toml --profile none --seed 1 -o {name}");
        let output = place.shell("", &line);
        assert_eq!(String::from_utf8_lossy(&output.stdout), plan, "{}", err(&output));
        assert_eq!((err(&output), place.at("-").exists()), (table.clone(), false));
        let output = place.shell("exec > both", &line);
        assert_eq!((place.read("both"), err(&output)), (plan.clone(), table.clone()), "{name}");
    }
    let fifo = "mkfifo pipe; cat pipe > through &";
    assert!(place.shell(fifo, "plan c.catena --rack rack.toml --profile none -o pipe").status.success());
    let output = place.shell("", "plan c.catena --rack rack.toml --profile none -o /dev/full");
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("/dev/full: cannot be written"), "{}", err(&output));
    assert!(place.shell("", "plan c.catena --rack rack.toml --profile none -o /dev/null").status.success());
}

#[test]
fn a_plan_is_not_written_over_what_it_is_made_of() {
    let place = Place::new();
    fs::hard_link(place.at("rack.toml"), place.at("hard")).expect("a hard link");
    symlink("rack.toml", place.at("soft")).expect("a link");
    symlink("none", place.at("loose")).expect("a link");
    let before = (place.read("c.catena"), place.read("rack.toml"), place.names());
    for output in ["rack.toml", "./rack.toml", "hard", "soft", "c.catena"] {
        for option in ["-o", "--draw"] {
            let refused = place.shell("", &format!("plan c.catena --rack rack.toml --profile none {option} {output}"));
            assert_eq!(refused.status.code(), Some(1), "{option} {output}: {}", err(&refused));
            assert!(err(&refused).contains("is read"), "{option} {output}: {}", err(&refused));
        }
    }
    fs::write(place.at("deny.acl"), "deny any\n").expect("a file of rules");
    fs::write(place.at("nf.so"), "no library yet").expect("a file");
    let functions = "in -> ACL(rules = file(\"deny.acl\")) -> Monitor(export = \"nf.so\") -> out";
    fs::write(place.at("files.catena"), format!("chain c {{ {functions} }}\n")).expect("a chain file");
    for output in ["deny.acl", "./nf.so"] {
        let refused = place.shell("", &format!("plan files.catena --rack rack.toml --profile none -o {output}"));
        assert_eq!(refused.status.code(), Some(1), "{output}: {}", err(&refused));
        assert!(err(&refused).contains("is read"), "{output}: {}", err(&refused));
    }
    assert_eq!((place.read("deny.acl"), place.read("nf.so")), ("deny any\n".into(), "no library yet".into()));
    for name in ["deny.acl", "nf.so", "files.catena"] {
        fs::remove_file(place.at(name)).expect("it is there");
    }
    let refused = place.shell("", "plan - --rack rack.toml --profile none -o c.catena < c.catena");
    assert!(err(&refused).contains("is read"), "{}", err(&refused));
    for (plan, picture) in [("x", "./x"), ("none", "loose")] {
        let refused =
            place.shell("", &format!("plan c.catena --rack rack.toml --profile none -o {plan} --draw {picture}"));
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).contains("the same file"), "{}", err(&refused));
    }
    let refused = place.shell("", "bench report results.jsonl --plot results.jsonl");
    assert!(err(&refused).contains("is read"), "{}", err(&refused));
    let refused = place.shell("", "bench report results.jsonl --into page.md --plot ./page.md");
    assert!(err(&refused).contains("the same file"), "{}", err(&refused));
    assert_eq!(place.read("page.md"), PAGE);
    assert_eq!((place.read("c.catena"), place.read("rack.toml"), place.names()), before);
}
