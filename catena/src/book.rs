//! The manual pages as a part of the book: one Markdown page a function and an index, made from the code.
//!
//! A page is the head comment of the function's `mod.rs` and what its descriptor declares, so the book cannot
//! say anything else than the code. `--check` compares with what is on disk and changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use catena_compile::library::signatures;
use catena_functions::{Affinity, Descriptor, registry};

use crate::{Failure, file, streams};

/// The index page of the folder.
const INDEX: &str = "README.md";
/// How every page that is made here begins; what does not is left alone.
const MARK: &str = "<!-- Made by `catena functions --book`";
/// The start of a link in the book's summary that leads to a function's page.
const LINK: &str = "  - [";

/// Write the pages of all functions to `folder`, and their list to the summary beside it, if there is one. With
/// `check` nothing is written.
///
/// # Errors
/// What cannot be read or written; with `check`, which pages differ from the code, and what to do.
pub fn book(folder: &Path, check: bool) -> Result<(), Failure> {
    let wanted = wanted(folder)?;
    let stale = stale(folder, &wanted)?;
    if !check {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for (path, text) in &wanted {
            write_if_new(path, text)?;
        }
        for path in stale {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (path, text) in &wanted {
        match fs::read_to_string(path) {
            Ok(found) if found == *text => {}
            Ok(found) => wrong.push(format!("{}:{}: differs from the code", path.display(), difference(&found, text))),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    wrong.extend(stale.iter().map(|path| format!("{}: the library has no such function", path.display())));
    if wrong.is_empty() {
        return Ok(());
    }
    let (list, folder) = (wrong.join("\n  "), folder.display());
    Err(Failure(format!(
        "the manual pages are not what the code says:\n  {list}\n`catena functions --book {folder}` writes them anew"
    )))
}

/// Return every file there should be, with its text.
fn wanted(folder: &Path) -> Result<BTreeMap<PathBuf, String>, Failure> {
    let mut wanted = BTreeMap::from([(folder.join(INDEX), index())]);
    for function in registry::FUNCTIONS {
        wanted.insert(folder.join(file_name(function)), page(function));
    }
    let summary = folder.parent().unwrap_or(Path::new("")).join("SUMMARY.md");
    if summary.is_file() {
        let text = fs::read_to_string(&summary).map_err(|error| format!("{}: {error}", summary.display()))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        wanted.insert(summary, listed(&text, &name));
    }
    Ok(wanted)
}

/// Return pages that were made here once and belong to no function now.
fn stale(folder: &Path, wanted: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>, Failure> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut stale = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let made_here = || fs::read_to_string(&path).is_ok_and(|text| text.starts_with(MARK));
        if !wanted.contains_key(&path) && path.extension().is_some_and(|e| e == "md") && made_here() {
            stale.push(path);
        }
    }
    stale.sort();
    Ok(stale)
}

fn write_if_new(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    file::write(path, text)?;
    streams::print(format_args!("{}\n", path.display()))
}

/// Return the number of the first line that differs, from 1.
fn difference(found: &str, wanted: &str) -> usize {
    1 + found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count()
}

fn file_name(function: &Descriptor) -> String {
    format!("{}.md", function.name.to_lowercase())
}

/// Return a summary with the list of functions brought up to date: the links under that to the index.
fn listed(summary: &str, folder: &str) -> String {
    let mut text = String::new();
    for line in summary.lines() {
        if line.starts_with(LINK) && line.contains(&format!("]({folder}/")) {
            continue;
        }
        text += line;
        text.push('\n');
        if line.ends_with(&format!("]({folder}/{INDEX})")) {
            for function in registry::FUNCTIONS {
                _ = writeln!(text, "{LINK}{}]({folder}/{})", function.name, file_name(function));
            }
        }
    }
    text
}

fn index() -> String {
    let mut text = format!("{MARK} from the registry of functions. -->\n\n# Functions\n\n");
    text +=
        "What the library has, each with its manual page. `catena functions NAME` shows the same in a terminal.\n\n";
    text += "| function | what it does |\n| --- | --- |\n";
    for function in registry::FUNCTIONS {
        row(&mut text, &[&format!("[{}]({})", function.name, file_name(function)), function.summary]);
    }
    text
}

/// Return a function's page.
fn page(function: &Descriptor) -> String {
    let mut text = format!("{MARK} from the function's source. -->\n\n# {}\n\n", function.name);
    text += manual(&function.manual()).trim_end();
    text += "\n\n## Reference\n";
    parameters(&mut text, function);
    if !function.attributes.is_empty() {
        text += "\nAttributes that it derives:\n\n| name | values | meaning |\n| --- | --- | --- |\n";
        for attribute in function.attributes {
            let values = if attribute.values.is_empty() { "numbers".to_owned() } else { attribute.values.join(", ") };
            row(&mut text, &[&format!("`{}`", attribute.name), &values, attribute.doc]);
        }
    }
    if !function.state.is_empty() {
        text +=
            "\nState objects:\n\n| name | what it holds | kind | scope | access |\n| --- | --- | --- | --- | --- |\n";
        for state in function.state {
            let (kind, scope, access) = (state.object.text(), state.scope.text(), state.access.text());
            row(&mut text, &[&format!("`{}`", state.name), state.summary, kind, scope, access]);
        }
    }
    text += &match function.affinity {
        Affinity::None => "\nSeveral instances may share the work in any way.\n".to_owned(),
        Affinity::Single => "\nThere can be one instance only.\n".to_owned(),
        Affinity::Scope(scope) => {
            format!("\nSeveral instances may share the work by {}: equal ones meet the same instance.\n", scope.text())
        }
        Affinity::Manifest { param, otherwise } => format!(
            "\nSeveral instances may share the work as the manifest in `{param}` says, and without one by {}: equal ones \
             meet the same instance.\n",
            otherwise.text()
        ),
    };
    text
}

fn parameters(text: &mut String, function: &Descriptor) {
    if function.params.is_empty() {
        *text += "\nIt takes no parameters.\n";
        return;
    }
    *text += "\nParameters:\n\n| name | takes | default | meaning |\n| --- | --- | --- | --- |\n";
    let signatures = signatures();
    let kinds = signatures.find(function.name).map_or(&[][..], |signature| &signature.params);
    for param in function.params {
        let kind = kinds.iter().find(|p| p.name == param.name).map_or(String::new(), |p| p.kind.to_string());
        row(text, &[&format!("`{}`", param.name), &kind, param.default.unwrap_or("(required)"), param.doc]);
    }
}

fn row(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Return a manual as the part of a page: headings one level down, links of rustdoc as plain words.
fn manual(manual: &str) -> String {
    let mut text = String::new();
    let mut code = false;
    for line in manual.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        match line {
            heading if !code && heading.starts_with('#') => _ = writeln!(text, "#{heading}"),
            line => _ = writeln!(text, "{}", if code { line.to_owned() } else { without_links(line) }),
        }
    }
    text
}

/// Turn ``[`name`]`` into `` `name` ``: what rustdoc links, the book does not.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("[`") {
        text += before;
        match after.split_once("`]") {
            Some((name, after)) if !after.starts_with('(') => {
                _ = write!(text, "`{name}`");
                rest = after;
            }
            _ => {
                text += "[`";
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_becomes_part_of_a_page() {
        let source = "ACL: a filter, see [`rules`].\n\n# Rules\n\n```text\n# a comment\n[`kept`]\n```\n[`a`](b.md) | c";
        let expected =
            "ACL: a filter, see `rules`.\n\n## Rules\n\n```text\n# a comment\n[`kept`]\n```\n[`a`](b.md) | c\n";
        assert_eq!(manual(source), expected);
        let mut table = String::new();
        row(&mut table, &["a|b", "c"]);
        assert_eq!(table, "| a\\|b | c |\n");
    }

    #[test]
    fn a_summary_lists_the_functions() {
        let before = "- [x](x.md)\n- [Functions](functions/README.md)\n  - [Gone](functions/gone.md)\n- [y](y.md)\n";
        let after = listed(before, "functions");
        assert!(!after.contains("Gone") && after.starts_with("- [x]") && after.ends_with("- [y](y.md)\n"), "{after}");
        assert_eq!(after.matches("](functions/").count(), registry::FUNCTIONS.len() + 1);
        assert_eq!(listed(&after, "functions"), after);
    }

    #[test]
    fn every_page_has_a_title_and_its_parameters() {
        for function in registry::FUNCTIONS {
            let page = page(function);
            assert!(page.contains(&format!("\n# {}\n", function.name)), "{page}");
            assert!(function.params.iter().all(|p| page.contains(&format!("| `{}` |", p.name))), "{page}");
        }
    }

    #[test]
    fn pages_are_written_and_checked() {
        let folder = std::env::temp_dir().join(format!("catena-book-{}", std::process::id()));
        assert!(book(&folder, true).is_err());
        assert!(book(&folder, false).is_ok() && book(&folder, true).is_ok());
        let extra = folder.join("gone.md");
        assert!(fs::write(&extra, format!("{MARK} once. -->\n")).is_ok());
        assert!(fs::write(folder.join("own.md"), "by hand\n").is_ok());
        let Err(Failure(message)) = book(&folder, true) else { panic!("a page too many goes unseen") };
        assert!(message.contains("gone.md") && message.contains("--book"), "{message}");
        assert!(book(&folder, false).is_ok() && !extra.exists() && folder.join("own.md").exists());
        assert!(fs::remove_dir_all(&folder).is_ok());
    }
}
