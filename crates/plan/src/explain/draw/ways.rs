//! The lower half of the picture: each chain's way through the rack, a lane for each device that it meets.

use super::svg::{Paint, Svg, fitted, text_width};
use super::{FAINT, INK, colour};
use crate::plan::{ChainPlan, Device, FunctionPlan, Plan, gigabits};

/// A function's box, and the space between two columns and rows.
const BOX: (f64, f64) = (104.0, 34.0);
const SPACE: (f64, f64) = (34.0, 8.0);
/// Where the lanes' names stand.
const NAMES: f64 = 110.0;
/// Above and below the boxes of a lane.
const PAD: f64 = 8.0;

/// Where each function of a chain stands: its column, its lane, its row in the lane.
struct Grid {
    places: Vec<(usize, usize, usize)>,
    /// Device and name of each lane, and how many rows it has.
    lanes: Vec<(Device, String, usize)>,
    columns: usize,
}

fn rank(device: Device) -> u8 {
    match device {
        Device::P4Switch | Device::OpenFlowSwitch | Device::PlainSwitch => 0,
        Device::SmartNic => 1,
        Device::Server => 2,
    }
}

impl Grid {
    fn of(chain: &ChainPlan) -> Grid {
        let columns = columns(chain);
        let mut lanes: Vec<(Device, String, usize)> = Vec::new();
        for function in &chain.functions {
            if !lanes.iter().any(|(device, on, _)| *device == function.device && *on == function.on) {
                lanes.push((function.device, function.on.clone(), 1));
            }
        }
        lanes.sort_by_key(|(device, ..)| rank(*device));
        let mut places: Vec<(usize, usize, usize)> = Vec::new();
        for (function, &column) in chain.functions.iter().zip(&columns) {
            let own = |(device, on, _): &(Device, String, usize)| *device == function.device && *on == function.on;
            let lane = lanes.iter().position(own).unwrap_or(0);
            let row = places.iter().filter(|(c, l, _)| (*c, *l) == (column, lane)).count();
            if let Some((_, _, rows)) = lanes.get_mut(lane) {
                *rows = (*rows).max(row + 1);
            }
            places.push((column, lane, row));
        }
        Grid { places, lanes, columns: columns.iter().max().map_or(0, |most| most + 1) }
    }

    fn lane_height(rows: usize) -> f64 {
        rows as f64 * (BOX.1 + SPACE.1) - SPACE.1 + 2.0 * PAD
    }

    fn height(&self) -> f64 {
        self.lanes.iter().map(|(.., rows)| Self::lane_height(*rows)).sum()
    }

    /// Where a lane begins, below the first one's border.
    fn above(&self, lane: usize) -> f64 {
        self.lanes.iter().take(lane).map(|(.., rows)| Self::lane_height(*rows)).sum()
    }

    /// The border between lanes along which a way goes that would be hidden by boxes if it went straight.
    fn around(&self, from: usize, to: usize) -> Option<f64> {
        let (Some(&(first, lane, _)), Some(&(last, below, _))) = (self.places.get(from), self.places.get(to)) else {
            return None;
        };
        let hides = |&(column, own, _): &(usize, usize, usize)| first < column && column < last && own == lane;
        let skips = first + 1 < last && (lane != below || self.places.iter().any(hides));
        skips.then(|| self.above(if lane > below { below + 1 } else { below }))
    }

    /// Left upper corner of a function's box, from the lanes' corner.
    fn corner(&self, function: usize) -> (f64, f64) {
        let (column, lane, row) = self.places.get(function).copied().unwrap_or_default();
        let above = self.above(lane);
        let rows = self.lanes.get(lane).map_or(1, |(.., rows)| *rows);
        // A column with fewer boxes than the lane has rows stands in its middle.
        let here = self.places.iter().filter(|(c, l, _)| (*c, *l) == (column, lane)).count();
        let lower = (rows.saturating_sub(here)) as f64 * (BOX.1 + SPACE.1) / 2.0;
        let x = NAMES + SPACE.0 + column as f64 * (BOX.0 + SPACE.0);
        (x, above + PAD + lower + row as f64 * (BOX.1 + SPACE.1))
    }
}

/// The columns of a chain's functions: the longest way to each.
fn columns(chain: &ChainPlan) -> Vec<usize> {
    let mut columns = vec![0; chain.functions.len()];
    // As many rounds as there are functions are enough where edges have no cycle.
    for _ in 0..chain.functions.len() {
        for edge in &chain.edges {
            let next = columns.get(edge.from).map_or(0, |column| column + 1);
            if let Some(column) = columns.get_mut(edge.to).filter(|column| **column < next) {
                *column = next.min(chain.functions.len());
            }
        }
    }
    columns
}

/// How wide the widest chain is.
pub(super) fn width(plan: &Plan) -> f64 {
    let columns = plan.chains.iter().map(|chain| Grid::of(chain).columns).max().unwrap_or(0);
    NAMES + SPACE.0 * 2.0 + columns as f64 * (BOX.0 + SPACE.0)
}

/// Draw all chains below `y`; where they end.
pub(super) fn draw(svg: &mut Svg, plan: &Plan, x: f64, y: f64, width: f64) -> f64 {
    let mut top = y;
    for (id, chain) in plan.chains.iter().enumerate() {
        let told = told(plan, chain);
        top = draw_chain(svg, (chain, &told), colour(id), x, top, width) + 22.0;
    }
    top - 22.0
}

