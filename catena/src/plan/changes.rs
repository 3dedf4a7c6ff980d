//! What a plan asks to be done where another one runs, for people.

use std::fmt;

use catena_plan::delta::{Delta, Step};
use catena_plan::plan::{Device, Plan};

use super::table::percent;
use crate::table::Table;

/// What has to be done, step by step.
pub struct Changes<'a> {
    /// The plan that is to run.
    pub plan: &'a Plan,
    /// The way there.
    pub delta: &'a Delta,
    /// What is not as it was when what runs was planned.
    pub changed: &'a [&'static str],
}

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, delta) = (self.delta.epoch, self.delta);
        if !self.changed.is_empty() {
            writeln!(
                f,
                "\nSince epoch {} was planned, these have changed: {}.",
                epoch.saturating_sub(1),
                self.changed.join(", ")
            )?;
        }
        if delta.is_empty() {
            return writeln!(f, "\nNothing has to be done: what runs is what epoch {epoch} plans.");
        }
        writeln!(f, "\nFrom epoch {} to {epoch}, in this order:\n", epoch.saturating_sub(1))?;
        let mut table = Table::new(&["", "do", "instance", "slots", "of"], &[true, false, false, false, false]);
        for (step, number) in delta.steps.iter().zip(1..) {
            let functions = |functions: &[String]| functions.join(", ");
            let (verb, instance, slots, of) = match step {
                Step::Start { instance, functions: own, .. } => {
                    ("start", instance.clone(), String::new(), functions(own))
                }
                Step::Give { to, slots, functions: own } => ("give", to.clone(), slots.to_string(), functions(own)),
                Step::Move { from, to, slots, functions: own, gone } => {
                    let verb = if *gone { "recover" } else { "move" };
                    (verb, format!("{from} to {to}"), slots.to_string(), functions(own))
                }
                Step::End { from, functions: own } => ("end", from.clone(), String::new(), functions(own)),
                Step::Install { spi, chain } => ("install", format!("path {spi}"), String::new(), chain.clone()),
                Step::Enter { paths } => {
                    let paths: Vec<String> = paths.iter().map(u32::to_string).collect();
                    ("enter", "by the new classes".to_owned(), String::new(), format!("paths {}", paths.join(", ")))
                }
                Step::Remove { spi, chain } => ("remove", format!("path {spi}"), String::new(), chain.clone()),
                Step::Stop { instance } => ("stop", instance.clone(), String::new(), String::new()),
            };
            table.row([number.to_string(), verb.to_owned(), instance, few(&slots), of]);
        }
        write!(f, "{table}")?;
        let moved = |chain: &catena_plan::plan::ChainPlan| {
            // What a switch or a card keeps of flows is the same wherever it is.
            let functions = chain.functions.iter().filter(|function| function.device == Device::Server);
            functions.map(|own| delta.moved(&format!("{}/{}", chain.name, own.name))).fold(0.0, f64::max)
        };
        let parts: Vec<String> = self
            .plan
            .chains
            .iter()
            .map(|chain| (chain, moved(chain)))
            .filter(|(_, part)| *part > 0.0)
            .map(|(chain, part)| format!("{} of {}", percent(part), chain.name))
            .collect();
        match parts.is_empty() {
            true => writeln!(f, "\nNo live flow changes its instance."),
            false => writeln!(f, "\nLive flows that change their instance: {}.", parts.join(", ")),
        }
    }
}

/// Slots, or how many there are where that takes a line of its own.
fn few(slots: &str) -> String {
    const MOST: usize = 24;
    if slots.len() <= MOST { slots.to_owned() } else { format!("{} and others", slots.split(',').next().unwrap_or("")) }
}
