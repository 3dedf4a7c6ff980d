//! The table of `docs/architecture.md`, who may use whom, against the manifests.

use std::collections::BTreeMap;

use super::files::{read, root};
use super::none;

const PAGE: &str = "docs/architecture.md";

/// Rows of the table in their order: the folder of a crate, and the folders that it may use.
fn table() -> Vec<(String, Vec<String>)> {
    let page = read(PAGE);
    let rows = page.lines().skip_while(|line| !line.starts_with("| where |")).skip(2);
    let cells = rows.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut table = Vec::new();
    for row in cells {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [folder, _, uses] = cells[..] else { panic!("{PAGE}: a row has three cells: {row}") };
        let name = |cell: &str| cell.trim().trim_matches('`').to_owned();
        let uses = match uses.trim() {
            "all" => table.iter().map(|(above, _): &(String, _)| above.clone()).collect(),
            "-" => Vec::new(),
            uses => uses.split(", ").map(name).collect(),
        };
        table.push((name(folder), uses));
    }
    assert!(table.len() > 5, "{PAGE}: the table that begins with `| where |` is not there");
    table
}

/// The crates of the project by package name, with their folders.
fn members() -> BTreeMap<String, String> {
    let mut folders = vec!["fuzz".to_owned()];
    let manifest = read("Cargo.toml");
    let list = manifest.lines().find_map(|line| line.strip_prefix("members = [")).expect("the workspace has members");
    for member in list.trim_end_matches(']').split(", ").map(|member| member.trim_matches('"')) {
        match member.strip_suffix("/*") {
            None => folders.push(member.to_owned()),
            Some(parent) => {
                let entries = std::fs::read_dir(root().join(parent)).expect("the members' folder is there");
                let names =
                    entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned());
                folders.extend(names.map(|name| format!("{parent}/{name}")));
            }
        }
    }
    folders.retain(|folder| root().join(folder).join("Cargo.toml").is_file());
    let package = |folder: &String| {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
        name.trim_matches('"').to_owned()
    };
    folders.into_iter().map(|folder| (package(&folder), folder)).collect()
}

/// The names that a manifest depends on, in whatever role.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            // `[dependencies.name]` is another way to say it.
            names.extend(section.rsplit_once("dependencies.").map(|(_, name)| name.to_owned()));
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            names.push(name.trim().trim_matches('"').to_owned());
        }
    }
    names
}

#[test]
fn dependencies_keep_to_the_table() {
    let (table, members) = (table(), members());
    let mut findings = Vec::new();
    for (package, folder) in &members {
        let Some((_, may)) = table.iter().find(|(row, _)| row == folder) else {
            findings.push(format!("{folder}: has no row in {PAGE}"));
            continue;
        };
        for name in dependencies(&read(&format!("{folder}/Cargo.toml"))) {
            let Some(used) = members.get(&name) else { continue };
            if !may.contains(used) && name != *package {
                findings.push(format!(
                    "{folder}/Cargo.toml: `{name}`: the table lets {folder} use only: {}",
                    may.join(", ")
                ));
            }
        }
    }
    let advice =
        "Turn the dependency round, or move the code down; a new arrow is a decision, and goes into the table first.";
    none(&findings, advice);
}

#[test]
fn the_table_is_of_this_house() {
    let (table, members) = (table(), members());
    let mut findings = Vec::new();
    for (i, (folder, may)) in table.iter().enumerate() {
        if !members.values().any(|member| member == folder) {
            findings.push(format!("{PAGE}: `{folder}` is no crate of the project"));
        }
        for used in may {
            if !table[..i].iter().any(|(above, _)| above == used) {
                findings.push(format!("{PAGE}: `{folder}` may use `{used}`, which has no row above it"));
            }
        }
    }
    none(&findings, "A row may name only rows above it, by their folders: that keeps the house free of circles.");
}

#[test]
fn manifests_are_read() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { path = \"b\" }\n[lints]\nc = 1\n\
                    [target.'cfg(unix)'.dev-dependencies]\nd = \"1\"\n[dependencies.e]\nversion = \"1\"\n";
    assert_eq!(dependencies(manifest), ["a", "b", "d", "e"]);
}
