//! Rust source without comments and texts, and without its tests.

/// Return source with all comments and the insides of all literals blanked, line by line as before.
pub fn bare(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => text_end(&chars, at),
            'r' | 'b' | 'c' if !at.checked_sub(1).is_some_and(|before| is_word(chars[before])) => {
                raw_end(&chars, at).unwrap_or(at)
            }
            '\'' => letter_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Return whether a character may be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_end(chars: &[char], at: usize) -> usize {
    at + chars[at..].iter().take_while(|c| **c != '\n').count()
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn text_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Return the end of a raw or byte string that begins here.
fn raw_end(chars: &[char], start: usize) -> Option<usize> {
    let letters = chars[start..].iter().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count();
    let raw = chars[start..start + letters].contains(&'r');
    let hashes = chars[start + letters..].iter().take_while(|c| **c == '#').count();
    let open = start + letters + hashes;
    if letters > 2 || chars.get(open) != Some(&'"') || (hashes > 0 && !raw) {
        return None;
    }
    if !raw {
        return Some(text_end(chars, open));
    }
    let closes =
        |at: usize| chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    let close = (open + 1..chars.len()).find(|at| closes(*at))?;
    Some(close + 1 + hashes)
}

/// Return the end of a character literal, unless this is a lifetime.
fn letter_end(chars: &[char], start: usize) -> Option<usize> {
    match chars.get(start + 1)? {
        '\\' => (start + 3..(start + 12).min(chars.len())).find(|at| chars[*at] == '\'').map(|at| at + 1),
        _ => (chars.get(start + 2) == Some(&'\'')).then_some(start + 3),
    }
}

/// Return whether a whole file is test code, by its path.
pub fn is_test_file(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let name = parts[parts.len() - 1];
    let folders = &parts[..parts.len() - 1];
    ["tests", "testing", "benches", "fuzz"].iter().any(|f| folders.contains(f))
        || ["tests.rs", "testing.rs", "bench.rs"].contains(&name) && path != "catena/src/bench.rs"
        || name.ends_with("_tests.rs")
}

/// Return bare source with the modules of tests blanked.
pub fn without_tests(bare: &str) -> String {
    let mut out = String::new();
    let (mut marked, mut inside) = (false, false);
    for line in bare.lines() {
        let code = line.trim();
        if marked && code.starts_with("mod ") && code.ends_with('{') {
            inside = true;
        }
        if !inside {
            out += line;
        }
        out.push('\n');
        // A module at the left margin ends at the left margin.
        inside &= line != "}";
        marked = code == "#[cfg(test)]" || (marked && code.starts_with("#["));
    }
    out
}

#[test]
fn comments_and_texts_are_blanked() {
    let source = "a // b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# 'k' '\\'' &'l str b\"m\" for";
    let words: Vec<String> = bare(source).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "f", "&'l", "str", "for"]);
    let tested = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    let rest = without_tests(tested);
    assert!(rest.contains("fn a") && !rest.contains("fn b") && rest.contains("fn c"));
    assert_eq!(rest.lines().count(), tested.lines().count());
}
