//! The few shapes that a drawing needs, as SVG text.

use std::fmt::Write as _;

/// The mean width of a letter, relative to the size of the text.
const LETTER: f64 = 0.56;

/// A picture being drawn.
pub(super) struct Svg {
    width: f64,
    body: String,
}

/// A number with at most one digit behind the point.
fn n(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How wide a text is, about.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// The text, cut so that it is about at most `width` wide.
pub(super) fn fitted(text: &str, size: f64, width: f64) -> String {
    let most = (width / (size * LETTER)) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// How a box is painted.
#[derive(Clone, Copy)]
pub(super) struct Paint<'a> {
    pub fill: &'a str,
    pub stroke: &'a str,
    pub radius: f64,
}

impl Svg {
    pub(super) fn new(width: f64) -> Svg {
        Svg { width, body: String::new() }
    }

    /// Text whose left end stands at `x` and whose feet stand at `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, size: f64, fill: &str, weight: &str, text: &str) {
        self.anchored("start", (x, y), size, fill, weight, text);
    }

    /// Text whose middle is at `x`.
    pub(super) fn middle(&mut self, x: f64, y: f64, size: f64, fill: &str, weight: &str, text: &str) {
        self.anchored("middle", (x, y), size, fill, weight, text);
    }

    /// Text whose right end is at `x`.
    pub(super) fn right(&mut self, x: f64, y: f64, size: f64, fill: &str, weight: &str, text: &str) {
        self.anchored("end", (x, y), size, fill, weight, text);
    }

    // Writing to a string never fails, here and below.
    fn anchored(&mut self, anchor: &str, at: (f64, f64), size: f64, fill: &str, weight: &str, text: &str) {
        let (x, y, size, text) = (n(at.0), n(at.1), n(size), escaped(text));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\" font-weight=\"{weight}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A box; `title` is shown by pointing at it.
    pub(super) fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, paint: Paint<'_>, title: &str) {
        let (x, y, width, height, radius) = (n(x), n(y), n(width), n(height), n(paint.radius));
        let (fill, stroke) = (paint.fill, paint.stroke);
        let inside = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) };
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\">{inside}</rect>"
        );
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let (x1, y1, x2, y2, width) = (n(from.0), n(from.1), n(to.0), n(to.1), n(width));
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>"
        );
    }

    /// A curve that leaves and arrives level.
    pub(super) fn curve(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let bend = ((to.0 - from.0) / 2.0).max(10.0);
        let (x1, y1, x2, y2) = (n(from.0), n(from.1), n(to.0), n(to.1));
        let (a, b, width) = (n(from.0 + bend), n(to.0 - bend), n(width));
        let _ = writeln!(
            self.body,
            "<path d=\"M{x1} {y1} C{a} {y1} {b} {y2} {x2} {y2}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>"
        );
    }

    /// The whole picture.
    pub(super) fn finish(self, height: f64) -> String {
        let (width, height) = (n(self.width), n(height));
        let body = self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}
