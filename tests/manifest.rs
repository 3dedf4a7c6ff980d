//! From what the analysis of a function in C wrote to plans and runs that keep to it. The functions and their
//! manifests are those that the analysis' own tests hold to what it writes: `analysis/tests/native`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with a function in C, built, its manifest and a chain with it; `None`, with a message, where there is no C
/// compiler.
fn folder(name: &str) -> Option<tempfile::TempDir> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let native = root.join("analysis/tests/native");
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("function.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-I"])
        .arg(root.join("include"))
        .arg("-o")
        .args([&library, &native.join(name).with_extension("c")])
        .output();
    let Ok(built) = built else {
        catena_testing::skip("there is no `cc`", "install gcc");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let manifest = native.join(name).with_extension("manifest");
    std::fs::copy(manifest, folder.path().join("function.manifest")).expect("the analysis' tests have one");
    let chain = "class all = \"ip\"\nchain c for all {\n    promise 5Gbps..\n    \
                 nf = Native(lib = \"function.so\", state = file(\"function.manifest\"))\n    in -> nf -> out\n}\n";
    std::fs::write(folder.path().join("c.catena"), chain).expect("a chain");
    std::fs::write(folder.path().join("profile.json"), PROFILE).expect("a profile");
    std::fs::write(folder.path().join("rack.toml"), RACK).expect("a rack");
    Some(folder)
}

/// A core of 2.5 GHz carries 2,500 cycles and packets of 512 bytes at about 4 Gbit/s.
const PROFILE: &str = r#"{
    "version": 1,
    "machine": { "processor": "test", "clock_hz": 2.5e9, "cores": 2, "date": "2026-01-01T00:00:00Z" },
    "overheads": { "visit": 0.0, "spread": 50.0, "queue": 20.0, "classify": 10.0 },
    "functions": {
        "Native": {
            "server": { "unit": "", "base": 2500.0, "per_unit": 0.0, "line_error": 0.0, "worst_factor": 1.0 }
        }
    }
}"#;

const RACK: &str = "name = \"rack\"\npacket_bytes = 512\n\n[[server]]\nname = \"server\"\ncores = 4\n\
                    steering_cores = 0\nclock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";

fn catena(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(folder).output().expect("catena starts")
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const PLAN: [&str; 6] = ["plan", "c.catena", "--rack", "rack.toml", "--profile", "profile.json"];
const RUN: [&str; 5] = ["run", "c.catena", "--in", "gen:flows=50,count=2000", "--workers"];

#[test]
fn state_by_source_is_split_by_source() {
    let Some(folder) = folder("talkers") else { return };
    let shown = catena(folder.path(), &["show", "c.catena", "--stage", "host"]);
    assert!(both(&shown).contains("several instances by source address"), "{}", both(&shown));
    let planned = catena(folder.path(), &PLAN);
    assert!(planned.status.success(), "two cores carry it: {}", both(&planned));
    let run = catena(folder.path(), &[&RUN[..], &["2"]].concat());
    assert!(run.status.success(), "{}", both(&run));
}

#[test]
fn state_of_all_packets_has_one_instance() {
    let Some(folder) = folder("total") else { return };
    let shown = catena(folder.path(), &["show", "c.catena", "--stage", "host"]);
    assert!(both(&shown).contains("one instance only, as `memory allocated in init"), "{}", both(&shown));
    let planned = catena(folder.path(), &PLAN);
    assert!(!planned.status.success() && both(&planned).contains("must stay on one core"), "{}", both(&planned));
    let run = catena(folder.path(), &[&RUN[..], &["2"]].concat());
    assert!(!run.status.success() && both(&run).contains("is one for all packets"), "{}", both(&run));
    let alone = catena(folder.path(), &[&RUN[..], &["1"]].concat());
    assert!(alone.status.success(), "{}", both(&alone));
}

#[test]
fn a_manifest_corrected_by_hand_counts() {
    let Some(folder) = folder("total") else { return };
    let path: PathBuf = folder.path().join("function.manifest");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("\"scope\": []", "\"scope\": [\"src_ip\"]")).expect("it can be written");
    let planned = catena(folder.path(), &PLAN);
    assert!(planned.status.success(), "{}", both(&planned));
}

#[test]
fn a_wrong_manifest_is_refused_with_its_place() {
    let Some(folder) = folder("talkers") else { return };
    std::fs::write(folder.path().join("function.manifest"), "{\n  \"manifest\": 1,\n").expect("it can be written");
    for args in [&["check", "c.catena"][..], &PLAN] {
        let refused = catena(folder.path(), args);
        assert!(!refused.status.success(), "{args:?}");
        assert!(both(&refused).contains("function.manifest:3"), "{args:?}: {}", both(&refused));
    }
}
