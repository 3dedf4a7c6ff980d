//! Every example of the repository and of the language reference parses, and formatting it changes nothing but white space.

use std::fs;
use std::path::{Path, PathBuf};

use catena_policy::{Code, Diagnostic, Disk, Files, Library, PolicyGraph, Severity, format, load};

use crate::sample;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn show(diagnostics: &[Diagnostic], name: &str, source: &str) -> String {
    diagnostics.iter().map(|d| d.render(name, source, false) + "\n").collect()
}

/// Loads the file and checks that its canonical layout is stable and means the same.
fn examine(path: &Path, library: &Library) -> (PolicyGraph, Vec<Diagnostic>) {
    let source = fs::read_to_string(path).unwrap();
    let name = path.display().to_string();
    let outcome = load(&name, &source, library, &Disk);
    let graph = outcome.graph.unwrap_or_else(|| panic!("{}", show(&outcome.diagnostics, &name, &source)));
    let laid_out = format(&source).unwrap();
    assert_eq!(format(&laid_out).unwrap(), laid_out, "{name}: a second time changes the layout");
    let again = load(&name, &laid_out, library, &Disk).graph.unwrap();
    assert_eq!(graph.to_string(), again.to_string(), "{name}: formatting changes the graph");
    (graph, outcome.diagnostics)
}

#[test]
fn the_edge_example_has_no_findings() {
    let (graph, findings) = examine(&root().join("examples/edge.catena"), &sample::library());
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(graph.chains.len(), 4);
    let internet = &graph.chains[1];
    let names: Vec<&str> = internet.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["acl", "mon", "nat.nat"]);
    assert_eq!(internet.edges.len(), 8);
    assert_eq!(graph.classes[0].back.as_ref().unwrap().text, "dst net 198.51.100.16/28");
}

#[test]
fn the_design_page_parses_without_a_library() {
    let (graph, findings) = examine(&root().join("examples/e2.catena"), &Library::default());
    assert!(findings.iter().all(|d| d.code == Code::UnknownFunction && d.severity == Severity::Error), "{findings:#?}");
    assert_eq!(graph.chains.len(), 2);
    let (_, findings) = examine(&root().join("examples/e2.catena"), &sample::library());
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn lemurs_chains_parse_and_check_names_what_is_missing() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples/lemur")).unwrap() {
        let path = entry.unwrap().path();
        let (graph, findings) = examine(&path, &Library::default());
        assert!(findings.iter().all(|d| d.code == Code::UnknownFunction), "{findings:#?}");
        assert!(!findings.is_empty() && graph.chains.len() == 1);
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn lemurs_chain_1_is_the_published_graph() {
    let (graph, _) = examine(&root().join("examples/lemur/chain1.catena"), &Library::default());
    let functions: Vec<&str> = graph.chains[0].nodes.iter().map(|n| n.function.as_str()).collect();
    let count = |name: &str| functions.iter().filter(|f| **f == name).count();
    assert_eq!([count("BPF"), count("ACL"), count("UrlFilter"), count("Encrypt")], [2, 1, 1, 1]);
    assert_eq!(functions.len(), 8);
}

/// Every block marked `catena` in the language reference is a whole file without findings.
#[test]
fn the_reference_is_right() {
    let text = fs::read_to_string(root().join("docs/language.md")).unwrap();
    let mut count = 0;
    for block in text.split("```catena\n").skip(1) {
        let source = block.split("```").next().unwrap();
        let outcome = load("language.md", source, &sample::library(), &sample::Shelf);
        let findings = show(&outcome.diagnostics, "language.md", source);
        assert!(findings.is_empty() && outcome.graph.is_some(), "{findings}");
        let again = load("language.md", &format(source).unwrap(), &sample::library(), &sample::Shelf);
        assert_eq!(outcome.graph.unwrap().to_string(), again.graph.unwrap().to_string());
        count += 1;
    }
    assert!(count >= 6, "the reference has {count} examples");
}

#[test]
fn the_disk_refuses_what_is_no_text_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules");
    fs::write(&path, "permit").unwrap();
    assert_eq!(Disk.read(&path, 6).unwrap(), "permit");
    assert!(Disk.read(&path, 5).unwrap_err().contains("more than 5 bytes"));
    fs::write(&path, [b'a', 0xff]).unwrap();
    assert!(Disk.read(&path, 9).unwrap_err().contains("byte 1"));
    assert!(Disk.read(folder.path(), 9).unwrap_err().contains("regular"));
    assert!(Disk.read(&folder.path().join("none"), 9).is_err());
}

#[test]
fn a_chain_can_be_drawn() {
    let source = "chain x { in <-> ACL() <-> out }";
    let dot = load("x", source, &sample::library(), &sample::Shelf).graph.unwrap().to_dot();
    for line in [
        "c0_n0 [label = \"acl\\nACL\"];",
        "c0_in -> c0_n0 [label = \"\"];",
        "c0_n0 -> c0_in [label = \"\", style = dashed];",
    ] {
        assert!(dot.contains(line), "{dot}");
    }
}
