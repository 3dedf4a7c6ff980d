//! What the operator sees of a rack's file: every `racks/NAME.toml` is read, and its findings, rendered, with
//! the rack if there is one, are `racks/NAME.expected`. `CATENA_BLESS=1 cargo test -p catena-plan-model --test main`
//! writes them anew; read the difference before committing it.

use std::fs;
use std::path::Path;

use catena_plan_model::rack::parse;

const FUNCTIONS: [&str; 4] = ["ACL", "Detunnel", "Monitor", "Tunnel"];

#[test]
fn messages_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/racks");
    let bless = std::env::var_os("CATENA_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("the file can be read");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let parsed = parse(&source, &FUNCTIONS);
        let rendered: Vec<String> = parsed.diagnostics.iter().map(|d| d.render(name, &source, false) + "\n").collect();
        let mut text = rendered.join("\n");
        if let Some(rack) = parsed.rack {
            text += &(serde_json::to_string_pretty(&rack).expect("JSON") + "\n");
        }
        let expected = path.with_extension("expected");
        if bless {
            fs::write(&expected, &text).expect("it can be written");
        } else if fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{name} says now:\n{text}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 15, "only {count} racks");
}

#[test]
fn no_text_makes_the_reader_fail() {
    let source = include_str!("racks/good.toml");
    // Every beginning of a good file, and the file without each of its lines.
    for end in (0..source.len()).filter(|end| source.is_char_boundary(*end)) {
        let parsed = parse(&source[..end], &FUNCTIONS);
        assert!(parsed.rack.is_some() || !parsed.diagnostics.is_empty(), "{end}: no rack, and no word why");
    }
    let lines: Vec<&str> = source.lines().collect();
    for left_out in 0..lines.len() {
        let text: Vec<&str> = lines.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, l)| *l).collect();
        let parsed = parse(&text.join("\n"), &FUNCTIONS);
        assert!(parsed.rack.is_some() || !parsed.diagnostics.is_empty(), "{left_out}: no rack, and no word why");
    }
}
