//! A plan as text: for somebody who wants to know what will run where, and why.

use std::fmt;

use catena_plan::plan::{Bound, ChainPlan, Device, FunctionPlan, Plan, Remedies, Verdict, gigabits, ranges, short};

use catena_plan::figures::{gbit, us};
use catena_plan::problem::Objective;
use catena_plan::profile::{FULL_BATCH, QUEUE_PACKETS};
use catena_plan::relation::{Relation, Traffic, is_provable};
use catena_plan::tasks::TaskPlan;

use super::changes::Changes;
use crate::table::Table;

/// Of more chains than these, of which it is not known whether they are in the way, some are named.
const MOST_NAMED: usize = 8;

/// A plan as text.
pub struct Text<'a> {
    /// The plan.
    pub plan: &'a Plan,
}

/// A part, 0 to 1, in per cent: two digits are enough, and what is more than nothing is not 0.
pub fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent >= 10.0 => format!("{percent:.0}%"),
        percent => format!("{:.1}%", percent.max(0.1)),
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        if !plan.what_if.is_empty() {
            writeln!(f, "What if: {}", plan.what_if.join(", "))?;
        }
        writeln!(f, "{}\n", verdict(plan))?;
        write!(f, "{}{}", related(plan), delays(plan))?;
        if let Verdict::Broken { remedies: Some(remedies), .. } = &plan.verdict {
            return write!(f, "{}", helped(remedies));
        }
        if plan.chains.is_empty() {
            return Ok(());
        }
        writeln!(f, "Chains, rates in Gbit/s:\n\n{}", chains(plan))?;
        writeln!(f, "Functions, cycles per packet; those with the same core take turns on it:\n\n{}", functions(plan))?;
        write!(f, "Devices, what is taken of what there is:\n\n{}", rack(plan))?;
        if let Some(tasks) = plan.servers.iter().find_map(|server| server.tasks.as_ref())
            && tasks.classes.iter().any(|class| class.name != tasks.classes[0].name)
        {
            if tasks.cut_short {
                let more = "with more there may be fewer, or some that serve more packets";
                writeln!(f, "\nThe time limit was over before the search for the workers' tasks: {more}.")?;
            }
            writeln!(f, "\nWhere more of every chain comes in than the cores can do, rates in Gbit/s:\n")?;
            write!(f, "{}", overloaded(plan, tasks))?;
            for (chain, gets) in missed(plan, tasks) {
                writeln!(
                    f,
                    "\n{} then gets {} of the {} promised: what comes and is dropped has been read.",
                    chain.name,
                    gbit(gets),
                    gbit(chain.t_min_bps)
                )?;
            }
        }
        if let Some(delta) = &plan.delta {
            write!(f, "{}", Changes { plan, delta })?;
        }
        if !plan.borrowed.is_empty() {
            writeln!(f, "\n* not measured on this machine, taken from:")?;
            let mut sources: Vec<&str> = plan.borrowed.iter().map(|b| b.source.as_str()).collect();
            sources.sort_unstable();
            sources.dedup();
            for source in sources {
                let own = plan.borrowed.iter().filter(|b| b.source == source).map(|b| b.function.as_str());
                writeln!(f, "  {}: {source}", own.collect::<Vec<_>>().join(", "))?;
            }
        }
        Ok(())
    }
}

