//! Rows for what classes share in a ratio: cycles, packets, or the packets beyond what each is promised.

use super::{Ask, Linear, Model, Program};
use crate::graph::ClassId;
use crate::promise::{Promise, Subject};

/// What stands in a ratio.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Cycles,
    Packets,
}

/// A member of a ratio: who, its weight, and the packets per second that are not part of it.
type Member<'a> = (&'a Subject, f64, f64);

impl Program<'_> {
    /// Rows for the ratios of this level; who has a part in one is `related`.
    pub(super) fn ratios(&self, model: &mut Model, ask: Ask, related: &mut [bool]) {
        for promise in self.promises {
            let (of, members): (Of, Vec<Member>) = match promise {
                Promise::Cpu(members) => (Of::Cycles, members.iter().map(|(s, weight)| (s, *weight, 0.0)).collect()),
                Promise::Throughput(members) => {
                    (Of::Packets, members.iter().map(|(s, weight)| (s, *weight, 0.0)).collect())
                }
                Promise::Beyond(members) => {
                    (Of::Packets, members.iter().map(|(s, weight, less)| (s, *weight, *less)).collect())
                }
                Promise::Priority(_) | Promise::Rate { .. } => continue,
            };
            let here = |class: &ClassId| self.levels.class[*class] == self.level;
            if members.iter().flat_map(|(subject, ..)| *subject).any(here) {
                self.ratio(model, ask, of, &members, related);
            }
        }
    }

    fn ratio(&self, model: &mut Model, ask: Ask, of: Of, members: &[Member], related: &mut [bool]) {
        let graph = self.graph;
        let weights: f64 = members.iter().map(|(_, weight, _)| weight).sum();
        let rate = |j: &ClassId| graph.classes[*j].packets;
        let cycles = |j: &ClassId| rate(j) * graph.path(*j).map(|m| graph.modules[m].charged()).sum::<f64>();
        let all = members.iter().flat_map(|(subject, ..)| *subject);
        let unit: f64 = if of == Of::Cycles { all.map(cycles).sum() } else { all.map(rate).sum() };
        // What the members have together, of what they would have if all their packets were served.
        let together = model.column(0.0, f64::INFINITY);
        let mut fair = Linear::default();
        for (subject, weight, less) in members {
            let less = less / unit / model.scale;
            let mut own = Linear { constant: -less, ..Linear::default() };
            for class in subject.iter().copied() {
                related[class] = true;
                let exit = graph.classes[class].exit;
                match (of, model.sigma[exit]) {
                    (Of::Cycles, _) => self.cycles(model, class, unit, ask, &mut own),
                    (Of::Packets, Some(exit)) => own.add(exit, rate(&class) / unit),
                    (Of::Packets, None) => own.constant += rate(&class) / unit * self.sigma[exit] / model.scale,
                }
            }
            model.shares.push((own.clone(), together, weight / weights));
            own.terms.insert(together, -weight / weights);
            model.row(0.0, 0.0, &own);
            fair.constant += less;
        }
        fair.terms.extend([(together, 1.0), (model.fair, -1.0)]);
        model.row(0.0, f64::INFINITY, &fair);
    }
}
