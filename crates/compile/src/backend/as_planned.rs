//! What runs is the plan: the segments that it has on a server, what their functions are told, and the rules of its paths are those of
//! the chain file, node for node and next for next; and the pipeline has these functions, and no way that the rules do not have.

use std::collections::{BTreeMap, BTreeSet};

use catena_plan::condition::Condition;
use catena_plan::deployment::Segment;
use catena_plan::deployment::paths::{Next, Path};
use catena_plan::policy::Policy;
use catena_policy::{Chain, Direction, Edge, End};

use super::{Part, Unlowered};
use crate::host::{Host, Lowered, ModuleId};

/// Check that `host` is what the plan says of the server.
///
/// # Errors
/// What of the plan is otherwise, by chain and function.
pub(super) fn as_planned(part: &Part<'_>, host: &Host) -> Result<(), Unlowered> {
    // A plan that knows chains in numbers alone says nothing of ways.
    if part.plan.policy.is_none() {
        return Ok(());
    }
    let runs = segments(part)?;
    let mut ways = Ways::new();
    for chain in &part.policy.chains {
        for direction in [Direction::Forward, Direction::Return] {
            rules(part, &runs, (chain, direction), &mut ways)?;
        }
    }
    pipeline(part, host, &ways)
}

/// Where packets go from a function, as `chain/function`, or from a side, in a direction.
type Ways = BTreeSet<(String, bool, String)>;

fn other(why: String) -> Unlowered {
    Unlowered::Other(format!("{why}: plan the file again"))
}

fn is_back(direction: Direction) -> bool {
    direction == Direction::Return
}

/// The segment that runs each function on the server. Each function of the file is in one, in the order of its chain, and is told what
/// the file tells it.
fn segments<'a>(part: &Part<'a>) -> Result<BTreeMap<&'a str, &'a Segment>, Unlowered> {
    let mut runs = BTreeMap::new();
    for segment in part.segments() {
        for function in &segment.functions {
            if runs.insert(function.as_str(), segment).is_some() {
                return Err(other(format!("by the plan, {function} runs twice on {}", part.on)));
            }
        }
    }
    let (told, mut left) = (Policy::of(part.policy), runs.clone());
    for chain in &part.policy.chains {
        // The place of the last function of each segment.
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &chain.nodes {
            let name = format!("{}/{}", chain.name, node.name);
            let Some(segment) = left.remove(name.as_str()) else {
                return Err(other(format!("by the plan, no segment on {} runs {name}, which the file has", part.on)));
            };
            let at = segment.functions.iter().position(|own| *own == name).unwrap_or_default();
            if let Some(before) = last.insert(&segment.name, at).filter(|before| *before > at) {
                let before = &segment.functions[before];
                return Err(other(format!("by the plan, segment {} has {name} before {before}", segment.name)));
            }
        }
        for segment in part.segments().filter(|segment| last.contains_key(&*segment.name)) {
            let own = |name: &String| Some(name.strip_prefix(&chain.name)?.strip_prefix('/')?.to_owned());
            let names: Option<Vec<String>> = segment.functions.iter().map(own).collect();
            if names.is_none_or(|names| told.told(&chain.name, &names) != segment.told) {
                let what =
                    format!("by the plan, segment {} is told something else than chain {}", segment.name, chain.name);
                return Err(other(what));
            }
        }
    }
    match left.keys().next() {
        Some(function) => Err(other(format!("by the plan, {} runs {function}, which the file does not have", part.on))),
        None => Ok(runs),
    }
}

