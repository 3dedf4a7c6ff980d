//! What a plan asks to be done where another one runs, for people.

use std::fmt;

use catena_plan::delta::{Delta, Move, Part, Step};
use catena_plan::plan::Plan;

use super::table::percent;
use crate::table::Table;

/// What has to be done, step by step.
pub struct Changes<'a> {
    /// The plan that is to run.
    pub plan: &'a Plan,
    /// The way there.
    pub delta: &'a Delta,
}

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, delta) = (self.delta.epoch, self.delta);
        if !delta.changed.is_empty() {
            writeln!(
                f,
                "\nSince epoch {} was planned, these have changed: {}.",
                epoch.saturating_sub(1),
                delta.changed.join(", ")
            )?;
        }
        if delta.is_empty() {
            return writeln!(f, "\nNothing has to be done: what runs is what epoch {epoch} plans.");
        }
        writeln!(f, "\nFrom epoch {} to {epoch}, in this order:\n", epoch.saturating_sub(1))?;
        let mut table = Table::new(&["", "do", "instance", "slots", "of"], &[true, false, false, false, false]);
        for (step, number) in delta.steps.iter().zip(1..) {
            let number = number.to_string();
            let [verb, instance, slots, of] = cells(step);
            table.row([number, verb, instance, slots, of]);
            if let Step::Enter { moves, .. } = step {
                // In the same moment.
                for [verb, instance, slots, of] in moves.iter().map(moved) {
                    table.row([String::new(), verb, instance, slots, of]);
                }
            }
        }
        write!(f, "{table}")?;
        self.consequences(f)
    }
}

/// Flows that go over.
fn moved(one: &Move) -> [String; 4] {
    let verb = if one.gone { "recover" } else { "move" };
    [verb.to_owned(), format!("{} to {}", one.from, one.to), few(&one.slots.to_string()), one.functions.join(", ")]
}

/// What is done, to whom, of which slots, and of what.
fn cells(step: &Step) -> [String; 4] {
    let functions = |functions: &[String]| functions.join(", ");
    let none = String::new;
    match step {
        Step::Start { instance, functions: own, .. } => ["start".into(), instance.clone(), none(), functions(own)],
        Step::Give { to, slots, functions: own } => {
            ["give".into(), to.clone(), few(&slots.to_string()), functions(own)]
        }
        Step::Move(one) => moved(one),
        Step::End { from, functions: own } => ["end".into(), from.clone(), none(), functions(own)],
        Step::Install { spi, chain } => ["install".into(), format!("path {spi}"), none(), chain.clone()],
        Step::Enter { paths, .. } => {
            let paths: Vec<String> = paths.iter().map(u32::to_string).collect();
            ["enter".into(), "by the new entrances".into(), none(), format!("paths {}", paths.join(", "))]
        }
        Step::Equip { on, with } => {
            let with: Vec<String> = with.iter().map(Part::to_string).collect();
            ["equip".into(), on.clone(), none(), with.join(", ")]
        }
        Step::Remove { spi, chain } => ["remove".into(), format!("path {spi}"), none(), chain.clone()],
        Step::Stop { instance } => ["stop".into(), instance.clone(), none(), none()],
    }
}

impl Changes<'_> {
    /// What that is to live flows.
    fn consequences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delta = self.delta;
        let of_chain = |chain: &str| -> f64 {
            let own = delta
                .moves()
                .flat_map(|one| &one.functions)
                .filter(|function| function.split('/').next() == Some(chain));
            own.map(|function| delta.moved(function)).fold(0.0, f64::max)
        };
        let mut moved: Vec<(String, f64)> =
            self.plan.chains.iter().map(|c| (c.name.clone(), of_chain(&c.name))).collect();
        moved.retain(|(_, part)| *part > 0.0);
        let mut ended: Vec<&str> = Vec::new();
        for step in &delta.steps {
            if let Step::End { functions, .. } = step {
                ended.extend(functions.iter().map(String::as_str));
            }
        }
        ended.sort_unstable();
        ended.dedup();
        writeln!(f)?;
        if moved.is_empty() && ended.is_empty() && !delta.reclassifies() {
            return writeln!(f, "No live flow changes its instance.");
        }
        if !moved.is_empty() {
            let parts: Vec<String> =
                moved.iter().map(|(chain, part)| format!("{} of {chain}", percent(*part))).collect();
            writeln!(f, "Live flows that change their instance: {}.", parts.join(", "))?;
        }
        if delta.moves().any(|one| one.gone) {
            writeln!(
                f,
                "What is recovered ran on what is no more: what it knew of flows is lost, unless it is kept elsewhere."
            )?;
        }
        if !ended.is_empty() {
            writeln!(f, "Flows end in {}.", ended.join(", "))?;
        }
        if delta.reclassifies() {
            writeln!(f, "Classes are others, or of other chains: live flows whose class changes go to another chain.")?;
        }
        Ok(())
    }
}

/// Slots, or how many there are where that takes a line of its own.
fn few(slots: &str) -> String {
    const MOST: usize = 24;
    if slots.len() <= MOST { slots.to_owned() } else { format!("{} and others", slots.split(',').next().unwrap_or("")) }
}
