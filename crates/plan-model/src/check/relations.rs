//! Whether chains are in the ratios that the file asks for, by the words of the file.
//!
//! What a planner computes with (factors, limits) is not used: measure and limit are worked out again from the relation's
//! text, the chains and the servers, and a limit that is written down otherwise is a fault by itself. Who comes first is not
//! judged: rates alone do not tell whether another placement gave more.

use std::collections::HashMap;

use super::{NOTHING_BPS, TOLERANCE, Violation};
use crate::problem::{Chain, Problem};
use crate::relation::{Member, Relation, Traffic};

/// Rounds after which classes that still get more in each are taken for ones that no rate is enough for; one hands a figure on
/// from ratio to ratio, so no more are needed than there are ratios.
const MOST_ROUNDS: usize = 10_000;

/// The relations that these rates break.
pub(super) fn broken(problem: &Problem, rates_bps: &[f64]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut ratios: Vec<Ratio<'_>> = Vec::new();
    for relation in &problem.relations {
        let Relation::Ratio { text, members } = relation else { continue };
        let there = members.iter().all(|member| member.chain < rates_bps.len());
        match measures(problem, text, members).filter(|_| there) {
            Some(measures) => ratios.push(Ratio { text, members, measures }),
            None => found.push(Violation::Unrelated { relation: text.clone() }),
        }
    }
    let rates = Rates::of(rates_bps, &ratios);
    for ratio in &ratios {
        if !ratio.holds(&rates) {
            found.push(Violation::Unrelated { relation: ratio.text.to_owned() });
        }
        for (member, measure) in ratio.members.iter().zip(&ratio.measures) {
            let chain = &problem.chains[member.chain].name;
            let (most, written) = (measure.most_bps, member.cap_bps);
            let same = written == most || (most.is_finite() && (written - most).abs() <= TOLERANCE * most);
            if !same {
                let what = format!("`{}`: the limit of chain `{chain}` is {most:e} bit/s, not {written:e}", ratio.text);
                found.push(Violation::Problem { what });
            }
        }
    }
    found
}

/// A ratio with what each member has of it.
struct Ratio<'a> {
    text: &'a str,
    members: &'a [Member],
    measures: Vec<Measure>,
}

impl Ratio<'_> {
    /// Whether nobody has less than another, but for chains that can have no more.
    fn holds(&self, rates: &Rates<'_>) -> bool {
        let has: Vec<f64> = self.has(rates).collect();
        // What `NOTHING_BPS` are in the measure of the chain for which they count most.
        let nothing = self.measures.iter().map(|measure| measure.per_bit * NOTHING_BPS).fold(0.0, f64::max);
        self.members.iter().zip(&self.measures).zip(&has).all(|((member, measure), mine)| {
            // Where promises just fill a link, a limit of some bits per second is less than what solvers round away.
            let full = rates.bps(member.traffic()) + NOTHING_BPS >= measure.most_bps * (1.0 - TOLERANCE);
            let there = member.class.is_none() || rates.is_settled && rates.has_room(member.chain);
            there && (full || has.iter().all(|other| *other <= mine + TOLERANCE * other.abs() + nothing))
        })
    }

    fn has(&self, rates: &Rates<'_>) -> impl Iterator<Item = f64> {
        self.members.iter().zip(&self.measures).map(|(member, measure)| measure.of(rates.bps(member.traffic())))
    }
}

/// What chains carry, and of it the least that each class does which is one of several: what ratios with others make of it.
struct Rates<'a> {
    chains: &'a [f64],
    classes: HashMap<Traffic, f64>,
    /// Whether that came to an end: ratios in a file that nearly contradict each other would go on almost for ever.
    is_settled: bool,
}

