//! The one format of all benchmark results: a JSON line a case.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// One measured case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The benchmark.
    pub bench: String,
    /// The case; what identifies it comes first.
    pub case: String,
    /// The unit of `value`.
    pub unit: String,
    /// The median.
    pub value: f64,
    /// Largest minus smallest of the samples.
    pub spread: f64,
    /// The bar that the value is held to, where there is one: at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<f64>,
    /// The bar where more is better: at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// What the paper measured, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    /// What peers need, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<(String, f64)>,
    /// What limits the value now, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Where the value stands in a figure, if it is one of many that people rather look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

impl Record {
    /// Whether the value keeps its bar; None: it has none.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        // What was computed to be equal may differ in its last digits.
        let most = self.bar.map(|bar| self.value <= bar * (1.0 + 1e-9));
        let least = self.floor.map(|floor| self.value >= floor * (1.0 - 1e-9));
        match (most, least) {
            (None, None) => None,
            (most, least) => Some(most.unwrap_or(true) && least.unwrap_or(true)),
        }
    }
}

/// A place in a figure: a line over an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The figure's title.
    pub figure: String,
    /// What its horizontal axis is, with the unit.
    pub axis: String,
    /// Where on the axis.
    pub x: f64,
    /// The line that goes through it.
    pub line: String,
}

/// A file with a line that is no record.
#[derive(Debug)]
pub struct BadLine {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for BadLine {}

/// Read the records of a text.
///
/// # Errors
/// The first line that is no record.
pub fn parse(text: &str) -> Result<Vec<Record>, BadLine> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let record = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| BadLine { line: i + 1, what: error.to_string() })
    };
    lines.map(record).collect()
}

/// Write records to a file, making its folder if need be.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, records: &[Record]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::File::create(path)?;
    for record in records {
        writeln!(file, "{}", serde_json::to_string(record)?)?;
    }
    Ok(())
}

/// Write records to a file in place of those of the same case and unit; its others stay, in their order.
///
/// # Errors
/// The system's, or what in the file is no record.
pub fn update(path: &Path, records: &[Record]) -> std::io::Result<()> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    let mut all = parse(&text).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
    for record in records {
        let same = |old: &&mut Record| old.bench == record.bench && old.case == record.case && old.unit == record.unit;
        match all.iter_mut().find(same) {
            Some(old) => *old = record.clone(),
            None => all.push(record.clone()),
        }
    }
    write(path, &all)
}

/// Remove from a file the records of this benchmark whose cases begin with `word`, unless they are among those `made`: what
/// an older program measured, and this one does not.
///
/// # Errors
/// The system's, or what in the file is no record.
pub fn retire(path: &Path, bench: &str, word: &str, made: &[Record]) -> std::io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let mut all = parse(&text).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
    let same = |old: &Record, new: &Record| old.case == new.case && old.unit == new.unit;
    all.retain(|old| old.bench != bench || !old.case.starts_with(word) || made.iter().any(|new| same(old, new)));
    write(path, &all)
}

/// Return the median and the spread of samples.
pub fn median(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    match samples {
        [] => (0.0, 0.0),
        [first, .., last] => {
            let spread = *last - *first;
            (samples[samples.len() / 2], spread)
        }
        [only] => (*only, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_held_from_below_and_from_above() {
        let record = |bar, floor| Record { value: 2.0, bar, floor, ..Record::default() };
        assert_eq!(record(None, None).holds(), None);
        assert_eq!(record(Some(2.0), None).holds(), Some(true));
        assert_eq!(record(Some(1.9), None).holds(), Some(false));
        assert_eq!(record(None, Some(2.1)).holds(), Some(false));
        assert_eq!(record(Some(3.0), Some(1.0)).holds(), Some(true));
    }

    #[test]
    fn what_an_older_program_measured_is_retired() {
        let record = |bench: &str, case: &str| Record { bench: bench.into(), case: case.into(), ..Record::default() };
        let folder = tempfile();
        let all = [record("a", "run x"), record("a", "run y"), record("a", "solve x"), record("b", "run x")];
        write(&folder, &all).unwrap();
        retire(&folder, "a", "run ", &[record("a", "run y")]).unwrap();
        let left = parse(&std::fs::read_to_string(&folder).unwrap()).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(left, all[1..]);
    }

    fn tempfile() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("catena-records-{}", std::process::id()))
    }

    #[test]
    fn records_come_back() {
        let point = Point { figure: "2a".into(), axis: "delta".into(), x: 0.5, line: "Lemur".into() };
        let record = Record {
            bench: "b".into(),
            case: "a: x".into(),
            value: 1.5,
            bar: Some(2.0),
            point: Some(point),
            ..Record::default()
        };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(parse(&format!("\n{line}\n")).unwrap(), [record]);
        assert_eq!(parse("{}\n").unwrap_err().line, 1);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), (2.0, 2.0));
    }
}
