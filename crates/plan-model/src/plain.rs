//! What parsers find wrong with a file, in plain words: theirs are about their own insides.

use serde_json::error::Category;

/// What is wrong with a text that should be JSON of a certain shape, in words without a place.
#[must_use]
pub fn json(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof if error.line() <= 1 && error.column() == 0 => "the file is empty".to_owned(),
        Category::Eof => "the file ends in the middle".to_owned(),
        Category::Io | Category::Syntax => "this is not JSON".to_owned(),
        Category::Data => {
            let message = error.to_string();
            // serde_json says the place at the end of its message too.
            shape(message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what))
        }
    }
}

/// What is not as it should be in a text that is JSON.
fn shape(message: &str) -> String {
    let (kind, rest) = message.split_once(' ').unwrap_or((message, ""));
    match kind {
        "missing" => format!("{} is missing", rest.trim_start_matches("field ")),
        "duplicate" => format!("{} is there twice", rest.trim_start_matches("field ")),
        "unknown" => {
            let rest = rest.trim_start_matches("variant ").trim_start_matches("field ");
            let (found, expected) = rest.split_once(", expected ").unwrap_or((rest, "something else"));
            format!("{found} is not known; expected {}", expected.trim_start_matches("one of "))
        }
        "invalid" => {
            let rest = rest.split_once(": ").map_or(rest, |(_, rest)| rest);
            match rest.split_once(", expected ") {
                Some((found, expected)) => format!("{}; expected {}", value(found), expected_value(expected)),
                None => rest.to_owned(),
            }
        }
        _ => message.to_owned(),
    }
}

/// A value as serde names it.
fn value(found: &str) -> String {
    for (theirs, plain) in [("string ", ""), ("integer ", ""), ("floating point ", ""), ("boolean ", "")] {
        if let Some(rest) = found.strip_prefix(theirs) {
            return format!("{plain}{rest} is of the wrong kind");
        }
    }
    let plain = match found {
        "map" => "an object",
        "sequence" => "a list",
        "null" => "null",
        other => return other.to_owned(),
    };
    format!("{plain} is of the wrong kind")
}

/// What serde expects.
fn expected_value(expected: &str) -> String {
    match expected {
        "f32" | "f64" => "a number".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number that is not below 0".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other if other.starts_with("enum ") || other.starts_with("internally tagged enum ") => {
            "another value".to_owned()
        }
        other => other.to_owned(),
    }
}

/// What is wrong with a text that should be TOML, by its parser's message.
#[must_use]
pub fn toml(message: &str) -> String {
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    match what {
        "string values must be quoted" => {
            "a value is missing here, or a text without quotes: `name = \"rack\"`".to_owned()
        }
        "invalid basic string" | "invalid literal string" => format!("this text is not closed: {expected} is missing"),
        "duplicate key" => "this is given twice".to_owned(),
        "key with no value" => "a key without a value: expected `key = value`".to_owned(),
        "invalid key-value pair" | "missing table open" => {
            "this is neither `key = value` nor a section such as `[switch]`".to_owned()
        }
        _ if what.starts_with("unclosed ") => {
            let what = match what.trim_start_matches("unclosed ") {
                "array" => "this list",
                "array table" | "table" => "the name of this section",
                _ => "this table",
            };
            format!("{what} is not closed: {expected} is missing")
        }
        _ => format!("this cannot be read as TOML: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Server;

    fn told(text: &str) -> String {
        json(&serde_json::from_str::<Server>(text).expect_err("it is wrong"))
    }

    #[test]
    fn what_is_wrong_with_json_is_said_without_the_parser_s_words() {
        assert_eq!(told("x = 1"), "this is not JSON");
        assert_eq!(told(""), "the file is empty");
        assert_eq!(told("{\"name\": \"a\""), "the file ends in the middle");
        assert_eq!(told("{\"name\": \"a\"}"), "`cores` is missing");
        assert_eq!(told("{\"name\": 1}"), "`1` is of the wrong kind; expected a text in quotes");
        assert_eq!(
            told("{\"cores\": \"x\"}"),
            "\"x\" is of the wrong kind; expected a whole number that is not below 0"
        );
        assert_eq!(told("{\"clock_hz\": []}"), "a list is of the wrong kind; expected a number");
        assert_eq!(told("{\"cores\": 1, \"cores\": 1}"), "`cores` is there twice");
    }
}
