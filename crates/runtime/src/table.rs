//! Plain tables for terminals: columns as wide as they need, numbers to the right.

use std::fmt;

/// A table with a heading.
pub struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Make a table; `right` says which columns hold numbers.
    pub fn new(heading: &[&str], right: &[bool]) -> Self {
        Table { right: right.to_vec(), rows: vec![heading.iter().map(|&h| h.to_owned()).collect()] }
    }

    /// Add a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let gap = if line.is_empty() { "" } else { "  " };
                match right {
                    true => line += &format!("{gap}{cell:>width$}"),
                    false => line += &format!("{gap}{cell:<width$}"),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
            if i == 0 {
                let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
                writeln!(f, "{}", rule.join("  "))?;
            }
        }
        Ok(())
    }
}

/// Return a number with its thousands set apart.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Return a time in the unit that suits it.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(&["name", "packets"], &[false, true]);
        table.row(["acl".to_owned(), thousands(1_234_567)]);
        table.row(["monitor".to_owned(), thousands(12)]);
        let expected = "name       packets\n-------  ---------\nacl      1,234,567\nmonitor         12\n";
        assert_eq!(table.to_string(), expected);
        assert_eq!([time(999), time(1500), time(2_000_000_000)], ["999 ns", "1.5 us", "2.0 s"]);
    }
}
