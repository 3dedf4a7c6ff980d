//! Figure 3 (several servers, SmartNIC, OpenFlow), latency, and the chain of eleven translators.

use catena_plan::lemur::{Strategy, experiment};
use catena_plan::placement::Site;
use catena_plan::problem::Problem;
use catena_plan::switch;
use catena_records::Record;

use super::{case, plan};

/// The rate of a plan by the heuristic, 0 if there is none.
fn rate(name: String, problem: &Problem, paper: Option<f64>) -> Result<Record, String> {
    let planned = plan(problem, Strategy::Lemur)?;
    let limit = planned.is_none().then(|| "no plan".to_owned());
    Ok(Record { paper, limit, ..case(name, "Gbit/s", planned.map_or(0.0, |p| p.gbps)) })
}

pub fn figure_3() -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for servers in [1, 2] {
        let rack = experiment::testbed(servers, 1, experiment::pisa());
        let all = experiment::problem(&experiment::CHAINS[..3], &rack)?;
        for delta in [0.5, 1.5] {
            let name = format!("figure 3a, delta {delta}: servers with 8 cores: {servers}");
            // "When delta = 1.5, Lemur cannot find a feasible solution for the single server case."
            let paper = (servers == 1 && delta == 1.5).then_some(0.0);
            records.push(rate(name, &experiment::promised(&all, &[0, 1, 2], delta), paper)?);
        }
    }
    // "When delta = 0.5, the single server gets less than half the aggregate throughput" of two.
    if let [one, _, two, _] = &records[..] {
        let name = "figure 3a, delta 0.5: one server's rate relative to two servers'".to_owned();
        let part = one.value / two.value.max(f64::MIN_POSITIVE);
        records.push(Record { paper: Some(0.5), bar: Some(0.5), ..case(name, "ratio", part) });
    }
    for smart in [true, false] {
        let mut rack = experiment::testbed(1, 2, experiment::pisa());
        if smart {
            rack.servers[0].smart_nics.push(experiment::smart_nic());
        }
        let all = experiment::problem(&experiment::CHAINS[4..], &rack)?;
        for delta in [0.5, 1.0, 1.5] {
            let name = format!("figure 3b, delta {delta}: {}", if smart { "with a SmartNIC" } else { "server only" });
            // With the card "close to the line rate of 40 Gbps"; without it the paper has no plan for 1.5. It does not
            // tell what ChaCha costs there, nor the base rate.
            let paper = if smart { Some(40.0) } else { (delta == 1.5).then_some(0.0) };
            records.push(rate(name, &experiment::promised(&all, &[0], delta), paper)?);
        }
    }
    let rack = experiment::testbed(1, 2, experiment::openflow());
    let all = experiment::problem(&experiment::CHAINS[2..3], &rack)?;
    let mut problem = experiment::promised(&all, &[0], 0.5);
    records.push(rate("figure 3c: ACL may be on the OpenFlow switch".into(), &problem, Some(7.71))?);
    for node in problem.chains.iter_mut().flat_map(|c| &mut c.nodes).filter(|n| n.function == "ACL") {
        node.openflow = None;
    }
    records.push(rate("figure 3c: ACL on the server".into(), &problem, Some(0.693))?);
    Ok(records)
}

/// Chains 1 and 4 with a promise of latency. The paper does not tell its promises of rate (here half the
/// base rates) and must not tell its latencies (here 1.5 us a bounce).
pub fn latency() -> Result<Vec<Record>, String> {
    let all = experiment::problem(&experiment::CHAINS[..4], &experiment::testbed(1, 2, experiment::pisa()))?;
    let mut records = Vec::new();
    for (d_max_us, paper) in [(45.0, 21.0), (25.0, 9.0)] {
        let mut problem = experiment::promised(&all, &[0, 3], 0.5);
        problem.chains.iter_mut().for_each(|chain| chain.d_max_ns = d_max_us * 1e3);
        records.push(rate(format!("chains 1 and 4 within {d_max_us} us"), &problem, Some(paper))?);
    }
    Ok(records)
}

/// "An extreme configuration" (§5.2): translators on the switch, by strategy; 0 where there is no plan. First with the
/// paper's 12,000 entries taken for connections, each with an entry for either direction, then for entries of both together.
pub fn eleven_translators() -> Result<Vec<Record>, String> {
    let text = format!("BPF -> [ {} ] -> IPv4Fwd", ["NAT"; 11].join(", "));
    let rack = experiment::testbed(1, 2, experiment::pisa());
    let mut problem = experiment::problem(&[("nats", &text)], &rack)?;
    for chain in &mut problem.chains {
        chain.t_min_bps = experiment::ELEVEN_NATS_BPS;
        chain.t_max_bps = experiment::T_MAX_BPS;
    }
    let mut halved = problem.clone();
    let nats = halved.chains.iter_mut().flat_map(|chain| &mut chain.nodes).filter(|node| node.function == "NAT");
    nats.flat_map(|node| node.pisa.iter_mut().flatten()).for_each(|table| table.entries /= 2);
    let mut records = Vec::new();
    for (problem, entries) in [(&problem, "12,000 connections"), (&halved, "12,000 entries")] {
        let switch = switch::for_problem(problem);
        let stages = switch.verdict(problem, &[vec![true; problem.chains[0].nodes.len()]]).stages;
        let all = format!("all on the switch: {} of {} stages", stages.used, stages.available);
        for (strategy, paper) in [
            (Strategy::Lemur, 10.0),
            (Strategy::Plain, 10.0),
            (Strategy::HwPreferred, 0.0),
            (Strategy::SwPreferred, 0.0),
            (Strategy::MinBounce, 0.0),
            (Strategy::Greedy, 0.0),
        ] {
            let planned = plan(problem, strategy)?;
            let on_switch = planned.as_ref().map_or(0, |planned| {
                let sites = problem.chains[0].nodes.iter().zip(&planned.placement.sites[0]);
                sites.filter(|(node, site)| node.function == "NAT" && **site == Site::Switch).count()
            });
            let limit = Some(if planned.is_some() { all.clone() } else { format!("no plan; {all}") });
            let name = format!("eleven translators of {entries}: {}", strategy.name());
            records.push(Record { paper: Some(paper), limit, ..case(name, "NATs on the switch", on_switch as f64) });
        }
    }
    Ok(records)
}
