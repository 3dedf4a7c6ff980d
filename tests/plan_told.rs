//! What `catena plan` and those who read its files tell of cards, promises, files and machines.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A machine of two cores and one card of 40 Gbit/s.
const MACHINE: &str = "name = \"bench\"\n[[server]]\nname = \"localhost\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
     clock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";
/// Two chains without functions, which together are promised more than a card carries.
const BARE: &str = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\n\
     chain a for w { promise 30Gbps.. in -> out }\nchain b for v { promise 30Gbps.. in -> out }\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// What `catena` does in `folder` with these words, its profiles kept there too.
fn catena(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(line.split_whitespace()).current_dir(folder).env("XDG_CACHE_HOME", folder).stdin(Stdio::null());
    command.output().expect("catena starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_chain_without_functions_loads_the_card_of_a_machine_without_a_switch() {
    let folder = folder(&[("bare.catena", BARE), ("machine.toml", MACHINE)]);
    for strategy in ["exact", "lemur", "brute"] {
        let line = format!("plan bare.catena --rack machine.toml --profile none --strategy {strategy}");
        let output = catena(folder.path(), &line);
        let text = out(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("These promises conflict: a, b."), "{text}");
        assert!(text.contains("20.00 Gbit/s more on the network card"), "{text}");
    }
    std::fs::write(folder.path().join("bare.catena"), BARE.replace("30Gbps", "10Gbps")).expect("a file");
    let text = out(&catena(folder.path(), "plan bare.catena --rack machine.toml --profile none"));
    assert!(text.contains("localhost.eth0  40.00  40.00  Gbit/s each way"), "{text}");
    // Behind a switch they never come to a card.
    let switch = "[switch]\nkind = \"plain\"\nports = 4\nport = \"100Gbps\"\n".to_owned();
    std::fs::write(folder.path().join("rack.toml"), MACHINE.to_owned() + &switch).expect("a file");
    let text = out(&catena(folder.path(), "plan bare.catena --rack rack.toml --profile none"));
    assert!(text.contains("The chains carry 200.00 Gbit/s"), "{text}");
}

#[test]
fn where_nothing_is_promised_no_rate_is_shown() {
    let folder = folder(&[("free.catena", "chain c { in -> Monitor(max_flows = 1000) -> out }\n")]);
    let output = catena(folder.path(), "show free.catena --stage plan");
    let text = out(&output);
    assert!(output.status.success(), "{text}{}", err(&output));
    assert!(text.starts_with("The file promises nothing."), "{text}");
    assert!(!text.contains("0.00"), "{text}");
    let row: Vec<&str> = text.lines().find(|line| line.starts_with("c ")).expect("a row").split_whitespace().collect();
    assert_eq!(row[..4], ["c", "-", "-", "-"], "{text}");
}

#[test]
fn a_share_of_nothing_is_told() {
    let chain = |name: &str, class: &str, promise: &str| {
        format!("chain {name} for {class} {{ {promise} in -> Monitor(max_flows = 1000) -> out }}\n")
    };
    let classes = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\nclass u = \"udp port 82\"\n";
    let file = |relations: &str| {
        let chains = chain("a", "w", "") + &chain("b", "v", "") + &chain("c", "u", "promise 19Gbps..");
        classes.to_owned() + &chains + relations
    };
    let folder =
        folder(&[("share.catena", &file("share a : b = 70 : 30\npriority c > a\n")), ("machine.toml", MACHINE)]);
    let plan = || out(&catena(folder.path(), "plan share.catena --rack machine.toml --profile none"));
    let told = "`share a : b = 70 : 30` has nothing to divide: its chains carry nothing beyond what they are promised.";
    assert!(plan().contains(told), "{}", plan());
    std::fs::write(
        folder.path().join("share.catena"),
        file("share a : b = 70 : 30\n").replace("19Gbps..", "19Gbps..20Gbps"),
    )
    .expect("a file");
    assert!(!plan().contains("nothing to divide"), "{}", plan());
}