/// One sentence: whether the promises are kept, how good the plan is.
fn verdict(plan: &Plan) -> String {
    match &plan.verdict {
        Verdict::Kept { .. } if plan.has_no_rates() => format!(
            "The file promises nothing. On the rack `{}` every worker runs all chains, which carry what comes: no rates are planned.",
            plan.rack
        ),
        // The remedies tell the rest.
        Verdict::Broken { proven: true, remedies: Some(_), .. } => {
            format!("No plan keeps all promises on the rack `{}`: that is proven.", plan.rack)
        }
        Verdict::Broken { proven: true, why, .. } => format!("No plan keeps all promises: {why}."),
        Verdict::Broken { proven: false, why, .. } => {
            format!("The strategy `{}` finds no plan that keeps all promises: {why}.", plan.strategy)
        }
        Verdict::Kept { marginal_bps, .. } => {
            let relations = || {
                let bounds = plan.chains.iter().flat_map(|chain| &chain.bounds);
                bounds.filter_map(|bound| if let Bound::Relation { text } = bound { Some(text) } else { None })
            };
            // What the file does not say is that chains come last of which nothing leaves.
            let related = match (relations().any(|text| !text.is_empty()), relations().any(String::is_empty)) {
                (true, _) => "that holds the file's relations ",
                (false, true) => "in which chains come last whose packets are all dropped ",
                (false, false) => "",
            };
            let proof = match plan.verdict.gap() {
                Some(gap) if gap < 1e-6 => format!(
                    " No plan {related}{}{}: that is proven.",
                    if plan.held.is_some() { "for these parts of the promises " } else { "" },
                    if plan.objective == Objective::Marginal { "carries more" } else { "does better" }
                ),
                Some(gap) => format!(
                    " The search ended before that was known to be the best (more time: --time-limit); of what a better \
                     plan could have, at most {} is missing.",
                    percent(gap)
                ),
                None if !plan.unseen.is_empty() => {
                    let told: Vec<String> = plan.unseen.iter().map(|text| format!("`{text}`")).collect();
                    format!(
                        " It is not known whether another plan does better: the planner does not see {}.",
                        told.join(", ")
                    )
                }
                None if !is_provable(&plan.problem) => {
                    " It is not known whether another plan is fairer: where chains come \
                                                     first, the largest sums are looked for, one level after the other."
                        .to_owned()
                }
                None => String::new(),
            };
            let beyond: f64 = plan.chains.iter().map(|chain| chain.slack_bps).sum();
            let objective = match plan.objective {
                Objective::Marginal => String::new(),
                Objective::Weighted => format!(" (weighted: {})", gbit(*marginal_bps)),
                Objective::Fair => {
                    format!("; no chain less than {} for each unit of its weight", gbit(*marginal_bps))
                }
            };
            let left_out = plan.left_out.join("; ");
            let kept = match (plan.held, plan.left_out.is_empty()) {
                (None, true) => "All promises are kept".to_owned(),
                (None, false) => format!("Not all that is promised is planned ({left_out}), but the rest is kept"),
                (Some(part), true) => {
                    format!("Not all that is promised is kept, but {}% of each rate is,", short(100.0 * part))
                }
                (Some(part), false) => format!(
                    "Not all that is promised is planned ({left_out}), and of the rest {}% of each rate is kept,",
                    short(100.0 * part)
                ),
            };
            format!(
                "{kept} on the rack `{}`. The chains carry {} Gbit/s, {} beyond their promises{objective}.{proof}",
                plan.rack,
                gbit(plan.rate_bps()),
                gbit(beyond),
            )
        }
    }
}

