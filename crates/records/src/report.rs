//! Tables and plots from benchmark results, and the comparison of two revisions.

mod grid;
mod lines;

use std::fmt::Write;

use crate::record::Record;

/// Return a table of records as Markdown, which reads well as plain text too; behind it one for each figure that
/// records are points of.
pub fn table(records: &[Record]) -> String {
    let single: Vec<&Record> = records.iter().filter(|r| r.point.is_none()).collect();
    let figures = lines::figures(records);
    let tables = std::iter::once(cases(&single)).filter(|text| !text.is_empty());
    tables.chain(figures.iter().map(grid::table)).collect::<Vec<_>>().join("\n")
}

/// A row a record. Columns in which no record has anything are left out.
fn cases(records: &[&Record]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut peers: Vec<&str> = Vec::new();
    for (name, _) in records.iter().flat_map(|r| &r.peer) {
        if !peers.contains(&&**name) {
            peers.push(name);
        }
    }
    let any = |has: fn(&Record) -> bool| records.iter().any(|r| has(r));
    let (bars, papers) = (any(|r| r.holds().is_some()), any(|r| r.paper.is_some()));
    let (spreads, limits) = (any(|r| r.spread > 0.0), any(|r| r.limit.is_some()));
    let mut heading = vec!["case", if papers { "ours" } else { "value" }, "unit"];
    heading.extend(spreads.then_some("spread"));
    heading.extend(papers.then_some(["paper", "ours/paper"]).into_iter().flatten());
    heading.extend(bars.then_some(["bar", "held"]).into_iter().flatten());
    heading.extend(&peers);
    heading.extend(limits.then_some("what limits it"));
    let number = |value: Option<f64>| value.map_or(String::new(), figure);
    let rows = records.iter().map(|r| {
        let mut row = vec![r.case.clone(), figure(r.value), r.unit.clone()];
        row.extend(spreads.then(|| figure(r.spread)));
        if papers {
            row.extend([number(r.paper), r.paper.map_or(String::new(), |paper| ratio(r.value, paper))]);
        }
        if bars {
            let held = r.holds().map_or("", |held| if held { "yes" } else { "no" });
            row.extend([bar(r), held.to_owned()]);
        }
        row.extend(peers.iter().map(|p| number(r.peer.iter().find(|(name, _)| name == p).map(|(_, v)| *v))));
        row.extend(limits.then(|| r.limit.clone().unwrap_or_default()));
        row
    });
    let heading = heading.into_iter().map(str::to_owned).collect();
    markdown(&std::iter::once(heading).chain(rows).collect::<Vec<Vec<String>>>())
}

/// What a record is held to, in words.
fn bar(record: &Record) -> String {
    match (record.bar, record.floor) {
        (Some(most), Some(least)) => format!("{} to {}", figure(least), figure(most)),
        (Some(most), None) => format!("at most {}", figure(most)),
        (None, Some(least)) => format!("at least {}", figure(least)),
        (None, None) => String::new(),
    }
}

/// Ours relative to the paper's.
fn ratio(ours: f64, paper: f64) -> String {
    match ours / paper {
        _ if ours == paper => "1.00".to_owned(),
        ratio if !ratio.is_finite() => "-".to_owned(),
        ratio if ratio > 0.0 && ratio < 0.01 => format!("1/{:.0}", 1.0 / ratio),
        ratio => format!("{ratio:.2}"),
    }
}

/// Return a table that compares two revisions case by case.
pub fn compare(old: &[Record], new: &[Record]) -> String {
    let mut rows = vec![["case", "unit", "before", "after", "after/before"].map(str::to_owned).to_vec()];
    for after in new {
        let before = old.iter().find(|r| r.bench == after.bench && r.case == after.case && r.unit == after.unit);
        let ratio = before.map_or("new".to_owned(), |b| format!("{:.2}", after.value / b.value));
        let before = before.map_or(String::new(), |b| figure(b.value));
        rows.push(vec![after.case.clone(), after.unit.clone(), before, figure(after.value), ratio]);
    }
    for gone in old.iter().filter(|r| !new.iter().any(|n| n.bench == r.bench && n.case == r.case && n.unit == r.unit)) {
        rows.push(vec![gone.case.clone(), gone.unit.clone(), figure(gone.value), String::new(), "gone".to_owned()]);
    }
    markdown(&rows)
}

/// Return an SVG picture: of the figures that records are points of, if there are any; else a bar chart of the
/// records of one unit.
pub fn plot(records: &[Record], unit: &str) -> String {
    let figures = lines::figures(records);
    if figures.is_empty() { bars(records, unit) } else { lines::draw(&figures) }
}

