//! What a reduction has taken out and why, as a table and as JSON.

use std::fmt;

/// The three kinds of redundant logic (Deng and Wu, NFReducer, §II-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Logic {
    /// Done, and its result is never used.
    Unused,
    /// Done before, with the same result.
    Duplicated,
    /// Done, and undone by what comes after.
    Overwritten,
}

impl Logic {
    /// Return its name.
    pub fn name(self) -> &'static str {
        match self {
            Logic::Unused => "unused",
            Logic::Duplicated => "duplicated",
            Logic::Overwritten => "overwritten",
        }
    }
}

/// Redundant logic that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of which kind it is.
    pub logic: Logic,
    /// The module that it is in.
    pub module: String,
    /// The work.
    pub what: String,
    /// Why nothing would come of it; or why it stays.
    pub why: String,
    /// Whether it was taken out.
    pub taken: bool,
}

/// Everything that was found in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What was taken out, and what looks redundant and stays.
    pub findings: Vec<Finding>,
    /// The modules that parse headers first on some way; all others use what they found, reduced or not.
    pub parsers: Vec<String>,
}

impl Findings {
    /// Return what was taken out.
    pub fn taken(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.taken)
    }

    /// Return the findings as JSON.
    pub fn json(&self) -> serde_json::Value {
        let one = |f: &Finding| {
            serde_json::json!({
                "logic": f.logic.name(), "module": f.module, "what": f.what, "why": f.why, "taken_out": f.taken
            })
        };
        serde_json::json!({
            "findings": self.findings.iter().map(one).collect::<Vec<_>>(),
            "headers_parsed_by": self.parsers,
        })
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (taken, title) in [(true, "taken out"), (false, "stays")] {
            let rows: Vec<[&str; 4]> = self
                .findings
                .iter()
                .filter(|finding| finding.taken == taken)
                .map(|finding| [finding.logic.name(), finding.module.as_str(), &finding.what, &finding.why])
                .collect();
            if rows.is_empty() {
                if taken {
                    writeln!(f, "nothing is redundant here\n")?;
                }
                continue;
            }
            table(f, &["logic", "module", title, "why"], &rows)?;
            writeln!(f)?;
        }
        match &self.parsers[..] {
            [] => writeln!(f, "headers are not parsed: nothing reads them"),
            parsers => writeln!(f, "headers are parsed once a packet, by {}", parsers.join(" or ")),
        }
    }
}

/// Columns as wide as their widest cell; the last is left ragged.
fn table(f: &mut fmt::Formatter<'_>, head: &[&str; 4], rows: &[[&str; 4]]) -> fmt::Result {
    let all = || std::iter::once(head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for row in all() {
        for (cell, width) in row.iter().zip(widths) {
            write!(f, "{cell:<width$}  ")?;
        }
        writeln!(f, "{}", row[3])?;
    }
    Ok(())
}
