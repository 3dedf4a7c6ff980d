//! The examples of the manuals and the documentation: every block that is a chain, or the inside of one, passes
//! `catena check` without a finding.
//!
//! That of the C header too. Manuals are taken as `catena functions --book` writes them, so from the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Blocks that only look like a chain: their page, what they contain, and why.
const EXCEPTIONS: [(&str, &str, &str); 4] = [
    ("lb.md", "LB(vip = ADDRESS[:PORT]", "says how the function is called"),
    ("tutorial.md", "Monitr()", "is wrong on purpose; the test of the tutorial runs it"),
    ("language.md", "Ids(", "has functions that are not in the library; crates/policy/tests checks it"),
    ("language.md", "Normalizer}", "has functions that are not in the library; crates/policy/tests checks it"),
];

/// Files that examples name, and what they are made of: texts, or sources in C.
const FILES: [(&str, &str); 6] = [
    ("edge.acl", "permit any\n"),
    ("talkers.manifest", include_str!("../analysis/tests/native/talkers.manifest")),
    ("talkers.so", include_str!("../analysis/tests/native/talkers.c")),
    ("ids.so", LOGGING),
    ("protected.so", LOGGING),
    ("examples/native/build/synguard.so", include_str!("../examples/native/synguard.c")),
];

/// A function whose arguments are those of the programs that `catena reduce` makes functions of.
const LOGGING: &str = r#"#include <catena/nf.h>
static int init(struct catena_context *cx, void **self)
{
    *self = NULL;
    catena_arg(cx, "log");
    catena_arg(cx, "ids_log");
    return 0;
}
static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self, (void)cx, (void)packets, (void)count;
}
CATENA_NF(catena_nf, .name = "logging", .summary = "passes", .init = init, .process = process);
"#;

/// A block of code in a page, and the line that it begins in.
#[derive(Debug, PartialEq)]
struct Block {
    kind: String,
    line: usize,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

fn catena(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().expect("catena starts")
}

/// Return the pages of a folder, with their names.
fn pages(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).expect("a page"))).collect()
}

/// Return the blocks of a page: those between fences, and those that four blanks set apart.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut after_blank = true;
    for (line, number) in page.lines().zip(1..) {
        let (is_fenced, is_indented) = (open.as_ref().map(|b| !b.kind.is_empty()), line.starts_with("    "));
        let block = |kind: &str, line, text: String| Some(Block { kind: kind.to_owned(), line, text });
        match (line.trim_start().strip_prefix("```"), is_fenced) {
            (Some(_), Some(true)) => blocks.extend(open.take()),
            (None, Some(true)) => open.iter_mut().for_each(|b| b.text += &format!("{line}\n")),
            (Some(kind), _) => {
                blocks.extend(open.take());
                open = block(if kind.is_empty() { "plain" } else { kind }, number + 1, String::new());
            }
            (None, Some(false)) if is_indented || line.is_empty() => {
                open.iter_mut().for_each(|b| b.text += &format!("{line}\n"));
            }
            (None, _) => {
                blocks.extend(open.take());
                if is_indented && after_blank {
                    open = block("", number, format!("{line}\n"));
                }
            }
        }
        after_blank = line.is_empty();
    }
    blocks.extend(open);
    blocks
}

/// Return the chain file that a block makes, if it is a chain, the inside of one, or a call of a function.
fn chain_file(block: &Block, functions: &[String]) -> Option<String> {
    if !["catena", "text", "plain", ""].contains(&&*block.kind) {
        return None;
    }
    // Some show commands beside the chain.
    let is_command = |line: &str| ["catena ", "cc "].iter().any(|program| line.trim().starts_with(program));
    let text: String = block.text.split_inclusive('\n').filter(|line| !is_command(line)).collect();
    let first = text.trim();
    let (name, call) = match first.split_once(" = ") {
        Some((name, call)) if name.chars().all(char::is_alphanumeric) => (Some(name), call),
        _ => (None, first),
    };
    let is_call = functions.iter().any(|function| call.starts_with(&format!("{function}(")));
    let has_path = [" -> ", " <-> "].iter().any(|arrow| text.contains(arrow));
    let is_file = ["chain ", "class ", "let ", "macro "].iter().any(|w| text.lines().any(|l| l.trim().starts_with(w)));
    match (is_file || block.kind == "catena", has_path, name) {
        (true, ..) => Some(text),
        (false, true, _) => Some(format!("chain example {{\n{text}}}\n")),
        (false, false, Some(name)) if is_call => Some(format!("chain example {{\n{text}in -> {name} -> out\n}}\n")),
        (false, false, None) if is_call => Some(format!("chain example {{\nin -> {first} -> out\n}}\n")),
        _ => None,
    }
}

