//! Rules for source files: head comments, names, calls, length, `unsafe`, odd characters, places of one machine.

use super::code::{bare, is_test_file, is_word, without_tests};
use super::files::{File, all, with_ending};
use super::none;

/// Most lines of a file.
const LONGEST: usize = 500;
/// Files that may sleep, all beside the way of packets: a worker without work, a writer without records, a run that has no reader
/// yet.
const MAY_SLEEP: [&str; 11] = [
    "crates/dataplane/src/worker.rs",
    "functions/src/monitor/export.rs",
    "crates/runtime/src/outputs.rs",
    // The kernel tells nobody when a thread of its own has run.
    "crates/isolation/src/threaded.rs",
    // A process that does nothing but wait.
    "crates/isolation/src/guard.rs",
    // A run that starts while a guard still restores what the one before left.
    "crates/isolation/src/journal.rs",
    // Another CPU is called when it waits for that.
    "crates/isolation/src/outside.rs",
    // Turns are of a length, and senders have a rate.
    "crates/isolation/src/scene.rs",
    "crates/isolation/src/scene/sending.rs",
    "crates/isolation/src/scene/traced.rs",
    "crates/isolation/src/scene/turn.rs",
];
/// Names that say nothing of what a thing is.
const EMPTY_NAMES: [&str; 8] = ["manager", "helper", "helpers", "utils", "util", "utilities", "misc", "common"];

/// One finding a line of code that `is_wrong`.
fn lines(file: &File, text: &str, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let wrong = text.lines().zip(1..).filter(|(line, _)| is_wrong(line));
    wrong.map(|(line, number)| format!("{}:{number}: {}", file.path, line.trim())).collect()
}

#[test]
fn every_file_says_what_it_is_for() {
    let begins = |file: &File| match file.ending() {
        "rs" => file.text.starts_with("//! "),
        _ => file.text.starts_with("/*") || file.text.starts_with("//"),
    };
    let files = with_ending(&["rs", "c", "cpp", "h"]);
    let findings: Vec<String> = files.into_iter().filter(|f| !begins(f)).map(|f| f.path).collect();
    none(&findings, "Begin the file with a comment (`//! …` in Rust) that says what it is for.");
}

#[test]
fn files_are_short() {
    let files = with_ending(&["rs", "c", "cpp", "h"]).into_iter();
    let long = files.map(|f| (f.text.lines().count(), f.path)).filter(|(count, _)| *count > LONGEST);
    let findings: Vec<String> = long.map(|(count, path)| format!("{path}: {count} lines")).collect();
    none(&findings, &format!("A file has one idea and at most {LONGEST} lines: split it, its tests first."));
}

#[test]
fn names_say_what_things_are() {
    let is_empty = |name: &str| EMPTY_NAMES.contains(&&*name.to_lowercase());
    let mut findings = Vec::new();
    for file in with_ending(&["rs", "c", "cpp", "h"]) {
        let parts = file.path.trim_end_matches(file.ending()).trim_end_matches('.').split(['/', '_', '-', '.']);
        findings.extend(parts.filter(|p| is_empty(p)).map(|part| format!("{}: `{part}` in its path", file.path)));
        for (line, number) in bare(&file.text).lines().zip(1..) {
            let words: Vec<&str> = line.split(|c| !is_word(c)).filter(|w| !w.is_empty()).collect();
            let named =
                words.windows(2).filter(|w| ["struct", "enum", "trait", "type", "mod", "union"].contains(&w[0]));
            for name in named.map(|w| w[1]).filter(|name| split_name(name).iter().any(|part| is_empty(part))) {
                findings.push(format!("{}:{number}: `{name}`", file.path));
            }
        }
    }
    none(&findings, "Name it after what it is or does, in the words of docs/architecture.md or of the field.");
}

/// Return the words of a name: `FlowManager` and `flow_manager` have two.
fn split_name(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c.is_uppercase() || c == '_' {
            parts.push(String::new());
        }
        parts.last_mut().expect("there is a first part").push(c);
    }
    parts.iter().map(|part| part.trim_matches('_').to_lowercase()).collect()
}

/// Return whether a call of `name` stands in a line of bare code.
fn calls(line: &str, name: &str) -> bool {
    let before = |at: usize| line[..at].chars().next_back();
    line.match_indices(name).any(|(at, _)| !name.starts_with(is_word) || !before(at).is_some_and(is_word))
}

