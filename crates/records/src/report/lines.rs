//! Figures of lines over an axis, as small pictures side by side.

use std::fmt::Write;

use super::{escape, figure};
use crate::record::Record;

/// A figure.
pub struct Figure<'a> {
    /// Its title.
    pub title: &'a str,
    /// What its horizontal axis is.
    pub axis: &'a str,
    /// The unit of its values.
    pub unit: &'a str,
    /// Its lines, in the order in which they were met.
    pub lines: Vec<Line<'a>>,
}

/// A line of a figure.
pub struct Line<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where, what (None: there is nothing, such as no plan), and what is to be said of it.
    points: Vec<(f64, Option<f64>, &'a str)>,
}

impl Line<'_> {
    /// What stands at `x`.
    pub fn at(&self, x: f64) -> Option<(Option<f64>, &str)> {
        self.points.iter().find(|point| point.0 == x).map(|&(_, value, word)| (value, word))
    }
}

impl Figure<'_> {
    /// All places on its axis, from left to right.
    pub fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.lines.iter().flat_map(|line| &line.points).map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    fn most(&self) -> f64 {
        self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1).fold(0.0, f64::max)
    }

    fn least(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1);
        values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min)
    }
}

/// The figures that records are points of, by title. A point that holds nothing has the
/// value 0 and says why.
pub fn figures(records: &[Record]) -> Vec<Figure<'_>> {
    let mut figures: Vec<Figure<'_>> = Vec::new();
    for (record, point) in records.iter().filter_map(|r| Some((r, r.point.as_ref()?))) {
        let known = figures.iter().position(|f| f.title == point.figure);
        let known = known.unwrap_or_else(|| {
            figures.push(Figure { title: &point.figure, axis: &point.axis, unit: &record.unit, lines: Vec::new() });
            figures.len() - 1
        });
        let word = record.limit.as_deref().unwrap_or_default();
        let value = (record.value != 0.0 || word.is_empty()).then_some(record.value);
        let lines = &mut figures[known].lines;
        let line = lines.iter().position(|line| line.name == point.line).unwrap_or_else(|| {
            lines.push(Line { name: &point.line, points: Vec::new() });
            lines.len() - 1
        });
        lines[line].points.push((point.x, value, word));
    }
    figures.sort_by_key(|figure| figure.title);
    figures
}

const COLORS: [&str; 9] =
    ["#2b6cb0", "#dd6b20", "#2f855a", "#c53030", "#6b46c1", "#b7791f", "#319795", "#d53f8c", "#4a5568"];
/// Figures in a row.
const ACROSS: usize = 3;
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 210.0;
/// From a figure's edges to its axes.
const LEFT: f64 = 48.0;
const BELOW: f64 = 40.0;
const ABOVE: f64 = 26.0;
/// A line of the legend.
const ENTRY: f64 = 16.0;
/// Where values lie this far apart, an axis is logarithmic.
const FAR: f64 = 50.0;

/// A picture of all figures, with one legend for those that have the same lines.
pub fn draw(figures: &[Figure<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in figures.iter().flat_map(|f| &f.lines) {
        if !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    let rows = figures.len().div_ceil(ACROSS);
    let legend = ENTRY * names.len().div_ceil(ACROSS) as f64;
    let (width, height) = (WIDTH * figures.len().min(ACROSS) as f64 + 20.0, HEIGHT * rows as f64 + legend + 24.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (id, figure) in figures.iter().enumerate() {
        panel(&mut svg, figure, &names, (id % ACROSS) as f64 * WIDTH, (id / ACROSS) as f64 * HEIGHT);
    }
    for (id, name) in names.iter().enumerate() {
        let (x, y) = ((id % ACROSS) as f64 * WIDTH + LEFT, HEIGHT * rows as f64 + (id / ACROSS) as f64 * ENTRY + 14.0);
        _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{y}\">{}</text>",
            x + 20.0,
            y - 4.0,
            y - 4.0,
            color(id),
            x + 26.0,
            escape(name)
        );
    }
    svg + "</svg>\n"
}

fn color(id: usize) -> &'static str {
    COLORS[id % COLORS.len()]
}

/// A position on an axis from `low` to `high`, 0 to 1.
fn along(value: f64, low: f64, high: f64, log: bool) -> f64 {
    match log {
        true => (value / low).ln() / (high / low).ln(),
        false if high > low => (value - low) / (high - low),
        false => 0.5,
    }
}

/// One figure with its upper left corner at `x`, `y`.
fn panel(svg: &mut String, shown: &Figure<'_>, names: &[&str], x: f64, y: f64) {
    let places = shown.places();
    let (first, last) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
    let log_x = first > 0.0 && last / first > FAR;
    let log_y = shown.most() / shown.least() > FAR && log_x;
    let low = if log_y { shown.least() } else { 0.0 };
    let high = shown.most().max(f64::MIN_POSITIVE);
    let (wide, high_px) = (WIDTH - LEFT - 16.0, HEIGHT - ABOVE - BELOW);
    let at_x = |value: f64| x + LEFT + wide * along(value, first, last, log_x);
    let at_y = |value: f64| y + ABOVE + high_px * (1.0 - along(value, low, high, log_y));
    let bottom = y + ABOVE + high_px;
    let scale = if log_y { " (logarithmic)" } else { "" };
    _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n\
         <path d=\"M{} {} V{bottom} H{}\" fill=\"none\" stroke=\"#999\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}; {}{scale}</text>\n",
        x + LEFT,
        y + 16.0,
        escape(shown.title),
        x + LEFT,
        y + ABOVE,
        x + LEFT + wide,
        x + LEFT + wide / 2.0,
        bottom + 30.0,
        escape(shown.axis),
        escape(shown.unit)
    );
    for &place in &places {
        _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{place}</text>",
            at_x(place),
            bottom + 14.0
        );
    }
    for value in [low, high] {
        _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            x + LEFT - 5.0,
            at_y(value) + 4.0,
            if value == 0.0 { "0".to_owned() } else { figure(value) }
        );
    }
    // Lines that coincide stay visible: the earlier ones are wider and lie below.
    for (id, line) in shown.lines.iter().enumerate() {
        let color = names.iter().position(|name| *name == line.name).map_or("#000", color);
        let stroke = 1.5 + 5.0 / ((id + 1) * (id + 1)) as f64;
        let there: Vec<(f64, f64)> = line.points.iter().filter_map(|p| Some((at_x(p.0), at_y(p.1?)))).collect();
        let path: Vec<String> = there.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{stroke:.1}\"/>",
            path.join(" ")
        );
        for (x, y) in there {
            _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{color}\"/>", 1.0 + stroke * 0.6);
        }
    }
}
