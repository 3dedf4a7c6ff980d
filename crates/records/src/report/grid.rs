//! A figure as a table: a row a place on its axis, a column a line.

use super::lines::Figure;
use super::{figure, markdown};

/// The figure's title and its table as Markdown.
pub fn table(shown: &Figure<'_>) -> String {
    let heading = std::iter::once(shown.axis.to_owned()).chain(shown.lines.iter().map(|line| line.name.to_owned()));
    let cell = |line: &super::lines::Line<'_>, x: f64| match line.at(x) {
        None => String::new(),
        Some((None, why)) => if why == "no plan" { "-" } else { why }.to_owned(),
        Some((Some(value), "not proven")) => format!("{} (not proven)", figure(value)),
        Some((Some(value), _)) => figure(value),
    };
    let row = |&x: &f64| std::iter::once(x.to_string()).chain(shown.lines.iter().map(|line| cell(line, x))).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heading.collect()).chain(shown.places().iter().map(row)).collect();
    format!("{}, in {}:\n\n{}", shown.title, shown.unit, markdown(&rows))
}
