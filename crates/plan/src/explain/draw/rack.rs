//! The upper half of the picture: the switch with its stages, links, servers with their cores.

use super::svg::{Paint, Svg, fitted};
use super::{FAINT, INK, colour};
use crate::plan::{LinkPlan, Plan, ServerPlan, SwitchPlan, gigabits, short};

/// A core's box and the space beside it.
const CORE: f64 = 30.0;
const GAP: f64 = 5.0;
/// Cores side by side at most.
const ROW: u32 = 8;
/// Inside of a server's box.
const PAD: f64 = 14.0;
/// From the switch to the servers.
const CABLE: f64 = 62.0;
/// Servers side by side at most.
const SIDE_BY_SIDE: usize = 6;
/// More servers than this are not drawn if nothing runs on them.
const ALL_DRAWN: usize = 24;

const PLAIN: Paint<'_> = Paint { fill: "#f4f6f8", stroke: "#c3ccd5", radius: 8.0 };
const DEVICE: Paint<'_> = Paint { fill: "#fbfaf7", stroke: "#d3cdbf", radius: 8.0 };
const FREE: Paint<'_> = Paint { fill: "#ffffff", stroke: "#cfd6dd", radius: 4.0 };
const STEERING: Paint<'_> = Paint { fill: "#dfe4e9", stroke: "#b8c2cc", radius: 4.0 };

/// The servers that are drawn.
fn drawn(plan: &Plan) -> Vec<&ServerPlan> {
    let all = plan.servers.len() <= ALL_DRAWN;
    plan.servers.iter().filter(|server| all || !server.subgroups.is_empty()).collect()
}

/// All cores of a server, for steering too.
fn cores(server: &ServerPlan) -> u32 {
    server.cores + server.steering.len() as u32
}

fn server_width(server: &ServerPlan) -> f64 {
    let columns = f64::from(cores(server).clamp(6, ROW));
    columns * (CORE + GAP) - GAP + 2.0 * PAD
}

fn server_height(server: &ServerPlan) -> f64 {
    let rows = f64::from(cores(server).div_ceil(ROW));
    38.0 + rows * (CORE + GAP) + PAD - GAP
}

/// How wide the rack is.
pub(super) fn width(plan: &Plan) -> f64 {
    let servers = drawn(plan);
    let widest = servers.iter().map(|s| server_width(s)).fold(0.0, f64::max);
    let count = servers.len().clamp(1, SIDE_BY_SIDE) as f64;
    (count * (widest + 2.0 * PAD)).max(640.0)
}

/// Draw the rack below `y`; where it ends.
pub(super) fn draw(svg: &mut Svg, plan: &Plan, x: f64, y: f64, width: f64) -> f64 {
    let mut bottom = y;
    if let Some(switch) = &plan.switch {
        bottom = draw_switch(svg, plan, switch, x, y, width);
    }
    let servers = drawn(plan);
    let widest = servers.iter().map(|s| server_width(s)).fold(0.0, f64::max);
    for row in servers.chunks(SIDE_BY_SIDE) {
        let top = bottom + CABLE;
        let space = width / row.len() as f64;
        let mut lowest = top;
        for (i, server) in row.iter().enumerate() {
            let middle = x + space * (i as f64 + 0.5);
            cables(svg, plan, server, (middle, bottom), top, widest.min(space - 8.0));
            let left = middle - server_width(server) / 2.0;
            draw_server(svg, plan, server, left, top);
            lowest = lowest.max(top + server_height(server));
        }
        bottom = lowest;
    }
    let hidden = plan.servers.len() - servers.len();
    if hidden > 0 {
        svg.text(x, bottom + 20.0, 12.0, FAINT, "400", &format!("and {hidden} servers without functions"));
        bottom += 24.0;
    }
    bottom
}

fn draw_switch(svg: &mut Svg, plan: &Plan, switch: &SwitchPlan, x: f64, y: f64, width: f64) -> f64 {
    let height = if switch.stages.is_some() { 74.0 } else { 44.0 };
    svg.rectangle(x, y, width, height, PLAIN, "");
    svg.text(x + PAD, y + 26.0, 14.0, INK, "600", &switch.name);
    let here = |f: &&crate::plan::FunctionPlan| f.device.is_switch();
    let count: usize = plan.chains.iter().map(|c| c.functions.iter().filter(here).count()).sum();
    let functions = match count {
        0 => "no functions".to_owned(),
        1 => "1 function".to_owned(),
        n => format!("{n} functions"),
    };
    svg.right(x + width - PAD, y + 26.0, 12.0, FAINT, "400", &format!("{}, {functions}", switch.kind));
    if let Some((used, all)) = switch.stages {
        let label = format!("{used} of {all} taken");
        let left = x + PAD;
        let room = width - 2.0 * PAD - 110.0;
        let cell = (room / all.max(1) as f64).min(64.0);
        for stage in 0..all {
            let taken = stage < used;
            let paint = Paint {
                fill: if taken { "#8fa6bd" } else { "#ffffff" },
                stroke: if taken { "#7f97af" } else { "#cfd6dd" },
                radius: 3.0,
            };
            svg.rectangle(
                left + stage as f64 * cell,
                y + 42.0,
                cell - 3.0,
                18.0,
                paint,
                &format!("stage {}", stage + 1),
            );
        }
        svg.text(left + all as f64 * cell + 8.0, y + 56.0, 12.0, FAINT, "400", &label);
    }
    y + height
}

