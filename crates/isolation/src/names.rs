//! Names as a person reads them: those of cgroups are their makers' to choose, tenants among them.

/// The most characters of a name in a table.
const WIDEST: usize = 60;

/// Return whether a character is not seen itself, and may move what is: control characters, and those that turn the direction of writing.
pub fn is_hidden(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_format
}

/// Return a text without characters that move the cursor, end the line or turn the direction of writing: they are escaped, so that no name
/// can look like another, or like a row or message of its own.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { printable.extend(c.escape_default()) } else { printable.push(c) }
    }
    printable
}

/// Return a name for a table: printable, and without its middle where it is long.
pub fn in_table(name: &str) -> String {
    let name = printable(name);
    let count = name.chars().count();
    if count <= WIDEST {
        return name;
    }
    // Paths of containers begin alike, and end with what tells them apart.
    let (head, tail) = (WIDEST / 2 - 1, WIDEST / 2);
    name.chars().take(head).chain(['…']).chain(name.chars().skip(count - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(printable("/a\x1b[31m\r/\n\u{7f}\u{9b}2J\u{202e}"), "/a\\u{1b}[31m\\r/\\n\\u{7f}\\u{9b}2J\\u{202e}");
        // Service managers write `-` so, in names that must be found again.
        assert_eq!(printable("/system-a\\x2db.slice/ü (x)"), "/system-a\\x2db.slice/ü (x)");
    }

    #[test]
    fn a_long_name_keeps_its_begin_and_end() {
        let long = format!("/begin{}end", "x".repeat(200));
        let cut = in_table(&long);
        assert!(cut.starts_with("/begin") && cut.ends_with("end") && cut.contains('…'), "{cut}");
        assert_eq!(cut.chars().count(), WIDEST);
        let whole = "ä".repeat(WIDEST);
        assert_eq!(in_table(&whole), whole);
        // Escapes count.
        assert_eq!(in_table(&"\n".repeat(WIDEST)).chars().count(), WIDEST);
    }
}
