//! What the operator sees: every `golden/NAME.catena` is loaded, and its findings, rendered, are
//! `golden/NAME.expected`. `CATENA_BLESS=1 cargo test -p catena-policy --test main` writes them
//! anew; read the difference before committing it.

use std::fs;
use std::path::Path;

use catena_policy::load;

use crate::sample;

#[test]
fn messages_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("CATENA_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "catena") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let outcome = load(name, &source, &sample::library(), &sample::Shelf);
        let mut text: String = outcome.diagnostics.iter().map(|d| d.render(name, &source, false) + "\n\n").collect();
        if let Some(graph) = outcome.graph {
            text.push_str(&graph.to_string());
        }
        let expected = path.with_extension("expected");
        if bless {
            fs::write(&expected, &text).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{name} says now:\n{text}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 40, "only {count} golden files");
}