/// The links of a server: a line each, as thick as what it carries, with a gauge.
fn cables(svg: &mut Svg, plan: &Plan, server: &ServerPlan, from: (f64, f64), to: f64, width: f64) {
    let links: Vec<&LinkPlan> = plan.links.iter().filter(|link| link.server == server.name).collect();
    let space = width / links.len().max(1) as f64;
    for (i, link) in links.iter().enumerate() {
        let x = from.0 - width / 2.0 + space * (i as f64 + 0.5);
        let load = if link.bps > 0.0 { (link.used_bps / link.bps).clamp(0.0, 1.0) } else { 0.0 };
        if plan.switch.is_some() {
            svg.line((x, from.1 + 1.0), (x, to - 1.0), "#aeb9c4", 2.0 + 8.0 * load);
        }
        let gauge = (space - 10.0).clamp(40.0, 120.0);
        let (left, y) = (x - gauge / 2.0, from.1 + 18.0);
        svg.rectangle(
            left - 4.0,
            y - 3.0,
            gauge + 8.0,
            30.0,
            Paint { fill: "#ffffff", stroke: "none", radius: 2.0 },
            "",
        );
        svg.rectangle(left, y, gauge, 8.0, Paint { radius: 2.0, ..FREE }, &link.name);
        let fill = if load > 0.999 { "#c0392b" } else { "#5b7a99" };
        if load > 0.0 {
            svg.rectangle(left, y, gauge * load, 8.0, Paint { fill, stroke: "none", radius: 2.0 }, &link.name);
        }
        let (used, all) = (gigabits(round(link.used_bps)), gigabits(link.bps));
        let kind = if link.smart { "SmartNIC " } else { "" };
        svg.middle(
            x,
            y + 22.0,
            11.0,
            INK,
            "400",
            &fitted(&format!("{kind}{used} of {all} Gbit/s"), 11.0, space + 12.0),
        );
    }
}

/// To ten megabits: more digits tell nothing in a picture.
fn round(bps: f64) -> f64 {
    (bps / 1e7).round() * 1e7
}

fn draw_server(svg: &mut Svg, plan: &Plan, server: &ServerPlan, x: f64, y: f64) {
    let width = server_width(server);
    svg.rectangle(x, y, width, server_height(server), DEVICE, "");
    svg.text(x + PAD, y + 24.0, 14.0, INK, "600", &fitted(&server.name, 14.0, width - 110.0));
    let used = short(server.cores_used);
    svg.right(x + width - PAD, y + 24.0, 12.0, FAINT, "400", &format!("{used} of {} cores", server.cores));
    for core in 0..cores(server) {
        let left = x + PAD + f64::from(core % ROW) * (CORE + GAP);
        let top = y + 38.0 + f64::from(core / ROW) * (CORE + GAP);
        draw_core(svg, plan, server, core, left, top);
    }
}

fn draw_core(svg: &mut Svg, plan: &Plan, server: &ServerPlan, core: u32, x: f64, y: f64) {
    if server.steering.contains(&core) {
        svg.rectangle(x, y, CORE, CORE, STEERING, &format!("core {core}: reads packets and steers them"));
        svg.middle(x + CORE / 2.0, y + 19.0, 10.0, FAINT, "400", "in/out");
        return;
    }
    svg.rectangle(x, y, CORE, CORE, FREE, &format!("core {core}"));
    let worker = server.workers.iter().find(|worker| worker.core == core);
    let mut filled = 0.0;
    for part in worker.map_or(&[][..], |worker| &worker.parts) {
        let Some(subgroup) = server.subgroups.get(part.subgroup) else { continue };
        let chain = plan.chains.iter().position(|chain| chain.name == subgroup.chain).unwrap_or(0);
        let title = format!("core {core}: {}: {}", subgroup.chain, subgroup.functions.join(" -> "));
        let paint = Paint { fill: colour(chain), stroke: "none", radius: if part.share > 0.99 { 4.0 } else { 2.0 } };
        svg.rectangle(x, y + filled * CORE, CORE, part.share * CORE, paint, &title);
        filled += part.share;
    }
    let ink = if filled > 0.5 { "#ffffff" } else { FAINT };
    svg.middle(x + CORE / 2.0, y + 19.5, 12.0, ink, "500", &core.to_string());
}
