//! The example in C: built by its own Makefile, checked, and run in a chain.

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
