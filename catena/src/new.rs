//! `catena new NAME`: the folder of a new function, ready to build and passing its tests.
//!
//! What is written is a small whole function (a packet quota per sender) to change step by step; "Your first
//! function in an hour" in CONTRIBUTING.md goes on from there. All files are prepared before the first is
//! written, and nothing that exists is written over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catena_functions::registry;

use crate::arguments::NewOptions;
use crate::{Failure, file, streams};

const CODE: &str = include_str!("new/mod.rs.tmpl");
const WORKLOAD: &str = include_str!("new/workload.rs.tmpl");
const TESTS: &str = include_str!("new/tests.rs.tmpl");
const BENCHMARK: &str = include_str!("new/bench.rs.tmpl");

/// Longest name of a function, in letters.
const LONGEST: usize = 32;

/// Modules of the library that are no functions, and words that Rust keeps for itself (of those that begin with
/// a capital letter in a function's name).
const TAKEN: [&str; 54] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "config",
    "const",
    "continue",
    "crate",
    "descriptor",
    "do",
    "dyn",
    "effects",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "function",
    "if",
    "impl",
    "in",
    "let",
    "line",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "registry",
    "return",
    "rules",
    "self",
    "static",
    "struct",
    "super",
    "testing",
    "trait",
    "true",
    "type",
    "typeof",
    "unsafe",
    "use",
    "where",
    "workload",
];

