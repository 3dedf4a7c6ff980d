//! The tutorial's commands, run: each must print what stands below it in the page; and what the README shows.
//!
//! A block behind `<!-- file: NAME -->` is a file, a block of kind `console` has commands (`$ …`) and what they
//! print. Times, cycles and rates differ from run to run and do not count. After a change,
//! `CATENA_BLESS=1 cargo test -p catena --test main tutorial` writes what is printed now into the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Columns of a table whose figures are never the same.
const VOLATILE: [&str; 3] = ["cycles/packet", "p50", "p99"];
/// Units of times and rates.
const UNITS: [&str; 6] = ["ns", "us", "ms", "s", "Mpps", "cycles"];

/// A piece of the page.
#[derive(Debug, PartialEq)]
enum Piece {
    /// Lines that are only read.
    Text(String),
    /// A file of this name.
    File(String, String),
    /// A command and what it prints.
    Run(String, String),
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

/// Take a page apart.
fn pieces(page: &str) -> Vec<Piece> {
    let (mut pieces, mut name, mut kind) = (Vec::new(), None, None);
    let text = |line: &str| Piece::Text(format!("{line}\n"));
    for line in page.lines() {
        if let Some(opened) = line.strip_prefix("```") {
            kind = if kind.is_some() { None } else { Some(opened.to_owned()) };
            pieces.push(text(line));
            match name.take() {
                Some(name) if kind.is_some() => pieces.push(Piece::File(name, String::new())),
                _ => {}
            }
            continue;
        }
        if let Some(file) = line.strip_prefix("<!-- file: ") {
            name = Some(file.trim_end_matches(" -->").to_owned());
        }
        match (kind.as_deref(), line.strip_prefix("$ "), pieces.last_mut()) {
            (Some("console"), Some(command), _) => pieces.push(Piece::Run(command.to_owned(), String::new())),
            (Some("console"), None, Some(Piece::Run(_, body))) | (Some(_), None, Some(Piece::File(_, body))) => {
                *body += line;
                body.push('\n');
            }
            _ => pieces.push(text(line)),
        }
    }
    pieces
}

/// Run a command as a shell does, with `catena` among the programs; returns all that it prints.
fn run(folder: &Path, programs: &Path, command: &str) -> String {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("PATH", path).args(["-c", &format!("exec 2>&1; {command}")]);
    let output = shell.output().expect("there is a shell");
    let printed = String::from_utf8(output.stdout).expect("text is printed");
    printed.trim_end().lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Return the words of a text that must be the same in every run.
fn lasting(text: &str) -> Vec<String> {
    let mut lasting = Vec::new();
    let mut volatile: Vec<(usize, usize)> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let below = lines.get(i + 1).copied().unwrap_or("");
        let is_rule = |line: &str| line.starts_with("--") && line.chars().all(|c| c == '-' || c == ' ');
        if is_rule(line) {
            continue;
        }
        if is_rule(below) {
            volatile = columns(below).into_iter().filter(|c| VOLATILE.contains(&cut(line, *c).trim())).collect();
        } else if line
            .split(' ')
            .next()
            .is_none_or(|first| first.is_empty() && !line.starts_with(' ') || first.ends_with(':'))
        {
            // Behind the table stand lines such as `nat: 906 mappings`.
            volatile.clear();
        }
        let kept: String = line
            .chars()
            .enumerate()
            .map(|(at, c)| if volatile.iter().any(|(from, to)| (*from..*to).contains(&at)) { ' ' } else { c })
            .collect();
        let words: Vec<&str> = kept.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map_or("", |next| next.trim_end_matches([',', ')', ';']));
            let is_figure = word.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
            let is_unit = at > 0 && UNITS.contains(&word.trim_end_matches([',', ')', ';']));
            match () {
                () if is_figure && UNITS.contains(&next) => lasting.push("?".to_owned()),
                () if is_unit => {}
                () => lasting.push((*word).to_owned()),
            }
        }
        lasting.push("\n".to_owned());
    }
    lasting
}

/// Return where the columns are that a rule of dashes underlines; each reaches to the next one.
fn columns(rule: &str) -> Vec<(usize, usize)> {
    let ends = |at: usize| rule[at..].find(' ').map_or(rule.len(), |length| at + length);
    let starts =
        (0..rule.len()).filter(|at| rule.as_bytes()[*at] == b'-' && (*at == 0 || rule.as_bytes()[at - 1] == b' '));
    starts.map(|at| (at, ends(at))).collect()
}

fn cut(line: &str, (from, to): (usize, usize)) -> String {
    line.chars().skip(from).take(to - from).collect()
}