impl Rates<'_> {
    fn of<'a>(chains: &'a [f64], ratios: &[Ratio<'_>]) -> Rates<'a> {
        let named = ratios.iter().flat_map(|ratio| ratio.members).map(Member::traffic);
        let classes = named.filter(|traffic| traffic.class.is_some()).map(|traffic| (traffic, 0.0)).collect();
        let mut rates = Rates { chains, classes, is_settled: false };
        // What one ratio gives a class, another may ask of its other members. It only grows, until there is no room for it.
        for _ in 0..MOST_ROUNDS {
            let is_more = rates.raise(ratios);
            if !is_more || !rates.classes.keys().all(|class| rates.has_room(class.chain)) {
                rates.is_settled = true;
                break;
            }
        }
        rates
    }

    /// Give each class as much as the others of a ratio have; returns whether one had less.
    fn raise(&mut self, ratios: &[Ratio<'_>]) -> bool {
        let mut is_more = false;
        for ratio in ratios {
            let most = ratio.has(self).fold(0.0, f64::max);
            for (member, measure) in ratio.members.iter().zip(&ratio.measures) {
                let Some(own) = self.classes.get_mut(&member.traffic()) else { continue };
                let part = (measure.from_bps + most / measure.per_bit).min(measure.most_bps);
                if part > *own + 1.0 + *own * 1e-9 {
                    (*own, is_more) = (part, true);
                }
            }
        }
        is_more
    }

    /// Whether a chain carries what its classes do.
    fn has_room(&self, chain: usize) -> bool {
        let parts = self.classes.iter().filter(|(class, _)| class.chain == chain);
        parts.map(|(_, bps)| bps).sum::<f64>() <= self.chains[chain] * (1.0 + TOLERANCE) + NOTHING_BPS
    }

    fn bps(&self, traffic: Traffic) -> f64 {
        self.classes.get(&traffic).copied().unwrap_or(self.chains[traffic.chain])
    }
}

/// What is in the ratio, divided by the chain's weight.
struct Measure {
    per_bit: f64,
    from_bps: f64,
    /// A chain that carries this may have less than its part.
    most_bps: f64,
}

impl Measure {
    fn of(&self, rate_bps: f64) -> f64 {
        (rate_bps - self.from_bps) * self.per_bit
    }
}

/// The measure of each member by the relation's text, such as `cpu a : b = 1 : 9`; None: the text tells none, or has not a
/// weight for each member.
fn measures(problem: &Problem, text: &str, members: &[Member]) -> Option<Vec<Measure>> {
    let word = text.split_whitespace().next()?;
    let (_, weights) = text.rsplit_once('=')?;
    let weights = weights.split(':').map(|weight| weight.trim().parse().ok()).collect::<Option<Vec<f64>>>()?;
    if weights.len() != members.len() || weights.iter().any(|weight| !(*weight > 0.0 && weight.is_finite())) {
        return None;
    }
    let measure = |(member, weight): (&Member, f64)| {
        let chain = problem.chains.get(member.chain)?;
        let (bits, most_bps) = (8.0 * chain.packet_bytes, chain.t_max_bps.min(chain.ingress_bps));
        match word {
            "cpu" => Some(Measure { per_bit: cycles(chain) / bits / weight, from_bps: 0.0, most_bps }),
            "throughput" => Some(Measure { per_bit: 1.0 / bits / weight, from_bps: 0.0, most_bps }),
            "share" => {
                // What is promised is promised to the chain, to none of its classes.
                let from_bps = if member.class.is_some() { 0.0 } else { chain.t_min_bps };
                Some(Measure { per_bit: 1.0 / weight, from_bps, most_bps: usable(problem, chain) })
            }
            _ => None,
        }
    };
    members.iter().zip(weights).map(measure).collect()
}

/// The most that a chain can use of what others leave, bits per second: its promise's upper end, its port, and one core of
/// the fastest server for each function that only one core may run, but never less than it is promised.
fn usable(problem: &Problem, chain: &Chain) -> f64 {
    let mut most = if chain.t_max_bps < chain.ingress_bps { chain.t_max_bps } else { chain.ingress_bps };
    for node in &chain.nodes {
        let elsewhere = node.smart_nic.is_some() || node.pisa.is_some() || node.openflow.is_some();
        let Some(cycles) = node.server.filter(|_| !node.replicable && !elsewhere) else { continue };
        let mut fastest = 0.0;
        for server in &problem.servers {
            let packets = server.clock_hz / (cycles * node.share);
            if packets > fastest {
                fastest = packets;
            }
        }
        if cycles * node.share > 0.0 {
            most = most.min(fastest * 8.0 * chain.packet_bytes);
        }
    }
    if most < chain.t_min_bps { chain.t_min_bps } else { most }
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

    /// Two chains of 1,000 and 500 cycles a packet, the second with half a promise, that may carry so much in this relation.
    fn related(text: &str, most_bps: [f64; 2]) -> Problem {
        let mut problem = problem();
        problem.chains = vec![line(&[400.0, 600.0]), line(&[500.0])];
        problem.chains[1].t_min_bps = 5e8;
        for (chain, most) in problem.chains.iter_mut().zip(most_bps) {
            (chain.t_max_bps, chain.ingress_bps) = (most, f64::INFINITY);
            chain.nodes.iter_mut().for_each(|node| node.replicable = true);
        }
        // What a planner would compute with says nothing: it is not asked.
        let member = |chain| Member { chain, class: None, factor: 1.0, from_bps: 0.0, cap_bps: most_bps[chain] };
        problem.relations = vec![Relation::Ratio { text: text.into(), members: vec![member(0), member(1)] }];
        problem
    }

    fn kept(text: &str, rates_bps: [f64; 2]) -> bool {
        broken(&related(text, [f64::INFINITY; 2]), &rates_bps).is_empty()
    }

    #[test]
    fn ratios_are_those_of_the_text() {
        assert!(kept("throughput a : b = 1 : 3", [1e9, 3e9]) && !kept("throughput a : b = 1 : 3", [1e9, 2e9]));
        assert!(kept("cpu a : b = 2 : 3", [1e9, 3e9]) && !kept("cpu a : b = 1 : 3", [1e9, 3e9]));
        // Beyond 1 and 0.5 Gbit/s.
        assert!(kept("share a : b = 1 : 3", [2e9, 3.5e9]) && !kept("share a : b = 1 : 3", [1e9, 3e9]));
        assert!(!kept("share a : b = 1", [2e9, 3.5e9]) && !kept("cpu a : b", [1e9, 1e9]));
        assert!(!kept("by the problem", [1e9, 1e9]) && !kept("by = 1 : 1", [1e9, 1e9]));
    }

    #[test]
    fn who_is_at_its_limit_may_have_less() {
        let capped = related("throughput a : b = 1 : 1", [1e9, 1e10]);
        assert!(broken(&capped, &[1e9, 4e9]).is_empty());
        assert_eq!(broken(&capped, &[9e8, 4e9]).len(), 1);
        // A limit that is nothing is met by nothing: 13 bit/s beside 200 Gbit/s are less than any solver's rounding.
        let tiny = related("cpu a : b = 1 : 1", [13.0, f64::INFINITY]);
        assert!(broken(&tiny, &[0.0, 2e11]).is_empty());
        assert_eq!(broken(&related("cpu a : b = 1 : 1", [1e5, f64::INFINITY]), &[0.0, 2e11]).len(), 1);
        let first = related("throughput a : b = 7 : 3", [1e10, f64::INFINITY]);
        assert!(broken(&first, &[7e9, 3e9]).is_empty() && broken(&first, &[1e10, 9e9]).is_empty());
        assert!(!broken(&first, &[7e9, 4e9]).is_empty() && !broken(&first, &[7e9, 2e9]).is_empty());
    }

    #[test]
    fn a_class_is_part_of_what_its_chain_carries() {
        let class = |problem: &mut Problem, relation: usize, member: usize, class: u32| {
            let Relation::Ratio { members, .. } = &mut problem.relations[relation] else { unreachable!() };
            members[member].class = Some(class);
        };
        // The first chain has three times what the second has, or more of other classes.
        let mut one = related("throughput v : b = 3 : 1", [f64::INFINITY; 2]);
        class(&mut one, 0, 0, 4);
        let kept = |problem: &Problem, rates_bps: [f64; 2]| broken(problem, &rates_bps).is_empty();
        assert!(kept(&one, [3e9, 1e9]) && kept(&one, [5e9, 1e9]) && !kept(&one, [2.9e9, 1e9]));
        // Two classes of it with 3 and 2 times as much, in relations of their own.
        let mut two = related("throughput v : b = 3 : 1", [f64::INFINITY; 2]);
        two.relations.push(related("throughput w : b = 2 : 1", [f64::INFINITY; 2]).relations.remove(0));
        class(&mut two, 0, 0, 4);
        class(&mut two, 1, 0, 5);
        assert!(kept(&two, [5e9, 1e9]) && !kept(&two, [4.9e9, 1e9]));
        // One class of each chain: any part of it may be theirs, unless another ratio holds one of them.
        class(&mut two, 0, 1, 6);
        assert!(kept(&two, [2e9, 1e9]) && !kept(&two, [1.9e9, 1e9]));
        // A class in two ratios at once hands on what it has to have: b has 1, so w 2, so v 6.
        let mut both = related("throughput w : b = 2 : 1", [f64::INFINITY; 2]);
        both.relations.push(related("throughput v : w = 3 : 1", [f64::INFINITY; 2]).relations.remove(0));
        let Relation::Ratio { members, .. } = &mut both.relations[1] else { unreachable!() };
        members.iter_mut().for_each(|member| member.chain = 0);
        [(0, 0, 5), (1, 0, 4), (1, 1, 5)].iter().for_each(|&(ratio, member, id)| class(&mut both, ratio, member, id));
        assert!(kept(&both, [8e9, 1e9]) && !kept(&both, [7.9e9, 1e9]));
        // Nothing is enough for a class that is to have twice what it has.
        let mut never = both.clone();
        let Relation::Ratio { text, .. } = &mut never.relations[1] else { unreachable!() };
        *text = "throughput v : w = 1 : 1".into();
        never.relations.push(both.relations[1].clone());
        assert!(!kept(&never, [8e9, 1e9]) && kept(&never, [8e9, 0.0]));
        // Nor where it is to have hardly more each time: that is found out soon.
        let Relation::Ratio { text, .. } = &mut never.relations[1] else { unreachable!() };
        *text = "throughput v : w = 3.00000001 : 1".into();
        assert!(!kept(&never, [8e18, 1e9]));
    }

    #[test]
    fn limits_that_a_planner_writes_down_are_not_believed() {
        let mut lying = related("throughput a : b = 1 : 1", [f64::INFINITY; 2]);
        let Relation::Ratio { members, .. } = &mut lying.relations[0] else { unreachable!() };
        members[0].cap_bps = 1e9;
        // Chain a would be at its limit: the ratio is broken, and the limit is not its own.
        assert_eq!(broken(&lying, &[1e9, 4e9]).len(), 2);
        let found = broken(&lying, &[1e9, 1e9]);
        assert!(matches!(&found[..], [Violation::Problem { what }] if what.contains("not 1e9")), "{found:?}");
    }

    #[test]
    fn a_share_of_what_is_left_ends_at_what_one_core_does() {
        let mut problem = related("share a : b = 1 : 1", [f64::INFINITY; 2]);
        let node = &mut problem.chains[1].nodes[0];
        (node.replicable, node.smart_nic, node.pisa, node.openflow) = (false, None, None, None);
        let clock = problem.servers.iter().map(|server| server.clock_hz).fold(0.0, f64::max);
        let most = clock / 500.0 * 8.0 * problem.chains[1].packet_bytes;
        let Relation::Ratio { members, .. } = &mut problem.relations[0] else { unreachable!() };
        members[1].cap_bps = most;
        assert!(broken(&problem, &[2.0 * most, most]).is_empty());
        assert_eq!(broken(&problem, &[2.0 * most, 0.9 * most]).len(), 1);
    }
}
