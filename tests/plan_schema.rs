//! The book's JSON schema of plans is that of the command, and plans are what it says.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn catena(folder: &Path, args: &[&str]) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_catena")).args(args).current_dir(folder).output().expect("catena starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_book_has_the_schema() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plan.schema.json");
    let text = std::fs::read_to_string(&book).expect("the book's schema");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let is = catena(Path::new("."), &["plan", "--schema"]);
    assert!(written == is, "write it again: catena plan --schema > docs/plan.schema.json");
}

/// The first thing in `value` that `schema` does not say, or says otherwise.
fn wrong(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let mut target =
            root.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} is nowhere")).clone();
        // What stands beside a reference holds too.
        for (field, own) in schema["properties"].as_object().into_iter().flatten() {
            target["properties"][field] = own.clone();
        }
        if let (Some(own), Some(of)) = (schema["required"].as_array(), target["required"].as_array_mut()) {
            of.extend(own.iter().cloned());
        }
        return wrong(root, &target, value, at);
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(ways) = schema[several].as_array() {
            let all: Vec<String> = ways.iter().filter_map(|way| wrong(root, way, value, at)).collect();
            return (all.len() == ways.len()).then(|| all.join("; or "));
        }
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{at}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return Some(format!("{at}: {value} is none of {}", schema["enum"]));
    }
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("null") => value.is_null(),
        _ => true,
    };
    if !types.iter().any(is) {
        return Some(format!("{at}: {value} is no {}", schema["type"]));
    }
    if let Some(fields) = value.as_object() {
        let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = missing.into_iter().find(|name| !fields.contains_key(*name)) {
            return Some(format!("{at}: there is no {missing}"));
        }
        for (name, inner) in fields {
            let Some(of) = schema["properties"].get(name) else {
                return Some(format!("{at}: {name} is not in the schema"));
            };
            let below = wrong(root, of, inner, &format!("{at}/{name}"));
            if below.is_some() {
                return below;
            }
        }
    }
    for (n, inner) in value.as_array().into_iter().flatten().enumerate() {
        let of = schema["prefixItems"].get(n).unwrap_or(&schema["items"]);
        let below = wrong(root, of, inner, &format!("{at}/{n}"));
        if below.is_some() {
            return below;
        }
    }
    None
}

#[test]
fn plans_are_what_the_schema_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let schema = catena(&root, &["plan", "--schema"]);
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path();
    let chains = "class web = \"tcp\"\nclass rest = \"udp\"\n\
        chain a for web { promise 10Mbps..1Gbps in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
        chain b for rest { in -> [ \"udp port 53\": Monitor(), else: drop ] -> out }\ncpu a : b = 1 : 3\n";
    std::fs::write(own.join("own.catena"), chains).expect("a chain file");
    let rack = root.join("examples/racks/this-machine.toml");
    let rack = rack.to_str().expect("a path");
    let here = ["plan", "own.catena", "--rack", rack, "--profile", "none", "--json"];
    let first = catena(own, &[&here[..], &["-o", "1.json"]].concat());
    std::fs::write(own.join("own.catena"), chains.replace("permit any", "deny any")).expect("a chain file");
    let changed = catena(own, &[&here[..], &["--from", "1.json"]].concat());
    assert!(changed["delta"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()));
    let paper = |chain: &str, rack: &str| {
        let (chain, rack) = (format!("examples/lemur/{chain}.catena"), format!("examples/racks/{rack}.toml"));
        catena(&root, &["plan", &chain, "--rack", &rack, "--json", "--strategy", "lemur", "--as", "lemur"])
    };
    let plans = [
        ("first", first),
        ("changed", changed),
        ("P4 switch", paper("chain1", "lemur")),
        ("SmartNIC", paper("chain3", "lemur-smartnic")),
    ];
    for (name, plan) in &plans {
        assert_eq!(wrong(&schema, &schema, plan, ""), None, "{name}");
    }
    // And no other thing is one.
    let mut lie = plans[0].1.clone();
    lie["chains"][0]["rate_bps"] = "much".into();
    assert!(wrong(&schema, &schema, &lie, "").is_some_and(|why| why.contains("/chains/0/rate_bps")));
    let mut more = plans[0].1.clone();
    more["deployment"]["instances"][0]["colour"] = "blue".into();
    assert!(wrong(&schema, &schema, &more, "").is_some_and(|why| why.contains("colour is not in the schema")));
    let mut less = plans[0].1.clone();
    less["deployment"].as_object_mut().expect("an object").remove("seed");
    assert!(wrong(&schema, &schema, &less, "").is_some());
}