fn draw_chain(svg: &mut Svg, (chain, told): (&ChainPlan, &str), colour: &str, x: f64, y: f64, width: f64) -> f64 {
    svg.rectangle(x, y, 12.0, 12.0, Paint { fill: colour, stroke: "none", radius: 3.0 }, "");
    svg.text(x + 20.0, y + 11.0, 14.0, INK, "600", &chain.name);
    let left = x + 34.0 + text_width(&chain.name, 15.0);
    svg.text(left, y + 11.0, 12.0, INK, "400", told);
    if let Some(bound) = chain.bounds.first() {
        let room = (x + width - left - text_width(told, 12.0) - 20.0).max(120.0);
        svg.right(x + width, y + 11.0, 12.0, FAINT, "400", &fitted(&format!("bound by {bound}"), 12.0, room));
    }
    let grid = Grid::of(chain);
    let top = y + 22.0;
    let mut lane_top = top;
    for (device, on, rows) in &grid.lanes {
        let height = Grid::lane_height(*rows);
        let fill = match device {
            Device::P4Switch | Device::OpenFlowSwitch | Device::PlainSwitch => "#f4f6f8",
            Device::SmartNic => "#f3f7f0",
            Device::Server => "#fbf8f1",
        };
        svg.rectangle(x, lane_top, width, height, Paint { fill, stroke: "#ffffff", radius: 0.0 }, "");
        svg.text(x + 10.0, lane_top + height / 2.0 + 4.0, 12.0, FAINT, "500", &fitted(on, 12.0, NAMES - 10.0));
        lane_top += height;
    }
    let place = |function: usize| {
        let (left, upper) = grid.corner(function);
        (x + left, top + upper)
    };
    let thick = |share: f64| 1.2 + 2.2 * share.clamp(0.0, 1.0);
    for edge in &chain.edges {
        let (from, to) = (place(edge.from), place(edge.to));
        let (from, to) = ((from.0 + BOX.0, from.1 + BOX.1 / 2.0), (to.0, to.1 + BOX.1 / 2.0));
        match grid.around(edge.from, edge.to) {
            None => svg.curve(from, to, colour, thick(edge.share)),
            Some(border) => {
                let (left, right) = ((from.0 + SPACE.0, top + border), (to.0 - SPACE.0, top + border));
                svg.curve(from, left, colour, thick(edge.share));
                svg.line(left, right, colour, thick(edge.share));
                svg.curve(right, to, colour, thick(edge.share));
            }
        }
    }
    // Packets come in by the uppermost lane: from the switch, if there is one.
    for (id, _) in chain.functions.iter().enumerate().filter(|(id, _)| !chain.edges.iter().any(|e| e.to == *id)) {
        let (left, upper) = place(id);
        let first = grid.lanes.first().map_or(0.0, |(.., rows)| Grid::lane_height(*rows));
        let start = (x + NAMES - 6.0, top + first / 2.0);
        svg.dot(start, colour);
        svg.curve(start, (left, upper + BOX.1 / 2.0), colour, thick(1.0));
    }
    for id in (0..chain.functions.len()).filter(|id| !chain.edges.iter().any(|e| e.from == *id)) {
        let (left, upper) = place(id);
        let (from, to) = ((left + BOX.0, upper + BOX.1 / 2.0), (left + BOX.0 + SPACE.0 / 2.0, upper + BOX.1 / 2.0));
        svg.line(from, to, colour, thick(chain.functions.get(id).map_or(1.0, |f| f.share)));
        svg.dot(to, colour);
    }
    for (id, function) in chain.functions.iter().enumerate() {
        draw_function(svg, function, colour, place(id));
    }
    top + grid.height()
}

/// What a chain carries of what it was promised.
fn told(plan: &Plan, chain: &ChainPlan) -> String {
    let promised = chain.promised().map_or_else(|| "nothing promised".to_owned(), |rate| format!("promised {rate}"));
    let delay = chain.d_max_ns.map_or_else(String::new, |most| format!(", promised {:.1}", most / 1e3));
    let carried = match chain.rate_bps {
        _ if plan.has_no_rates() => "what comes".to_owned(),
        bps => format!("{} Gbit/s", gigabits((bps / 1e7).round() * 1e7)),
    };
    format!("carries {carried}, {promised}; delay {:.1} us{delay}", chain.latency_ns / 1e3)
}

fn draw_function(svg: &mut Svg, function: &FunctionPlan, colour: &str, (x, y): (f64, f64)) {
    let on_cores = function.device == Device::Server;
    let fill = if on_cores { colour } else { "#ffffff" };
    let title = format!("{} ({}) on {}: {}", function.name, function.function, function.on, function.why);
    svg.rectangle(x, y, BOX.0, BOX.1, Paint { fill, stroke: colour, radius: 6.0 }, &title);
    let ink = if on_cores { "#ffffff" } else { INK };
    // Of a function in a macro its own name is enough here; the title has the whole.
    let own = function.name.rsplit('.').next().unwrap_or(&function.name);
    let name = fitted(own, 12.0, BOX.0 - 8.0);
    if !on_cores {
        svg.middle(x + BOX.0 / 2.0, y + BOX.1 / 2.0 + 4.0, 12.0, ink, "500", &name);
        return;
    }
    svg.middle(x + BOX.0 / 2.0, y + 15.0, 12.0, ink, "500", &name);
    let cores = fitted(&numbers(&function.cores), 10.0, BOX.0 - 8.0);
    svg.middle(x + BOX.0 / 2.0, y + 28.0, 10.0, ink, "400", &cores);
}

/// Numbers of cores: `core 3`, `cores 2-5, 9`.
#[must_use]
pub(super) fn numbers(cores: &[u32]) -> String {
    let list = crate::plan::ranges(cores);
    match cores.len() {
        0 => String::new(),
        1 => format!("core {list}"),
        _ => format!("cores {list}"),
    }
}
