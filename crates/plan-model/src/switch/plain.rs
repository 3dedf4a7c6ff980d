//! A switch that only forwards: no function fits.

use super::{Feasible, Overflow, Verdict, members};
use crate::problem::Problem;

/// A switch that only forwards, or none at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Feasible for Plain {
    fn verdict(&self, _problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let overflows = members(on_switch).into_iter().map(|(chain, node)| Overflow::Unable { chain, node }).collect();
        Verdict { overflows, proven: true, ..Verdict::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Objective, Replication};
    use crate::profile::Overheads;

    #[test]
    fn holds_nothing() {
        let problem = Problem {
            chains: Vec::new(),
            servers: Vec::new(),
            smart_nics: Vec::new(),
            switch: None,
            overheads: Overheads::default(),
            bounce_ns: 0.0,
            switch_ns: 0.0,
            replication: Replication::ByState,
            relations: Vec::new(),
            unseen: Vec::new(),
            objective: Objective::Marginal,
        };
        assert!(Plain.verdict(&problem, &[vec![false, false]]).fits());
        assert!(!Plain.verdict(&problem, &[vec![false, true]]).fits());
        assert_eq!(Plain.conflict(&problem, &[vec![true, true], vec![true]]), Some(vec![(1, 0)]));
    }
}