/// Write a new function's folder and register it.
///
/// # Errors
/// When the name does not do, something of it exists, or the source is not there.
pub fn new(options: &NewOptions) -> Result<ExitCode, Failure> {
    let name = &*options.name;
    let folder = folder_name(name)?;
    let library = options.dir.join("functions");
    if !library.join("src/registry.rs").is_file() {
        return Err(format!(
            "{}: there is no functions/src/registry.rs; run in Catena's source, or say --dir PATH",
            options.dir.display()
        )
        .into());
    }
    let home = library.join("src").join(&folder);
    let benchmark = library.join("benches").join(format!("{folder}.rs"));
    for path in [&home, &benchmark] {
        if path.exists() {
            return Err(format!("{}: exists, and is not written over", path.display()).into());
        }
    }
    let fill = |template: &str| template.replace("@Name@", name).replace("@name@", &folder);
    let changed = [
        changed(library.join("src/lib.rs"), |text| with_module(text, &folder))?,
        changed(library.join("src/registry.rs"), |text| with_entry(text, &folder))?,
        changed(library.join("Cargo.toml"), |text| with_benchmark(text, &folder))?,
    ];
    let made = [
        (home.join("mod.rs"), fill(CODE)),
        (home.join("tests.rs"), fill(TESTS)),
        (home.join("workload.rs"), fill(WORKLOAD)),
        (benchmark, fill(BENCHMARK)),
    ];
    for (path, text) in made.iter().chain(&changed) {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        }
        file::write(path, text)?;
    }
    made.iter().try_for_each(|(path, _)| streams::print(format_args!("wrote   {}\n", path.display())))?;
    changed.iter().try_for_each(|(path, _)| streams::print(format_args!("changed {}\n", path.display())))?;
    streams::print(format_args!(
        "
{name} is a whole function: it lets the first packets of every sender pass. Make it yours, and try on the way:

    cargo test -p catena-functions {folder}
    cargo bench -p catena-functions --bench {folder}
    cargo run -p catena -- functions {name}
    cargo run --release -p catena -- profile {name} --quick
    cargo run -p catena -- functions --book docs/functions

\"Your first function in an hour\" in CONTRIBUTING.md goes through it.
"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Check a function's name and return that of its folder: `WebCache` lives in `web_cache`, `IPv6Fwd` in `ipv6fwd`.
fn folder_name(name: &str) -> Result<String, Failure> {
    let wrong = |what: &str| Err(Failure(format!("`{name}` is no name for a function: {what}, such as Normalizer")));
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) || name.len() > LONGEST {
        return wrong(&format!("expected a capital letter first and {LONGEST} letters at most"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return wrong("expected letters and digits");
    }
    if let Some(known) = registry::FUNCTIONS.iter().find(|f| f.name.eq_ignore_ascii_case(name)) {
        return Err(format!("the library has a function `{}` already", known.name).into());
    }
    let mut folder = String::new();
    let mut before = 'A';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before.is_ascii_lowercase() {
            folder.push('_');
        }
        folder.push(letter.to_ascii_lowercase());
        before = letter;
    }
    // What its source uses by name it cannot be called.
    let mut words = [CODE, WORKLOAD, TESTS, BENCHMARK]
        .into_iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    if words.any(|word| word == name) {
        return Err(format!("`{name}` is no name for a function: its source needs another thing of that name").into());
    }
    if TAKEN.contains(&&*folder) {
        return Err(
            format!("`{name}` is no name for a function: `{folder}` means something else in Rust or here").into()
        );
    }
    Ok(folder)
}

/// Read a file and change its text.
fn changed(path: PathBuf, change: impl Fn(&str) -> Option<String>) -> Result<(PathBuf, String), Failure> {
    let text = read(&path)?;
    let changed = change(&text).ok_or_else(|| format!("{}: not laid out as expected", path.display()))?;
    Ok((path, changed))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure(format!("{}: {error}", path.display())))
}

/// Add a module to the list in `lib.rs`, which is in order.
fn with_module(text: &str, folder: &str) -> Option<String> {
    let line = format!("pub mod {folder};");
    let modules: Vec<&str> = text.lines().filter(|l| l.starts_with("pub mod ")).collect();
    let at = match modules.iter().find(|l| **l > &*line) {
        Some(next) => place(text, next)?,
        None => modules.last().and_then(|last| Some(place(text, last)? + last.len() + 1))?,
    };
    // A module's attribute stays with it.
    let at = match text[..at].lines().last() {
        Some(attribute) if attribute.starts_with("#[") => at - attribute.len() - 1,
        _ => at,
    };
    Some(format!("{}{line}\n{}", &text[..at], &text[at..]))
}

/// Return where a line begins.
fn place(text: &str, line: &str) -> Option<usize> {
    Some(text.find(&format!("\n{line}\n"))? + 1)
}

/// Add a descriptor to the registry's list, which has a line each, in order.
fn with_entry(text: &str, folder: &str) -> Option<String> {
    const OPENING: &str = "FUNCTIONS: &[&Descriptor] = &[\n";
    let start = text.find(OPENING)? + OPENING.len();
    let list = &text[start..start + text[start..].find("];\n")?];
    let module = |entry: &str| entry.trim().trim_start_matches("&crate::").trim_start_matches('&').to_owned();
    let entry = format!("    &crate::{folder}::DESCRIPTOR,\n");
    let later = |line: &&str| module(line) > module(&entry);
    let before: usize = list.split_inclusive('\n').take_while(|line| !later(line)).map(str::len).sum();
    let at = start + before;
    Some(format!("{}{entry}{}", &text[..at], &text[at..]))
}

/// Add a benchmark to the manifest.
fn with_benchmark(text: &str, folder: &str) -> Option<String> {
    let name = format!("name = \"{folder}\"");
    (!text.lines().any(|line| line == name))
        .then(|| format!("{}\n\n[[bench]]\n{name}\nharness = false\n", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_folders() {
        fn folder(name: &str) -> Result<String, String> {
            folder_name(name).map_err(|Failure(message)| message)
        }
        for (name, expected) in [("Dns", "dns"), ("WebCache", "web_cache"), ("IPv6Fwd", "ipv6fwd"), ("IDS2", "ids2")] {
            assert_eq!(folder(name), Ok(expected.to_owned()));
        }
        for name in ["", "dns", "Web-Cache", "Web/../Cache", "Wörter", "Match", "Testing", "4Over6", &"X".repeat(33)] {
            assert!(folder(name).is_err(), "{name}");
        }
        for known in registry::FUNCTIONS {
            let name = known.name.to_uppercase();
            assert!(folder(&name).is_err_and(|message| message.contains("already")));
        }
    }

    #[test]
    fn the_lists_stay_in_order() {
        let lib = "//! Doc.\n\npub mod acl;\npub mod nat;\n#[cfg(test)]\npub mod testing;\n\npub use nat::X;\n";
        let ids = with_module(lib, "ids").expect("there is a list");
        assert!(ids.contains("pub mod acl;\npub mod ids;\npub mod nat;\n"), "{ids}");
        let nat64 = with_module(lib, "quota").expect("there is a list");
        assert!(nat64.contains("pub mod nat;\npub mod quota;\n#[cfg(test)]\npub mod testing;\n"), "{nat64}");
        let web = with_module(lib, "web").expect("there is a list");
        assert!(web.contains("pub mod testing;\npub mod web;\n\npub use"), "{web}");

        let registry = "const FUNCTIONS: &[&Descriptor] = &[\n    &acl::DESCRIPTOR,\n    &nat::DESCRIPTOR,\n];\n";
        let ids = with_entry(registry, "ids").expect("there is a list");
        assert!(ids.contains("&acl::DESCRIPTOR,\n    &crate::ids::DESCRIPTOR,\n    &nat::DESCRIPTOR,\n];\n"), "{ids}");
        let web = with_entry(registry, "web").expect("there is a list");
        assert!(web.contains("&nat::DESCRIPTOR,\n    &crate::web::DESCRIPTOR,\n];\n"), "{web}");
        assert!(with_entry("pub const OTHERS: u8 = 1;", "ids").is_none());
        assert!(with_benchmark("[[bench]]\nname = \"ids\"\n", "ids").is_none());
    }
}