#[test]
fn the_tutorial_prints_what_it_says() {
    let repository = repository();
    let page: PathBuf = repository.join("docs/tutorial.md");
    let text = fs::read_to_string(&page).expect("the tutorial is there");
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).expect("a folder can be made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_catena"), programs.join("catena")).expect("a link can be made");

    let (mut blessed, mut findings, mut count) = (String::new(), Vec::new(), 0);
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => blessed += &text,
            Piece::File(name, body) => {
                fs::write(folder.path().join(name), &body).expect("a file can be written");
                blessed += &body;
            }
            Piece::Run(command, expected) => {
                count += 1;
                let printed = run(folder.path(), &programs, &command);
                if lasting(&printed) != lasting(&expected) {
                    findings.push(format!("$ {command}\n{printed}instead of\n{expected}"));
                }
                blessed += &format!("$ {command}\n{printed}");
            }
        }
    }
    assert!(count > 5, "the tutorial has commands");
    if std::env::var_os("CATENA_BLESS").is_some() {
        fs::write(&page, blessed).expect("the tutorial can be written");
        return;
    }
    let list = findings.join("\n");
    assert!(findings.is_empty(), "docs/tutorial.md says something else (CATENA_BLESS=1 rewrites it):\n{list}");
}

#[test]
fn the_readme_shows_what_make_run_prints() {
    let repository = repository();
    let makefile = fs::read_to_string(repository.join("Makefile")).expect("there is a Makefile");
    let recipe = makefile.lines().find_map(|line| line.strip_prefix("\t$(CATENA) run "));
    let arguments = recipe.expect("`make run` runs the command").split_whitespace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = command.current_dir(&repository).arg("run").args(arguments).output().expect("catena starts");
    let printed = String::from_utf8(output.stdout).expect("text is printed");
    let readme = fs::read_to_string(repository.join("README.md")).expect("there is a README");
    let (_, shown) = readme.split_once("<!-- run -->\n```text\n").expect("the README shows a run");
    let (shown, _) = shown.split_once("```\n").expect("the block ends");
    assert_eq!(lasting(&printed), lasting(shown), "README.md shows another run than\n{printed}");
}

#[test]
fn the_chain_in_the_readme_is_good() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("there is a README");
    let (_, chain) = readme.split_once("```catena\n").expect("the README has a chain");
    let (chain, _) = chain.split_once("```\n").expect("the block ends");
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let file = folder.path().join("readme.catena");
    fs::write(&file, chain).expect("a file can be written");
    for arguments in [&["check"][..], &["fmt", "--check"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        let output = command.args(arguments).arg(&file).output().expect("catena starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// But for the one that needs interfaces and root.
#[test]
fn the_commands_in_the_readme_work_as_they_stand_there() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("there is a README");
    let (_, chain) = readme.split_once("```catena\n").expect("the README has a chain");
    let (chain, rest) = chain.split_once("```\n").expect("the block ends");
    let (commands, _) = rest.split_once("\n## ").expect("a section follows");
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    fs::write(folder.path().join("edge.catena"), chain).expect("a file can be written");
    let examples = repository().join("examples").canonicalize().expect("there are examples");
    std::os::unix::fs::symlink(examples, folder.path().join("examples")).expect("a link can be made");
    let run = commands.lines().filter_map(|line| line.strip_prefix("    catena "));
    let count = run.clone().count();
    assert!(count >= 6, "{count} commands are few");
    for command in run {
        let line = format!("{} {command}", env!("CARGO_BIN_EXE_catena"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(&folder).output().expect("a shell starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn figures_of_a_run_do_not_count() {
    let before = "name  packets     p50  why\n----  -------  ------  ---\nacl        12  1.0 us  rule: 2\nacl: 12 rules\n\n1,000 in, in 0.1 s (2 Mpps, 30 cycles a packet)\n";
    let after = "name  packets       p50  why\n----  -------  --------  ---\nacl        12  370.1 ms  rule: 2\nacl: 12 rules\n\n1,000 in, in 0.27 s (1.5 Mpps, 8 cycles a packet)\n";
    let other = after.replace("12", "13");
    assert_eq!(lasting(before), lasting(after));
    assert_ne!(lasting(before), lasting(&other));
}

#[test]
fn a_page_is_taken_apart() {
    let page = "a\n<!-- file: x -->\n```text\nb\n```\n```console\n$ c\nd\n$ e\n```\n";
    let text = |text: &str| Piece::Text(text.to_owned());
    let expected = [
        text("a\n"),
        text("<!-- file: x -->\n"),
        text("```text\n"),
        Piece::File("x".to_owned(), "b\n".to_owned()),
        text("```\n"),
        text("```console\n"),
        Piece::Run("c".to_owned(), "d\n".to_owned()),
        Piece::Run("e".to_owned(), String::new()),
        text("```\n"),
    ];
    assert_eq!(pieces(page), expected);
}
