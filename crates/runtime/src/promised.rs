//! What each chain was promised, and what it got.

use std::fmt;

use catena_policy::{Chain, PolicyGraph};
use serde::Serialize;

use crate::entered::Entered;
use crate::report::Report;
use crate::table::{Table, thousands};

/// A promise that is missed by less than this part of it is kept: packets in hand at the end count for nobody.
const ROUNDING: f64 = 0.02;

/// What came of a file's promises. Rates are means over the run.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Promised {
    /// By chain, in the order of the file.
    pub chains: Vec<Outcome>,
    /// Packets that the ports lost.
    #[serde(skip)]
    pub lost: u64,
}

/// What one chain was promised, and what it got.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Its name.
    pub chain: String,
    /// Bits per second guaranteed; 0: none.
    pub t_min_bps: u64,
    /// Bits per second allowed; None: all that come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_max_bps: Option<u64>,
    /// Bits per second that came for it; absent where packets enter it by no function: nobody counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came_bps: Option<f64>,
    /// Bits per second that its functions took in; absent as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried_bps: Option<f64>,
    /// Whether it carried what came, or what it was promised of that; absent where no rate is promised, where nobody counts, or
    /// where the ports lost packets before anyone saw whose they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}

impl Promised {
    /// Hold the chains of a file against what a run measured.
    pub fn of(graph: &PolicyGraph, report: &Report) -> Promised {
        let lost = report.lost_at_ports();
        let row = |chain: &Chain| {
            let bps = |bytes: u64| bytes as f64 * 8.0 / report.seconds.max(1e-9);
            let entered = Entered::of(graph, chain, report);
            let is_counted = entered.is_some();
            let Entered { came, taken } = entered.unwrap_or_default();
            let promise = chain.promise;
            let (came_bps, carried_bps) = (bps(came), bps(taken));
            let least = came_bps.min(promise.t_min_bps as f64) * (1.0 - ROUNDING);
            Outcome {
                chain: chain.name.clone(),
                t_min_bps: promise.t_min_bps,
                t_max_bps: promise.t_max_bps,
                came_bps: is_counted.then_some(came_bps),
                carried_bps: is_counted.then_some(carried_bps),
                // Who carried all that is promised did, whatever was lost.
                kept: match carried_bps >= promise.t_min_bps as f64 * (1.0 - ROUNDING) {
                    _ if promise.t_min_bps == 0 || !is_counted => None,
                    true => Some(true),
                    false => (lost == 0).then_some(carried_bps >= least),
                },
            }
        };
        Promised { chains: graph.chains.iter().map(row).collect(), lost }
    }
}

/// Bits per second as people write them.
fn rate(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{:.2} Gbit/s", bps / 1e9),
        bps if bps >= 1e6 => format!("{:.1} Mbit/s", bps / 1e6),
        bps if bps >= 1e3 => format!("{:.1} kbit/s", bps / 1e3),
        bps => format!("{bps:.0} bit/s"),
    }
}

impl fmt::Display for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["chain", "promised", "came", "taken in", ""], &[false, true, true, true, false]);
        for row in &self.chains {
            let promised = match (row.t_min_bps, row.t_max_bps) {
                (0, None) => "-".to_owned(),
                (0, Some(most)) => format!("up to {}", rate(most as f64)),
                (least, None) => format!("{} or more", rate(least as f64)),
                (least, Some(most)) => format!("{} to {}", rate(least as f64), rate(most as f64)),
            };
            let kept = match row.kept {
                Some(true) => "kept",
                Some(false) => "NOT KEPT",
                None if row.t_min_bps > 0 => "not known",
                None => "",
            };
            let [came, carried] = [row.came_bps, row.carried_bps].map(|bps| bps.map_or_else(|| "-".to_owned(), rate));
            table.row([row.chain.clone(), promised, came, carried, kept.to_owned()]);
        }
        write!(f, "\n{table}")?;
        if self.lost > 0 {
            writeln!(f, "{} packets were lost before they were read, and count for no chain", thousands(self.lost))?;
        }
        Ok(())
    }
}
