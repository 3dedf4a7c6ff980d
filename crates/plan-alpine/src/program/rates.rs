//! Rows for promised rates.

use std::collections::BTreeMap;

use super::{Linear, Model, Program};
use crate::graph::{ClassId, ModuleId};
use crate::promise::Promise;

/// The part of what classes may have together that each later level of them finds left at least.
const LEFT: f64 = 1e-3;

/// What is kept for later levels, as a part of what they are promised: solvers compute with tolerances.
pub(crate) const ROOM: f64 = 1.001;

impl Program<'_> {
    /// Rows for what `subject` has at least and at most of packets per second. Classes of lower levels have nothing yet:
    /// what the subject is promised is held where the last of it is decided.
    pub(super) fn bounded(&self, model: &mut Model, subject: &[ClassId], least: f64, most: Option<f64>) {
        let mut later: Vec<usize> =
            subject.iter().map(|class| self.levels.class[*class]).filter(|level| *level > self.level).collect();
        later.sort_unstable();
        later.dedup();
        let least = if later.is_empty() { least } else { 0.0 };
        // About 1, as the columns are.
        let unit = most.unwrap_or(least).max(1.0);
        let sum = |model: &Model, at: &dyn Fn(ClassId) -> ModuleId| {
            let mut sum = Linear::default();
            for class in subject {
                let packets = self.graph.classes[*class].packets / unit * model.scale;
                match model.sigma[at(*class)] {
                    Some(column) => sum.add(column, packets),
                    None => sum.constant += packets * self.sigma[at(*class)] / model.scale,
                }
            }
            sum
        };
        let leaves = sum(model, &|class| self.graph.classes[class].exit);
        model.row(least / unit, f64::INFINITY, &leaves);
        if let Some(most) = most {
            // What a queue further down drops has entered.
            let enters = sum(model, &|class| self.graph.entry(class));
            // What later levels are promised of it is not for this one, and something is left for them in any case.
            let left = (most / unit - enters.constant).max(0.0);
            let kept = (self.promised_later(subject) * ROOM).max(LEFT * most * later.len() as f64) / unit;
            model.row(f64::NEG_INFINITY, enters.constant + (left - kept).max(0.0), &enters);
        }
    }

    /// Packets per second that later levels have at least of what `subject` has together.
    fn promised_later(&self, subject: &[ClassId]) -> f64 {
        let mut sum = 0.0;
        for promise in self.promises {
            let Promise::Rate { subject: own, least, .. } = promise else { continue };
            if self.levels.is_later(own, self.level) && own.iter().all(|class| subject.contains(class)) {
                sum += least;
            }
        }
        sum
    }

    /// Rows for what this level has to hand on so that a subject of later levels can have what it is promised.
    pub(super) fn reached(&self, model: &mut Model, subject: &[ClassId], least: f64) {
        let all: f64 = subject.iter().map(|class| self.graph.classes[*class].packets).sum();
        for class in subject {
            let above = self.graph.path(*class).find_map(|m| model.sigma[m]);
            if let Some(sigma) = above {
                let part = (least / all / model.scale).min(1.0 / model.scale);
                model.row(part, f64::INFINITY, &Linear { terms: BTreeMap::from([(sigma, 1.0)]), constant: 0.0 });
            }
        }
    }
}
