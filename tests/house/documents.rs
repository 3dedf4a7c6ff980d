//! Documents: links lead somewhere, and the book lists all of its pages.

use std::path::Path;

use super::files::{File, read, root, with_ending};
use super::none;

/// A link in a document: its line and target.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, number) in without_code(text).lines().zip(1..) {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| (number, target.to_owned())));
    }
    links
}

/// Return a document with its code blanked: fenced blocks and what stands between backticks.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        if !fenced && !fence {
            let pieces = line.split('`').enumerate().map(|(i, piece)| if i % 2 == 0 { piece } else { "" });
            out.extend(pieces);
        }
        fenced ^= fence;
        out.push('\n');
    }
    out
}

/// Return the anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            anchors.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    anchors
}

fn check(file: &File, target: &str) -> Result<(), String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let full = if path.is_empty() { root().join(&file.path) } else { root().join(folder).join(path) };
    if !full.exists() {
        return Err(format!("`{target}` does not exist"));
    }
    let text = if anchor.is_empty() { String::new() } else { std::fs::read_to_string(&full).unwrap_or_default() };
    match anchor.is_empty() || anchors(&text).iter().any(|a| a == anchor) {
        true => Ok(()),
        false => Err(format!("`{target}`: there is no such heading")),
    }
}

#[test]
fn links_lead_somewhere() {
    let mut findings = Vec::new();
    for file in with_ending(&["md"]) {
        for (line, target) in links(&file.text) {
            if let Err(what) = check(&file, &target) {
                findings.push(format!("{}:{line}: {what}", file.path));
            }
        }
    }
    none(&findings, "Links go from the document's own folder; headings become small letters joined by `-`.");
}

#[test]
fn the_book_lists_its_pages() {
    let summary = read("docs/SUMMARY.md");
    let listed: Vec<String> = links(&summary).into_iter().map(|(_, target)| target).collect();
    let pages = with_ending(&["md"]).into_iter().filter_map(|f| f.path.strip_prefix("docs/").map(str::to_owned));
    let lost = pages.filter(|page| page != "SUMMARY.md" && !listed.contains(page));
    let findings: Vec<String> = lost.map(|page| format!("docs/{page}")).collect();
    none(
        &findings,
        "Add the page to docs/SUMMARY.md (`catena functions --book docs/functions` does it for manual pages).",
    );
}

/// The page on state says what `Delayed` says of a violation, in the same words.
#[test]
fn violations_are_called_what_the_book_calls_them() {
    let page = read("docs/state.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let told: Vec<&str> =
        rows.filter_map(|row| row.strip_suffix("` |")?.rsplit_once('`').map(|(_, said)| said)).collect();
    assert!(told.len() > 15, "{told:?}");
    let sources = with_ending(&["rs"]).into_iter().filter(|file| {
        let says =
            file.path.starts_with("crates/state/src/delayed/") || file.path == "functions/src/function/parking.rs";
        says && !file.path.ends_with("_tests.rs")
    });
    let said: String = sources.map(|file| file.text).collect();
    let findings: Vec<String> =
        told.into_iter().filter(|what| !said.contains(what)).map(|what| format!("docs/state.md: {what}")).collect();
    none(&findings, "Nothing says so: give the message the words of the page, or the page those of the message.");
}

#[test]
fn the_changelog_begins_with_what_is_not_released() {
    let text = read("CHANGELOG.md");
    let first = text.lines().find(|line| line.starts_with("## "));
    assert!(first.is_some_and(|line| line.starts_with("## [Unreleased]")), "CHANGELOG.md: {first:?} comes first");
}

#[test]
fn documents_are_read() {
    let text = "# A `b` C\n[x](y.md#z) `[no](link)`\n```text\n[no](link)\n# no\n```\n## D, e-f\n";
    assert_eq!(links(text), [(2, "y.md#z".to_owned())]);
    assert_eq!(anchors(text), ["a-b-c", "d-e-f"]);
}
