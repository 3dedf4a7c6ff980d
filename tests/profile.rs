//! `catena profile` as a user meets it: the table's shape, the file, and what becomes of a file that is there.

use std::path::Path;
use std::process::{Command, Output};

fn catena(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).output().expect("catena starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Figures are this machine's: each becomes `#`, and what only sets columns apart one space.
fn shape(page: &str) -> String {
    let mut shape = String::new();
    for line in page.lines() {
        let words = line.split_whitespace().map(|word| {
            let bare = word.trim_start_matches('+').trim_end_matches([',', '%']);
            if bare.parse::<f64>().is_ok() && bare.contains('.') { "#".to_owned() } else { word.to_owned() }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        shape += line.trim_matches('-').trim();
        shape.push('\n');
    }
    shape
}

#[test]
#[cfg_attr(debug_assertions, ignore = "it measures, for minutes where nothing is optimised: make test-optimised")]
fn the_table_has_its_shape_and_the_file_its_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    let file_name = file.display().to_string();
    let output = catena(&["profile", "ACL", "--quick", "--output", &file_name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 of ") && text(&output.stderr).contains("ACL, size 1,000"));
    let printed = text(&output.stdout);
    let shape = shape(&printed);
    let lines: Vec<&str> = shape.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
    let starts = [
        "CPU cycles a packet on ",
        "function size setting runs mean min median p95 max max/mean",
        "ACL 1,000 rules long-lived flows 3 # # # # # #",
        "ACL 1,000 rules short-lived flows 3 # # # # # #",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "`{line}` should begin with `{start}` in\n{printed}");
    }
    for part in ["function cycles a packet off by worst run", "ACL # # #", "the framework: in and out ", "kept in "] {
        assert!(lines.iter().any(|line| line.starts_with(part)), "`{part}` is not in\n{printed}");
    }

    let first = std::fs::read_to_string(&file).expect("the file is written");
    let json: serde_json::Value = serde_json::from_str(&first).expect("it is JSON");
    assert_eq!(json["version"], 1);
    assert!(json["machine"]["clock_hz"].as_f64().is_some_and(|hz| hz > 1e8));
    assert!(json["overheads"]["visit"].as_f64().is_some_and(|cycles| cycles > 0.0));
    let server = &json["functions"]["ACL"]["server"];
    assert_eq!(server["unit"], "rules");
    assert!(server["runs"].as_array().is_some_and(|runs| runs.len() >= 2));
    assert!(server["worst_factor"].as_f64().is_some_and(|factor| factor >= 1.0));

    // Another function joins it, and JSON is the file's own text.
    let output = catena(&["profile", "IPv4Fwd", "--quick", "--json", "--output", &file_name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let second = std::fs::read_to_string(&file).expect("the file is there");
    assert_eq!(text(&output.stdout), second);
    let json: serde_json::Value = serde_json::from_str(&second).expect("it is JSON");
    assert_eq!(json["functions"]["ACL"]["server"], *server, "what was measured before is kept");
    assert!(json["functions"]["IPv4Fwd"]["server"]["base"].is_number());
}

#[test]
fn what_is_no_profile_is_said_and_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    let file_name = file.display().to_string();
    for (content, said) in [
        ("{\n  \"version\": 99\n}\n", "profile.json:2: version 99 of the format, expected 1"),
        ("{\n  \"version\": 1,\n  oops\n}\n", "profile.json:3: "),
        ("{\"version\": 1}\n", "`machine` is missing"),
    ] {
        std::fs::write(&file, content).expect("a file");
        let output = catena(&["profile", "ACL", "--quick", "--output", &file_name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
        assert_eq!(std::fs::read_to_string(&file).expect("the file is there"), content);
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json").display().to_string();
    for (args, said) in [
        (&["acl"][..], "did you mean `ACL`?"),
        (&["Native"], "says nothing of how it is measured"),
        (&["ACL", "--quick", "--core", "9999"], "cannot run on core 9999"),
    ] {
        let output = catena(&[&["profile", "--output", &file], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(said), "{args:?}: {}", text(&output.stderr));
    }
    let output = catena(&["profile", "ACL", "--quick", "--output", "none/profile.json"]);
    assert!(text(&output.stderr).starts_with("catena: none/profile.json: cannot be written: there is no folder none"));
    let output = catena(&["profile", "--sizes", "0", "--output", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!Path::new(&file).exists());
}
