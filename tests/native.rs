//! The example in C: built by its own Makefile, checked, and run in a chain. And how often `init` is called.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_in_c_joins_a_chain() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let make = Command::new("make").args(["-C", "examples/native"]).current_dir(&repository).output();
    let built = make.expect("make is there: the project is built with it");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // A flood of new connections from few sources: most are more than the guard lets in.
    let traffic = "gen:flows=200,proto=tcp,tcp=client,dist=fixed(4),src=10.0.0.0/30,rate=100kpps,count=50000";
    let output = Command::new(env!("CARGO_BIN_EXE_catena"))
        .args(["run", "examples/native/native.catena", "--in", traffic, "--json"])
        .current_dir(&repository)
        .output()
        .expect("catena starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let modules = report["modules"].as_array().expect("a report has modules");
    let guard = modules.iter().find(|m| m["function"] == "Native").expect("the chain has a function in C");
    let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    assert_eq!(count(&guard["packets"]), 50_000);
    let dropped: u64 = guard["drops"].as_object().into_iter().flatten().map(|(_, n)| count(n)).sum();
    assert!((1_000..50_000).contains(&dropped), "{guard}");
    let [input, output] = ["input", "output"].map(|side| count(&report[side]["packets"]));
    assert_eq!(input, output + count(&report["dropped"]));
}

/// Make the library of a function in C, of this name, in a folder.
pub fn compile_c(folder: &Path, name: &str, source: &str) {
    let [from, to] = ["c", "so"].map(|end| folder.join(format!("{name}.{end}")));
    std::fs::write(&from, source).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"]).arg(include).arg("-o").args([to, from]);
    let built = cc.output().expect("`cc` is there: the project is built with it");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A function that counts in a file how often it is made, as no function should.
const CAREFREE: &str = r#"#include <catena/nf.h>
static int init(struct catena_context *cx, void **self)
{
    FILE *file = fopen("made", "a");
    (void)cx;
    *self = NULL;
    return file == NULL || fputs("x", file) < 0 || fclose(file) != 0 ? -1 : 0;
}
static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self, (void)cx, (void)packets, (void)count;
}
CATENA_NF(catena_nf, .name = "carefree", .summary = "passes", .init = init, .process = process);
"#;

#[test]
fn init_is_called_as_often_as_the_manual_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::write(at("c.catena"), "chain c { in -> Native(lib = \"./carefree.so\") -> out }\n").expect("a chain file");
    compile_c(folder.path(), "carefree", CAREFREE);
    let rack = root.join("examples/racks/lemur.toml").display().to_string();
    for (args, times) in [
        (&["check", "c.catena"][..], 1),
        (&["show", "c.catena", "--stage", "host"], 0),
        (&["plan", "c.catena", "--rack", &rack, "--profile", "none"], 0),
        (&["run", "c.catena", "--in", "none.pcap"], 1),
        (&["run", "c.catena", "--in", "gen:count=10"], 2),
        (&["run", "c.catena", "--in", "gen:count=10", "--workers", "2"], 3),
    ] {
        _ = std::fs::remove_file(at("made"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(args).current_dir(folder.path()).output().expect("catena starts");
        assert_eq!(std::fs::read(at("made")).map_or(0, |made| made.len()), times, "{args:?}");
    }
}