/// Check that the rules of a chain's path are its edges, in their order, and that hops are where the plan runs functions.
fn rules(
    part: &Part<'_>,
    runs: &BTreeMap<&str, &Segment>,
    (chain, direction): (&Chain, Direction),
    ways: &mut Ways,
) -> Result<(), Unlowered> {
    let edges: Vec<&Edge> = chain.edges.iter().filter(|edge| edge.direction == direction).collect();
    let path = part.deployment.paths.iter().find(|path| path.chain == chain.name && path.direction == direction);
    let (way, name) = (if is_back(direction) { "back" } else { "forward" }, &chain.name);
    let begins = chain.edges_from(if is_back(direction) { End::Out } else { End::In }, direction).next().is_some();
    let (true, Some(path)) = (begins, path) else {
        let same = begins == path.is_some();
        return if same { Ok(()) } else { Err(other(format!("the plan has another way {way} of chain {name}"))) };
    };
    if path.rules.len() != edges.len() {
        let (says, is) = (path.rules.len(), edges.len());
        return Err(other(format!("the plan has {says} rules of the way {way} of chain {name}, and the file {is}")));
    }
    let full = |end: End| match end {
        End::Node(_) => format!("{name}/{}", chain.end_name(end)),
        _ => chain.end_name(end).to_owned(),
    };
    for (rule, edge) in path.rules.iter().zip(edges) {
        let when: Vec<Condition> = edge.when.iter().map(Condition::from).collect();
        let (from, to) = (full(edge.from), full(edge.to));
        let next = next(part, runs, path, &rule.from, &rule.to);
        if (&rule.from, next.as_ref(), &rule.when) != (&from, Some(&to), &when) {
            let listed = |when: &[Condition]| match when {
                [] => String::new(),
                all => format!(" where {}", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
            };
            let (says, by_plan, by_file) = (next.as_deref().unwrap_or("nowhere"), listed(&rule.when), listed(&when));
            return Err(other(format!(
                "by the plan, packets of chain {name} go {way} from {} to {says}{by_plan}, and by the file from {from} to {to}{by_file}",
                rule.from
            )));
        }
        ways.insert((from, is_back(direction), to));
    }
    Ok(())
}

/// Where a rule of a path leads on the server; None: nowhere there.
fn next(part: &Part<'_>, runs: &BTreeMap<&str, &Segment>, path: &Path, from: &str, to: &Next) -> Option<String> {
    let segment = |function: &str| runs.get(function).map(|segment| segment.name.as_str());
    match to {
        Next::In => Some("in".to_owned()),
        Next::Out => Some("out".to_owned()),
        Next::Drop => Some("drop".to_owned()),
        Next::Function(name) => (segment(name)? == segment(from)?).then(|| name.clone()),
        Next::Hop(si) => {
            let hop = path.hops.iter().find(|hop| hop.si == *si)?;
            let is_there = hop.on == part.on && segment(&hop.function) == Some(&hop.segment);
            (is_there && segment(from) != Some(&hop.segment)).then(|| hop.function.clone())
        }
    }
}

/// Check that the pipeline has the functions of the plan, and that packets go only where its rules lead them; anywhere they may be
/// dropped, which can be done earlier than the rules say.
fn pipeline(part: &Part<'_>, host: &Host, ways: &Ways) -> Result<(), Unlowered> {
    let name = |(c, n): (usize, usize)| {
        let chain = part.policy.chains.get(c)?;
        Some(format!("{}/{}", chain.name, chain.nodes.get(n)?.name))
    };
    let mut functions = BTreeMap::new();
    for (id, module) in host.modules.iter().enumerate() {
        let Lowered::Function { origin, .. } = &module.kind else { continue };
        let Some(name) = name(*origin) else {
            return Err(other(format!("the pipeline runs {}, which no chain has", module.name)));
        };
        functions.insert(id, name);
    }
    let count: usize = part.policy.chains.iter().map(|chain| chain.nodes.len()).sum();
    let all: BTreeSet<&String> = functions.values().collect();
    if (functions.len(), all.len()) != (count, count) {
        return Err(other(format!("the pipeline runs {} functions, and the plan {count}", functions.len())));
    }
    for back in [false, true] {
        let side = usize::from(back);
        let gates = functions.iter().map(|(id, name)| {
            let out = host.links.iter().filter(|link| link.from == *id && usize::from(link.gate) % 2 == side);
            (name.as_str(), out.map(|link| link.to).collect::<Vec<_>>())
        });
        let entry = host.entries[side].map(|(entry, _)| (if back { "out" } else { "in" }, vec![entry]));
        for (from, open) in gates.chain(entry) {
            for to in reached(host, &functions, open) {
                if to != "drop" && !ways.contains(&(from.to_owned(), back, to.to_owned())) {
                    return Err(other(format!(
                        "the pipeline leads packets from {from} to {to}, and the plan does not"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The functions and ends that packets come to next from these modules, through branches.
fn reached<'a>(host: &Host, functions: &'a BTreeMap<ModuleId, String>, mut open: Vec<ModuleId>) -> BTreeSet<&'a str> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some(module) = open.pop() {
        if !seen.insert(module) {
            continue;
        }
        match &host.modules[module].kind {
            Lowered::Function { .. } => found.extend(functions.get(&module).map(String::as_str)),
            Lowered::Exit(direction) => _ = found.insert(if is_back(*direction) { "in" } else { "out" }),
            Lowered::Discard => _ = found.insert("drop"),
            Lowered::Branch(_) | Lowered::Parsed => {
                open.extend(host.links.iter().filter(|link| link.from == module).map(|link| link.to));
            }
        }
    }
    found
}