/// What the file's relations mean where their words do not say it: chains that no `priority` names, and classes that stand for
/// chains; empty: there is nothing of the kind.
fn related(plan: &Plan) -> String {
    let Some(policy) = plan.policy.as_ref().filter(|_| !plan.chains.is_empty()) else { return String::new() };
    let mut text = String::new();
    let orders: Vec<&Vec<Traffic>> = plan
        .problem
        .relations
        .iter()
        .filter_map(|relation| if let Relation::Priority { order, .. } = relation { Some(order) } else { None })
        .collect();
    let last = plan.problem.relations.iter().any(|relation| matches!(relation, Relation::Last(_)));
    let unnamed: Vec<&str> = (0..plan.chains.len())
        .filter(|id| !orders.is_empty() && !orders.iter().any(|order| order.iter().any(|traffic| traffic.chain == *id)))
        .filter(|id| !plan.problem.relations.iter().any(|r| matches!(r, Relation::Last(chains) if chains.contains(id))))
        .map(|id| plan.chains[id].name.as_str())
        .collect();
    if !unnamed.is_empty() {
        let but = if last { ", but before chains that nothing leaves" } else { "" };
        let mut texts =
            plan.problem.relations.iter().filter(|r| matches!(r, Relation::Priority { .. })).map(Relation::text);
        let after = match (texts.next(), texts.next()) {
            (Some(only), None) => format!("; `{only} > {}` has them after those", unnamed.join(" > ")),
            _ => String::new(),
        };
        text += &format!("No `priority` names {}: with those that it names last{but}{after}.\n", unnamed.join(", "));
    }
    for relation in plan.problem.relations.iter().map(Relation::text).filter(|text| !text.is_empty()) {
        let words: Vec<&str> = relation.split(|c: char| c.is_whitespace() || ":>=".contains(c)).collect();
        for chain in policy.chains.iter().filter(|chain| !words.contains(&chain.name.as_str())) {
            let part = if chain.classes.len() > 1 { "any part of what chain" } else { "all of chain" };
            let carries = if chain.classes.len() > 1 { " carries, for more of it may come at any time" } else { "" };
            for class in chain.classes.iter().filter(|class| words.contains(&class.as_str())) {
                text += &format!("In `{relation}` the class {class} is {part} {}{carries}.\n", chain.name);
            }
        }
    }
    for relation in plan.problem.relations.iter().filter(|relation| divides_nothing(relation, plan)) {
        text += &format!(
            "`{}` has nothing to divide: its chains carry nothing beyond what they are promised.\n",
            relation.text()
        );
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// Whether a `share` is kept only because there is nothing that it could divide.
fn divides_nothing(relation: &Relation, plan: &Plan) -> bool {
    let Relation::Ratio { text, members } = relation else { return false };
    // Solvers leave that much of what other chains have.
    let least = 1e-6 * plan.rate_bps();
    let none = |chain: usize, from: f64| plan.chains.get(chain).is_some_and(|chain| chain.rate_bps - from <= least);
    text.starts_with("share ") && plan.is_kept() && members.iter().all(|member| none(member.chain, member.from_bps))
}

/// What promises of delay assume, and what packets take otherwise; empty: none is promised.
fn delays(plan: &Plan) -> String {
    let promised: Vec<_> = plan.chains.iter().filter_map(|chain| Some((chain, chain.d_max_ns?))).collect();
    if promised.is_empty() || !plan.is_kept() {
        return String::new();
    }
    let mut text = "Delays are those of a packet that waits for no other, forward. Batches, turns on a shared core, queues and the \
                    return direction are not in them:\n"
        .to_owned();
    for (chain, most) in promised {
        let (name, batch) = (&chain.name, time(chain.batch_ns));
        let more =
            if chain.batch_ns > most { format!(", more than the {} promised", time(most)) } else { String::new() };
        text += &format!("  {name}: in full batches of {FULL_BATCH} packets up to {batch}{more}\n");
        if let Some(ns) = chain.queue_ns {
            let more = if ns + chain.batch_ns > most { ", so the promise holds only up to that rate" } else { "" };
            text += &format!(
                "  {name}: offered more than it carries, it fills a queue of {QUEUE_PACKETS} packets, up to {} long{more}\n",
                time(ns)
            );
        }
    }
    text + "\n"
}

/// A time in microseconds, or milliseconds if it is long.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{} us", us(ns)),
        ns if ns < 1e12 => format!("{:.1} ms", ns / 1e6),
        _ => "without end".to_owned(),
    }
}