/// Make a file that an example names: a text, or a library of a source in C.
fn make(folder: &Path, name: &str, from: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    if !name.ends_with(".so") {
        return fs::write(path, from).expect("a file");
    }
    let source = folder.join("source.c");
    fs::write(&source, from).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-I"]).arg(root().join("include")).arg("-o").args([path, source]);
    let built = cc.output().expect("`cc` is there: the project is built with it");
    assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
}

/// The comment at the head of the interface in C, as a page; its first block is the function of the others.
fn header(folder: &Path) -> (String, String) {
    let text = fs::read_to_string(root().join("include/catena/nf.h")).expect("the header");
    let head = text.lines().skip(1).map_while(|line| line.strip_prefix(" *").filter(|line| *line != "/"));
    let page: String = head.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    make(folder, "longest.so", &blocks(&page)[0].text);
    ("nf.h".to_owned(), page)
}

#[test]
fn every_example_of_the_manuals_and_the_documentation_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    FILES.iter().for_each(|(name, from)| make(folder.path(), name, from));
    fs::create_dir(folder.path().join("book")).expect("a folder");
    let made = catena(folder.path(), &["functions", "--book", "book"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let functions: Vec<String> =
        catena_functions::registry::FUNCTIONS.iter().map(|function| function.name.to_owned()).collect();

    let manuals = pages(&folder.path().join("book"));
    let mut without: Vec<String> = functions.iter().map(|name| name.to_lowercase() + ".md").collect();
    without.extend(["nf.h", "README.md", "language.md", "tutorial.md", "reduce.md"].map(str::to_owned));
    let mut exceptions = EXCEPTIONS.to_vec();
    let (mut checked, mut findings) = (0, Vec::new());
    let readme = ("README.md".to_owned(), fs::read_to_string(root().join("README.md")).expect("a page"));
    for (page, text) in pages(&root().join("docs")).iter().chain([&readme, &header(folder.path())]).chain(&manuals) {
        for block in blocks(text) {
            let Some(file) = chain_file(&block, &functions) else { continue };
            if EXCEPTIONS.iter().any(|(of, what, _)| of == page && file.contains(what)) {
                exceptions.retain(|(of, what, _)| of != page || !file.contains(what));
                continue;
            }
            without.retain(|manual| manual != page);
            checked += 1;
            fs::write(folder.path().join("example.catena"), &file).expect("a chain file");
            let output = catena(folder.path(), &["check", "example.catena"]);
            let told = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || told.contains("warning") || told.contains("error") {
                findings.push(format!("{page}:{}: {file}{told}", block.line));
            }
        }
    }
    assert!(findings.is_empty(), "{} examples are wrong:\n\n{}", findings.len(), findings.join("\n"));
    assert_eq!(without, Vec::<String>::new(), "pages without an example that is a chain");
    assert_eq!(exceptions, [], "exceptions that no block needs any more");
    assert!(checked >= 24, "{checked} examples");
}

#[test]
fn blocks_are_found_and_wrapped() {
    let page = "a\n\n```text\nin -> ACL() -> out\n```\n\n- b:\n\n  ```catena\n  class x = \"udp\"\n  ```\n\n    ACL()\n\n    # c\n\
                d\n    e\n```text\nnothing\n```\n    nf = ACL(a = 1)\n";
    let found = blocks(page);
    let kinds: Vec<(&str, usize)> = found.iter().map(|block| (&*block.kind, block.line)).collect();
    assert_eq!(kinds, [("text", 4), ("catena", 10), ("", 13), ("text", 19)]);
    let files: Vec<Option<String>> = found.iter().map(|block| chain_file(block, &["ACL".to_owned()])).collect();
    assert_eq!(files[0].as_deref(), Some("chain example {\nin -> ACL() -> out\n}\n"));
    assert_eq!(files[1].as_deref(), Some("  class x = \"udp\"\n"));
    assert_eq!(files[2].as_deref(), Some("chain example {\nin -> ACL()\n\n    # c -> out\n}\n"));
    assert_eq!(files[3], None);
    let named = Block { kind: String::new(), line: 1, text: "    nf = ACL(a = 1)\n".to_owned() };
    let file = chain_file(&named, &["ACL".to_owned()]);
    assert_eq!(file.as_deref(), Some("chain example {\n    nf = ACL(a = 1)\nin -> nf -> out\n}\n"));
}
