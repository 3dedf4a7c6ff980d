//! Random ratios of CPU time among classes, the same in every run (Lan's dissertation, §5.5.2: "we randomly
//! generate the value of ratios").

use catena_packet::random::SplitMix64;
use catena_plan::alpine::{Graph, Promise};

/// What ratios are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// What classes get when some modules drop packets: ratios that some partition holds.
    Attainable,
    /// From 1 to 10 whatever the graph; most need a classifier in front.
    Any,
    /// Attainable ones of every other class; the rest share evenly what is left. No closed form: an integer program.
    EveryOther,
}

impl Draw {
    /// What it is called in a record.
    pub fn name(self) -> &'static str {
        match self {
            Draw::Attainable => "attainable promises",
            Draw::Any => "any promises",
            Draw::EveryOther => "attainable promises of every other class",
        }
    }

    /// The ratios of one trial, a subject for each class.
    pub fn promise(self, graph: &Graph, trial: u64) -> Promise {
        let mut random = SplitMix64::new(trial + 1);
        let weights = match self {
            Draw::Attainable | Draw::EveryOther => held(graph, &mut random),
            Draw::Any => graph.classes.iter().map(|_| 1.0 + 9.0 * unit(&mut random)).collect(),
        };
        let step = if self == Draw::EveryOther { 2 } else { 1 };
        Promise::Cpu(weights.iter().enumerate().step_by(step).map(|(j, w)| (vec![j], *w)).collect())
    }
}

/// What classes get when a third of the modules drop some packets. Classes with the same path get the same.
fn held(graph: &Graph, random: &mut SplitMix64) -> Vec<f64> {
    let mut sigma = vec![1.0; graph.modules.len()];
    for (m, module) in graph.modules.iter().enumerate() {
        let drops = unit(random) < 0.34;
        let part = 0.4 + 0.6 * unit(random);
        sigma[m] = module.upstream.map_or(1.0, |up| sigma[up]) * if drops { part } else { 1.0 };
    }
    let cycles = |j: usize| graph.path(j).map(|m| sigma[m] * graph.modules[m].charged()).sum();
    (0..graph.classes.len()).map(cycles).collect()
}

/// From 0 to 1.
fn unit(random: &mut SplitMix64) -> f64 {
    random.bits() as f64 / u64::MAX as f64
}