/// What would help.
fn helped(remedies: &Remedies) -> String {
    let mut text = String::new();
    let mut line = |said: String| text += &(said + "\n");
    for (chain, ns) in &remedies.late {
        line(format!("{chain}: a packet takes at least {} us, wherever its functions run.", us(*ns)));
    }
    for (chain, bps) in &remedies.choked {
        line(format!("{chain}: more is promised than the {} Gbit/s that can come in by a port.", gigabits(*bps)));
    }
    match &remedies.conflict[..] {
        [] => {}
        [one] if remedies.minimal && remedies.unheld => {
            line(format!("The functions of {one} find no place on this rack, whatever is promised."));
        }
        [one] if remedies.minimal => {
            line(format!("The promise of {one} cannot be kept even if there were no other chain."));
        }
        several if remedies.minimal => line(format!(
            "These promises conflict: {}. Without any one of them the others of these can be kept.",
            several.join(", ")
        )),
        several => {
            let more = several.len().saturating_sub(MOST_NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} others") };
            let named = several.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            line(format!("In the way, as far as is known: the promises of {named}{more}."));
        }
    }
    if !remedies.relations.is_empty() {
        let told: Vec<String> = remedies.relations.iter().map(|text| format!("`{text}`")).collect();
        line(format!("The promises could be kept without {}.", told.join(", ")));
    }
    let mut ways = Vec::new();
    let more = |n: u32, what: &str| format!("{n} more {what}{}", if n == 1 { "" } else { "s" });
    if !remedies.cores.is_empty() {
        let parts: Vec<String> = remedies.cores.iter().map(|(s, n)| format!("{} on {s}", more(*n, "core"))).collect();
        ways.push(parts.join(" and "));
    }
    if let Some(stages) = remedies.stages {
        ways.push(more(stages, "stage") + " in the switch");
    }
    if let Some(entries) = remedies.entries {
        ways.push(format!("{entries} entries in every flow table of the switch (--what-if entries={entries})"));
    }
    if !remedies.links.is_empty() {
        let parts: Vec<String> =
            remedies.links.iter().map(|(l, bps)| format!("{} Gbit/s more on {l}", gbit(*bps))).collect();
        ways.push(parts.join(" and "));
    }
    if let Some(bps) = remedies.forwarding {
        ways.push(format!("{} Gbit/s more through the switch", gbit(bps)));
    }
    if !remedies.smart_nics.is_empty() {
        let parts: Vec<String> =
            remedies.smart_nics.iter().map(|(n, hz)| format!("{} GHz more on {n}", gbit(*hz))).collect();
        ways.push(parts.join(" and "));
    }
    match &ways[..] {
        [] if !remedies.complete => line("Nothing was found that does alone.".to_owned()),
        [] if remedies.late.is_empty() && remedies.choked.is_empty() => {
            line("More cores, faster links or more stages, each alone, would not help.".to_owned());
            if remedies.unheld {
                line(
                    "Less of the promises would not help either: the functions find no place on this rack.".to_owned(),
                );
                return text;
            }
            line(
                "Functions that must stay on one core carry no more than it: try --what-if CHAIN.t_min=… with less."
                    .to_owned(),
            );
        }
        [] => {}
        [one] => line(format!("This would do: {one}.")),
        several => {
            line("Any one of these would do:".to_owned());
            several.iter().for_each(|way| line(format!("  {way}")));
        }
    }
    if !remedies.complete {
        line("Not every question was answered: more time (--time-limit) may find more.".to_owned());
    }
    text
}

/// A row a chain.
fn chains(plan: &Plan) -> Table {
    let mut table = Table::new(
        &["chain", "promised", "planned", "beyond", "delay us", "at most", "what keeps it from carrying more"],
        &[false, true, true, true, true, true, false],
    );
    let rate = |bps: f64| if plan.has_no_rates() { "-".to_owned() } else { gbit(bps) };
    let unnamed = if plan.has_no_rates() { "what comes, and the workers' cores" } else { "what other chains take" };
    for chain in &plan.chains {
        // Who has all that it may have is kept from more by nothing else.
        let all =
            chain.bounds.iter().find(|bound| **bound == Bound::TMax).map_or(&chain.bounds[..], std::slice::from_ref);
        let mut bounds = all.iter().map(ToString::to_string);
        table.row([
            chain.name.clone(),
            chain.promised().unwrap_or_else(|| "-".to_owned()),
            rate(chain.rate_bps),
            rate(chain.slack_bps),
            us(chain.latency_ns),
            chain.d_max_ns.map_or("-".to_owned(), us),
            bounds.next().unwrap_or_else(|| unnamed.to_owned()),
        ]);
        for more in bounds {
            let blank = String::new;
            table.row([blank(), blank(), blank(), blank(), blank(), blank(), more]);
        }
    }
    table
}

/// A row a function.
fn functions(plan: &Plan) -> Table {
    let mut table = Table::new(
        &["chain", "function", "runs on", "cores", "cycles", "packets", "why there"],
        &[false, false, false, false, true, true, false],
    );
    for chain in &plan.chains {
        for (i, function) in chain.functions.iter().enumerate() {
            table.row([
                if i == 0 { chain.name.clone() } else { String::new() },
                format!("{}{}", function.name, if function.borrowed { "*" } else { "" }),
                function.on.clone(),
                ranges(&function.cores),
                function.cycles.map_or(String::new(), |cycles| format!("{cycles:.0}")),
                part(function),
                function.why.to_string(),
            ]);
        }
    }
    table
}

/// The part of the chain's packets that reach a function.
fn part(function: &FunctionPlan) -> String {
    match function.share {
        share if share >= 0.9995 => "all".to_owned(),
        share if share < 0.0005 => "hardly any".to_owned(),
        share => format!("{:.1}%", share * 100.0),
    }
}

