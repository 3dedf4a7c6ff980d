//! Random ratios of CPU time among classes, the same in every run (Lan's dissertation, §5.5.2: "we randomly
//! generate the value of ratios").

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
        let mut random = Random(trial + 1);
        let weights = match self {
            Draw::Attainable | Draw::EveryOther => held(graph, &mut random),
            Draw::Any => graph.classes.iter().map(|_| 1.0 + 9.0 * random.next()).collect(),
        };
        let step = if self == Draw::EveryOther { 2 } else { 1 };
        Promise::Cpu(weights.iter().enumerate().step_by(step).map(|(j, w)| (vec![j], *w)).collect())
    }
}

/// What classes get when a third of the modules drop some packets. Classes with the same path get the same.
fn held(graph: &Graph, random: &mut Random) -> Vec<f64> {
    let mut sigma = vec![1.0; graph.modules.len()];
    for (m, module) in graph.modules.iter().enumerate() {
        let drops = random.next() < 0.34;
        let part = 0.4 + 0.6 * random.next();
        sigma[m] = module.upstream.map_or(1.0, |up| sigma[up]) * if drops { part } else { 1.0 };
    }
    let cycles = |j: usize| graph.path(j).map(|m| sigma[m] * graph.modules[m].charged()).sum();
    (0..graph.classes.len()).map(cycles).collect()
}

/// Numbers that are the same in every run (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", SplitMix).
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) as f64 / u64::MAX as f64
    }
}
