//! What a compiler in use gets wrong is not written.
//!
//! Optimised by rustc 1.95 (rust-lang/rust issue 158206), `n += u16::from(was)` may vanish where `was` is branched on
//! afterwards. The tests in `compiler` find exactly what was lost; this rule keeps the usual form from being written.

use super::code::bare;
use super::files::with_ending;
use super::none;

/// The program that the compiler is tried with.
const PROBE: &str = "tests/compiler/probe.rs";
const INTEGERS: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];

/// Return whether a line of code changes a number by what may be a `bool`: `n += u32::from(found)`, `n -= (a < b) as u8`.
///
/// An argument is taken for a number when it is read from an array or from bytes; others are widened with `as`.
fn changes_by_bool(line: &str) -> bool {
    let Some((_, value)) = ["+= ", "-= ", "|= ", "^= ", "*= "].iter().find_map(|sign| line.split_once(sign)) else {
        return false;
    };
    let compares = |text: &str| ["==", "!=", " < ", " > ", "<=", ">=", "!", ".is_"].iter().any(|s| text.contains(s));
    if let Some(argument) = INTEGERS.iter().find_map(|name| value.strip_prefix(name)?.strip_prefix("::from(")) {
        return compares(argument) || !(argument.contains('[') || argument.contains("_bytes("));
    }
    value.rsplit_once(" as ").is_some_and(|(cast, _)| compares(cast))
}

#[test]
fn no_number_changes_by_a_bool() {
    let mut findings = Vec::new();
    for file in with_ending(&["rs"]).into_iter().filter(|file| file.path != PROBE) {
        let code = bare(&file.text);
        let wrong = code.lines().zip(1..).filter(|(line, _)| changes_by_bool(line));
        findings.extend(wrong.map(|(line, number)| format!("{}:{number}: {}", file.path, line.trim())));
    }
    none(
        &findings,
        "Write `if found { n += 1 }`: rustc 1.95 may lose `n += u32::from(found)`. Widen a number with `as`.",
    );
}

#[test]
fn the_rule_tells_bools_from_numbers() {
    for wrong in [
        "self.free += u16::from(was);",
        "n -= usize::from(a[0] == 1);",
        "mask |= u32::from(x && y) << 3;",
        "n += (a < b) as u32;",
        "n += u8::from(map.remove(k).is_some());",
    ] {
        assert!(changes_by_bool(wrong), "{wrong}");
    }
    for right in [
        "sum += u32::from(pair[0]) << 8;",
        "total += u64::from(u32::from_ne_bytes(last));",
        "at += k as usize;",
        "if was { n += 1 }",
        "let n = u32::from(was);",
    ] {
        assert!(!changes_by_bool(right), "{right}");
    }
}