/// A row a device: how much of what it has is taken.
fn rack(plan: &Plan) -> Table {
    let mut table = Table::new(&["device", "taken", "of", "what"], &[false, true, true, false]);
    let mut row = |device: &str, taken: String, of: String, what: &str| {
        table.row([device.to_owned(), taken, of, what.to_owned()]);
    };
    if let Some(switch) = &plan.switch {
        let kinds = [
            (switch.stages, "stages or tables, steering included"),
            (switch.sram, "SRAM blocks"),
            (switch.tcam, "TCAM blocks"),
            (switch.entries, "flow entries"),
        ];
        for (used, all, what) in kinds.into_iter().filter_map(|(of, what)| of.map(|(used, all)| (used, all, what))) {
            row(&switch.name, used.to_string(), all.to_string(), what);
        }
    }
    for nic in &plan.smart_nics {
        row(&nic.name, gbit(nic.used_hz), gbit(nic.cycles_hz), "GHz of its cores");
    }
    for link in plan.links.iter().filter(|link| link.used_bps > 0.0) {
        row(&link.name, gbit(link.used_bps), gbit(link.bps), "Gbit/s each way");
    }
    for server in plan.servers.iter().filter(|server| server.cores_used > 0.0) {
        let used = if plan.has_no_rates() { "-".to_owned() } else { short(server.cores_used) };
        row(&server.name, used, server.cores.to_string(), "cores for functions");
    }
    let idle = plan.servers.iter().filter(|server| server.cores_used == 0.0).count();
    match idle {
        0 => {}
        1 => row("(1 server)", "0".to_owned(), String::new(), "nothing runs there"),
        n => row(&format!("({n} servers)"), "0".to_owned(), String::new(), "nothing runs there"),
    }
    table
}

/// The chains that are promised more than they get where more of all comes than can be done, with what they get.
fn missed<'a>(plan: &'a Plan, tasks: &TaskPlan) -> Vec<(&'a ChainPlan, f64)> {
    let gets = |chain: &ChainPlan| {
        let own = tasks.classes.iter().filter(|class| class.name.split('/').next() == Some(&chain.name));
        own.map(|class| class.packets).sum::<f64>() * plan.packet_bytes * 8.0
    };
    let all = plan.chains.iter().map(|chain| (chain, gets(chain)));
    all.filter(|(chain, gets)| *gets < chain.t_min_bps * 0.99).collect()
}

/// A row a chain, or a class that has a way of its own: what is left for it where nobody holds back.
fn overloaded(plan: &Plan, tasks: &TaskPlan) -> Table {
    let mut table = Table::new(&["", "promised", "gets", "of the cycles"], &[false, true, true, true]);
    let mut names: Vec<&str> = tasks.classes.iter().map(|class| class.name.as_str()).collect();
    names.dedup();
    for name in names {
        // Ways through a chain that part and do not merge are of one name.
        let own = || tasks.classes.iter().filter(|class| class.name == name);
        let packets: f64 = own().map(|class| class.packets).sum();
        let chain = plan.chains.iter().find(|chain| chain.name == name);
        table.row([
            name.to_owned(),
            chain.and_then(ChainPlan::promised).unwrap_or_else(|| "-".to_owned()),
            gbit(packets * plan.packet_bytes * 8.0),
            percent(own().map(|class| class.cpu).sum()),
        ]);
    }
    table
}

/// How many functions run on devices of a kind.
pub fn count(plan: &Plan, is_one: fn(Device) -> bool) -> usize {
    plan.chains.iter().flat_map(|chain| &chain.functions).filter(|f| is_one(f.device)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_sentences() {
        let remedies = Remedies {
            conflict: vec!["a".to_owned(), "b".to_owned()],
            cores: vec![("nf1".to_owned(), 1), ("nf2".to_owned(), 2)],
            stages: Some(1),
            minimal: true,
            complete: true,
            ..Remedies::default()
        };
        let expected = "These promises conflict: a, b. Without any one of them the others of these can be kept.\n\
                        Any one of these would do:\n  1 more core on nf1 and 2 more cores on nf2\n  1 more stage in the switch\n";
        assert_eq!(helped(&remedies), expected);
        let alone = Remedies { conflict: vec!["a".to_owned()], minimal: true, complete: true, ..Remedies::default() };
        assert!(helped(&alone).contains("even if there were no other chain"));
        assert!(helped(&alone).contains("each alone, would not help"));
    }
}