#[test]
fn no_call_is_left_that_should_not_be() {
    let mut findings = Vec::new();
    for file in with_ending(&["rs"]) {
        let code = bare(&file.text);
        findings.extend(lines(&file, &code, |l| ["dbg!(", "todo!(", "unimplemented!("].iter().any(|c| calls(l, c))));
        if is_test_file(&file.path) {
            continue;
        }
        let code = without_tests(&code);
        findings.extend(lines(&file, &code, |line| calls(line, ".unwrap()")));
        let is_command = file.path.starts_with("catena/") || file.path.starts_with("bench/");
        // A build script speaks to cargo by printing.
        if !is_command && !file.path.ends_with("/build.rs") {
            let prints = ["println!(", "print!(", "eprintln!(", "eprint!("];
            findings.extend(lines(&file, &code, |line| prints.iter().any(|c| calls(line, c))));
        }
        if !is_command && !MAY_SLEEP.contains(&&*file.path) {
            findings.extend(lines(&file, &code, |line| calls(line, "thread::sleep")));
        }
    }
    let advice = "What comes from outside ends in a typed error, not in `unwrap`; where nothing can go wrong, `expect` says \
                  why. Only the command prints, and only it and the threads in MAY_SLEEP sleep.";
    none(&findings, advice);
}

#[test]
fn nothing_is_hidden_from_compiler_and_tests() {
    let mut findings = Vec::new();
    for file in with_ending(&["rs"]) {
        let code = bare(&file.text);
        let hides = |line: &str| line.contains("#[ignore") || (line.contains("allow(") && line.contains("dead_code"));
        findings.extend(lines(&file, &code, hides));
    }
    none(
        &findings,
        "Delete what is dead; make a test fast instead of ignoring it, or skip with a message what it cannot do.",
    );
}

#[test]
fn unsafe_code_says_why_it_is_safe() {
    /// How far above its block a reason may begin.
    const ABOVE: usize = 12;
    let mut findings = Vec::new();
    for file in with_ending(&["rs"]) {
        let code = bare(&file.text);
        let source: Vec<&str> = file.text.lines().collect();
        for (line, at) in code.lines().zip(0usize..) {
            let is_block = calls(line, "unsafe {") || calls(line, "unsafe impl");
            let reason = source[at.saturating_sub(ABOVE)..=at].iter().any(|l| l.contains("SAFETY:"));
            if is_block && !reason {
                findings.push(format!("{}:{}: {}", file.path, at + 1, line.trim()));
            }
        }
    }
    none(&findings, "Say in a comment `// SAFETY: …` above it why nothing can go wrong.");
}

#[test]
fn no_character_deceives() {
    // Invisible ones, and those that turn the direction of text.
    let deceives = |c: char| {
        matches!(c, '\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || (c.is_control() && c != '\n' && c != '\t')
    };
    let mut findings = Vec::new();
    for file in all() {
        findings.extend(lines(&file, &file.text, |line| line.contains(deceives)));
        if file.ending() == "rs" {
            findings.extend(lines(&file, &bare(&file.text), |line| !line.is_ascii()));
        }
    }
    none(
        &findings,
        "Outside comments and texts code is ASCII, and invisible characters are nowhere; write them as escapes.",
    );
}

#[test]
fn lines_end_cleanly() {
    let mut findings = Vec::new();
    for file in all() {
        findings.extend(lines(&file, &file.text, |line| line.ends_with([' ', '\t'])));
        if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
            findings.push(format!("{}: does not end with one line end", file.path));
        }
    }
    none(&findings, "Take the white space away; a file ends with one line end.");
}

#[test]
fn nothing_speaks_of_one_machine() {
    // In parts, so that this file does not speak of them either.
    let places = [concat!("/wo", "rk/"), concat!("/tmp/", "bash"), concat!("/tmp/", "t-"), concat!("/ro", "ot/")];
    let hosts = [concat!("crates", ".io"), concat!("docs", ".rs/"), concat!("pypi", ".org"), concat!("npmjs", ".org")];
    let talk = [
        concat!("issue", " #"),
        concat!("this ", "session"),
        concat!("earlier ", "session"),
        concat!("the ", "brief "),
        concat!("later ", "issue"),
    ];
    let mut findings = Vec::new();
    for file in all() {
        findings.extend(lines(&file, &file.text, |line| {
            let small = line.to_lowercase();
            [&places[..], &hosts, &talk].iter().any(|words| words.iter().any(|word| small.contains(word)))
        }));
    }
    none(
        &findings,
        "Files speak of Catena alone: no places of one machine, no hosts of registries, nothing of how work is organised.",
    );
}
