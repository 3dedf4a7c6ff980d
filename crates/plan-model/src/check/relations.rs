//! Whether chains are in the ratios that the file asks for, by the words of the file.
//!
//! What a planner computes with (factors, caps) is not used: the measure is worked out again from the relation's text and
//! from the chains. Who comes first is not judged: rates alone do not tell whether another placement gave more.

use super::{TOLERANCE, Violation};
use crate::problem::{Chain, Problem};
use crate::relation::{Member, Relation};

/// A thousand bits per second are nothing.
const NOTHING_BPS: f64 = 1e3;

/// The relations that these rates break.
pub(super) fn broken(problem: &Problem, rates_bps: &[f64]) -> Vec<Violation> {
    let mut found = Vec::new();
    for relation in &problem.relations {
        let Relation::Ratio { text, members } = relation else { continue };
        if members.iter().any(|member| member.chain >= rates_bps.len()) || !holds(problem, rates_bps, text, members) {
            found.push(Violation::Unrelated { relation: text.clone() });
        }
    }
    found
}

/// Whether nobody has less than another, but for chains that can have no more.
fn holds(problem: &Problem, rates_bps: &[f64], text: &str, members: &[Member]) -> bool {
    let Some(measures) = measures(problem, text, members) else { return false };
    let has: Vec<f64> = members.iter().zip(&measures).map(|(m, measure)| measure.of(rates_bps[m.chain])).collect();
    // What `NOTHING_BPS` are in the measure of the chain for which they count most.
    let nothing = measures.iter().map(|measure| measure.per_bit * NOTHING_BPS).fold(0.0, f64::max);
    members.iter().zip(&has).all(|(member, mine)| {
        let full = rates_bps[member.chain] >= member.cap_bps * (1.0 - TOLERANCE);
        full || has.iter().all(|other| *other <= mine + TOLERANCE * other.abs() + nothing)
    })
}

/// What is in the ratio, divided by the chain's weight.
struct Measure {
    per_bit: f64,
    from_bps: f64,
}

impl Measure {
    fn of(&self, rate_bps: f64) -> f64 {
        (rate_bps - self.from_bps) * self.per_bit
    }
}

/// The measure of each member by the relation's text, such as `cpu a : b = 1 : 9`; None: the text tells none, or has not a
/// weight for each member. What has no text of that form is measured as the problem says.
fn measures(problem: &Problem, text: &str, members: &[Member]) -> Option<Vec<Measure>> {
    let word = text.split_whitespace().next().unwrap_or_default();
    if !["cpu", "throughput", "share"].contains(&word) {
        return Some(members.iter().map(|m| Measure { per_bit: m.factor, from_bps: m.from_bps }).collect());
    }
    let (_, weights) = text.rsplit_once('=')?;
    let weights = weights.split(':').map(|weight| weight.trim().parse().ok()).collect::<Option<Vec<f64>>>()?;
    if weights.len() != members.len() || weights.iter().any(|weight| !(*weight > 0.0 && weight.is_finite())) {
        return None;
    }
    let measure = |(member, weight): (&Member, f64)| {
        let chain = &problem.chains[member.chain];
        let bits = 8.0 * chain.packet_bytes;
        match word {
            "cpu" => Measure { per_bit: cycles(chain) / bits / weight, from_bps: 0.0 },
            "throughput" => Measure { per_bit: 1.0 / bits / weight, from_bps: 0.0 },
            _ => Measure { per_bit: 1.0 / weight, from_bps: chain.t_min_bps },
        }
    };
    Some(members.iter().zip(weights).map(measure).collect())
}

/// Cycles of servers that a packet of the chain takes, wherever its functions run.
fn cycles(chain: &Chain) -> f64 {
    let mut sum = 0.0;
    for node in &chain.nodes {
        sum += node.server.map_or(0.0, |cycles| cycles * node.share);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::tests::{line, problem};
    use super::*;

    /// Two chains of 1,000 and 500 cycles a packet, the second with half a promise, in this relation.
    fn related(text: &str, cap_bps: f64) -> Problem {
        let mut problem = problem();
        problem.chains = vec![line(&[400.0, 600.0]), line(&[500.0])];
        problem.chains[1].t_min_bps = 5e8;
        // What a planner would compute with says nothing: it is not asked.
        let member = |chain| Member { chain, factor: 1.0, from_bps: 0.0, cap_bps };
        problem.relations = vec![Relation::Ratio { text: text.into(), members: vec![member(0), member(1)] }];
        problem
    }

    fn kept(text: &str, rates_bps: [f64; 2]) -> bool {
        broken(&related(text, f64::INFINITY), &rates_bps).is_empty()
    }

    #[test]
    fn ratios_are_those_of_the_text() {
        assert!(kept("throughput a : b = 1 : 3", [1e9, 3e9]) && !kept("throughput a : b = 1 : 3", [1e9, 2e9]));
        assert!(kept("cpu a : b = 2 : 3", [1e9, 3e9]) && !kept("cpu a : b = 1 : 3", [1e9, 3e9]));
        // Beyond 1 and 0.5 Gbit/s.
        assert!(kept("share a : b = 1 : 3", [2e9, 3.5e9]) && !kept("share a : b = 1 : 3", [1e9, 3e9]));
        assert!(!kept("share a : b = 1", [2e9, 3.5e9]) && !kept("cpu a : b", [1e9, 1e9]));
        assert!(kept("by the problem", [1e9, 1e9]) && !kept("by the problem", [1e9, 2e9]));
    }

    #[test]
    fn who_is_at_its_limit_may_have_less() {
        let capped = related("throughput a : b = 1 : 1", 1e9);
        assert!(broken(&capped, &[1e9, 4e9]).is_empty());
        assert_eq!(broken(&capped, &[9e8, 4e9]).len(), 1);
        let mut first = related("throughput a : b = 7 : 3", 1e10);
        let Relation::Ratio { members, .. } = &mut first.relations[0] else { unreachable!() };
        members[1].cap_bps = f64::INFINITY;
        assert!(broken(&first, &[7e9, 3e9]).is_empty() && broken(&first, &[1e10, 9e9]).is_empty());
        assert!(!broken(&first, &[7e9, 4e9]).is_empty() && !broken(&first, &[7e9, 2e9]).is_empty());
    }
}