/// Ours, the bar each is held to as a tick, and peers as paler bars.
fn bars(records: &[Record], unit: &str) -> String {
    const WIDTH: f64 = 900.0;
    const LABEL: f64 = 330.0;
    const LINE: f64 = 16.0;
    let records: Vec<&Record> = records.iter().filter(|r| r.unit == unit).collect();
    let largest = records.iter().flat_map(|r| r.peer.iter().map(|p| p.1).chain([r.value])).fold(1.0, f64::max);
    // A logarithmic scale: peers differ by orders of magnitude.
    let x = |value: f64| LABEL + (WIDTH - LABEL - 70.0) * (1.0 + value.max(0.0)).ln() / (1.0 + largest).ln();
    let lines: usize = records.iter().map(|r| 2 + r.peer.len()).sum();
    let height = LINE * lines as f64 + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LABEL}\" y=\"16\" fill=\"#555\">{} (logarithmic; a red tick is the bar)</text>\n",
        escape(unit)
    );
    let mut y = 28.0;
    let mut bar = |name: &str, value: f64, color: &str, y: f64| {
        let (width, text) = (x(value) - LABEL, y + LINE - 5.0);
        _ = write!(
            svg,
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n<rect x=\"{LABEL}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{}\" fill=\"{color}\"/>\n<text x=\"{:.1}\" y=\"{text}\" fill=\"#333\">{}</text>\n",
            LABEL - 8.0,
            escape(name),
            LINE - 4.0,
            x(value) + 6.0,
            figure(value)
        );
    };
    let mut ticks = String::new();
    for record in records {
        bar(&record.case, record.value, "#2b6cb0", y);
        if let Some(limit) = record.bar {
            let at = x(limit);
            _ = writeln!(
                ticks,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#c53030\" stroke-width=\"2\"/>",
                y - 2.0,
                y + LINE - 2.0
            );
        }
        y += LINE;
        for (name, value) in &record.peer {
            bar(name, *value, "#cbd5e0", y);
            y += LINE;
        }
        y += LINE;
    }
    svg + &ticks + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn figure(value: f64) -> String {
    match value.abs() {
        // Counts, and bars.
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn markdown(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        if i == 0 {
            let rules = widths.iter().map(|width| "-".repeat(*width));
            _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Point;

    fn record(case: &str, value: f64) -> Record {
        Record { bench: "b".into(), case: case.into(), unit: "cycles".into(), value, ..Record::default() }
    }

    #[test]
    fn a_missed_bar_is_said() {
        let missed = Record { bar: Some(20.0), peer: vec![("Other".into(), 24.0)], ..record("a", 25.0) };
        let text = table(std::slice::from_ref(&missed));
        assert!(text.contains("| at most 20 | no   | 24    |") && text.contains("Other"), "{text}");
        let svg = plot(&[missed], "cycles");
        assert!(svg.starts_with("<svg") && svg.contains("stroke=\"#c53030\""));
    }

    #[test]
    fn papers_stand_beside_ours() {
        let paper = |value, paper| Record { paper: Some(paper), floor: Some(1.0), ..record("a", value) };
        let text = table(&[paper(2.0, 4.0), paper(1.0, 1000.0), paper(0.0, 0.0), paper(3.0, 0.0)]);
        let ratios: Vec<&str> = text.lines().skip(2).filter_map(|line| line.split('|').nth(5)).map(str::trim).collect();
        assert_eq!(ratios, ["0.50", "1/1000", "1.00", "-"], "{text}");
        assert!(text.contains("at least 1") && !text.contains("spread"), "{text}");
    }

    #[test]
    fn points_become_figures() {
        let point = |x: f64, line: &str, value: f64| {
            let point = Point { figure: "2a".into(), axis: "delta".into(), x, line: line.into() };
            Record { point: Some(point), ..record("p", value) }
        };
        let lost = Record { limit: Some("no plan".into()), ..point(1.0, "B", 0.0) };
        let records = [point(0.5, "A", 3.0), point(1.0, "A", 2.0), point(0.5, "B", 1.0), lost];
        let text = table(&records);
        assert!(text.starts_with("2a, in cycles:\n") && text.contains("| 1     | 2 | -"), "{text}");
        let svg = plot(&records, "cycles");
        assert!(
            svg.starts_with("<svg") && svg.matches("<polyline").count() == 2 && svg.matches("<circle").count() == 3
        );
    }

    #[test]
    fn two_revisions_are_compared_by_case() {
        let text = compare(&[record("a", 10.0), record("b", 1.0)], &[record("a", 5.0), record("c", 1.0)]);
        assert!(text.contains("0.50") && text.contains("new") && text.contains("gone"), "{text}");
    }
}
