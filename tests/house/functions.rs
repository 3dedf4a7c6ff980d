//! Every function of the library has all that belongs to one: a place in the registry, a manual with its
//! sections, tests and a benchmark.

use std::fs;

use super::code::{bare, is_test_file, is_word, without_tests};
use super::files::{File, read, root, with_ending};
use super::none;

/// What every manual has beside the first line: how it is configured, what it does, how it is used.
const SECTIONS: [&str; 3] = ["Parameters", "Behaviour", "Example"];
const LIBRARY: &str = "functions/src";

/// The folders of the library, and for each whether it is a function's.
fn folders() -> Vec<String> {
    let entries = fs::read_dir(root().join(LIBRARY)).expect("the library is there");
    let mut folders: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("mod.rs").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "testing")
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "{LIBRARY} has folders");
    folders
}

/// Return the name that a function's descriptor gives.
fn name(code: &str) -> Option<&str> {
    let (_, descriptor) = code.split_once("Descriptor {\n")?;
    let line = descriptor.lines().find(|line| line.trim_start().starts_with("name: \""))?;
    line.split('"').nth(1)
}

/// The benchmarks that a manifest of the library lists: their names and files.
fn benchmarks(manifest: &str) -> Vec<(String, String)> {
    let value = |section: &str, key: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")).map(str::to_owned));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let sections = manifest.split("[[bench]]").skip(1).filter_map(|section| {
        let name = value(section, "name")?;
        let path = value(section, "path").unwrap_or_else(|| format!("benches/{name}.rs"));
        Some((name, format!("functions/{path}")))
    });
    sections.collect()
}

fn missing(folder: &str, files: &[File]) -> Vec<String> {
    let path = format!("{LIBRARY}/{folder}/mod.rs");
    let code = read(&path);
    let manual: Vec<&str> = code.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let mut missing = Vec::new();
    let mut need = |there: bool, what: String| {
        if !there {
            missing.push(what);
        }
    };
    need(
        read("functions/src/registry.rs").contains(&format!("{folder}::DESCRIPTOR")),
        format!("{LIBRARY}/registry.rs: `{folder}::DESCRIPTOR` is not listed"),
    );
    match name(&code) {
        None => need(false, format!("{path}: has no `DESCRIPTOR: Descriptor` with a name")),
        Some(name) => need(
            manual.first().is_some_and(|line| line.starts_with(name)),
            format!("{path}: the manual does not begin with the function's name, `{name}`"),
        ),
    }
    for section in SECTIONS {
        let heading = format!("# {section}");
        need(manual.contains(&&*heading), format!("{path}: the manual has no section `//! {heading}`"));
    }
    let prefix = format!("{LIBRARY}/{folder}/");
    let tested = files.iter().any(|f| f.path.starts_with(&prefix) && f.text.contains("#[test]"));
    need(tested, format!("{prefix}: there is no test"));
    let measured = benchmarks(&read("functions/Cargo.toml")).iter().any(|(bench, path)| {
        let text = || files.iter().find(|f| f.path == *path).map_or("", |f| &f.text);
        bench == folder
            || path.starts_with(&prefix)
            || name(&code).is_some_and(|n| text().contains(&format!("\"{n}\"")))
    });
    need(measured, format!("functions/Cargo.toml: there is no [[bench]] `{folder}`, nor one that builds the function"));
    missing
}

#[test]
fn every_function_is_whole() {
    let files = with_ending(&["rs"]);
    let findings: Vec<String> = folders().iter().flat_map(|folder| missing(folder, &files)).collect();
    none(&findings, "`catena new NAME` writes a folder that has all of it: compare.");
}

/// Where a function's state is, is chosen where it is deployed (`Build::deploy`): that, the runner of functions and what tests them know
/// engines, and nothing else in the library does. Native alone has a face for local state: there C code gets whole batches.
#[test]
fn no_function_names_an_engine() {
    const KNOW: [&str; 5] = ["native/", "testing", "descriptor.rs", "function.rs", "function/"];
    let knows = |path: &str| KNOW.iter().any(|known| path.starts_with(&format!("{LIBRARY}/{known}")));
    let (mut named, mut read) = (Vec::new(), 0);
    for file in with_ending(&["rs"]).iter().filter(|file| file.path.starts_with(LIBRARY) && !is_test_file(&file.path)) {
        if knows(&file.path) {
            continue;
        }
        read += 1;
        let code = without_tests(&bare(&file.text));
        let words = code.split(|c| !is_word(c));
        let engines = words.filter(|word| ["Local", "Delayed", "Peers", "Team"].contains(word));
        named.extend(engines.map(|engine| format!("{}: names the engine {engine}", file.path)));
    }
    assert!(read > 60, "only {read} files of {LIBRARY} were read");
    none(&named, "Take the engine that the recipe is given: `fn make<E: Engine>(self, engine: &mut E)`.");
}
