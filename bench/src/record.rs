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
    /// What the paper measured, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    /// What peers need, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<(String, f64)>,
    /// What limits the value now, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
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
    fn records_come_back() {
        let record = Record { bench: "b".into(), case: "a: x".into(), value: 1.5, bar: Some(2.0), ..Record::default() };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(parse(&format!("\n{line}\n")).unwrap(), [record]);
        assert_eq!(parse("{}\n").unwrap_err().line, 1);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), (2.0, 2.0));
    }
}
