//! What modules, tasks and classes are called, in plans and where there are none.

use catena_plan_alpine::pipeline::Origin;
use catena_plan_alpine::{Conflict, Graph, Refusal};
use catena_policy::PolicyGraph;

use super::Start;

/// What a module is called: a function with its chain in front, for chains may have functions of one name.
pub(super) fn name(policy: &PolicyGraph, graph: &Graph, origins: &[Origin], module: usize) -> String {
    let own = &graph.modules[module].name;
    let chain = match origins.get(module) {
        Some(Origin::Return((chain, _))) => Some(*chain),
        _ => chain_of(origins, module),
    };
    match chain.and_then(|c| policy.chains.get(c)) {
        Some(chain) => format!("{}/{own}", chain.name),
        None => own.clone(),
    }
}

/// Where the task that begins at `module` begins: a class waits where it enters its chain.
pub(super) fn start(policy: &PolicyGraph, origin: Option<&Origin>) -> Start {
    let Some(Origin::Node((c, n), group)) = origin else { return Start::Port };
    let chain = policy.chains.get(*c);
    let class = group.and_then(|k| policy.classes.get(k as usize));
    match (class, chain.and_then(|chain| Some((chain, chain.nodes.get(*n)?)))) {
        (Some(class), _) => Start::Class(class.name.clone()),
        (None, Some((chain, node))) => Start::Function { chain: chain.name.clone(), node: node.name.clone() },
        (None, None) => Start::Port,
    }
}

/// Why there are no tasks, with the names of classes.
pub(super) fn told(graph: &Graph, refusal: Refusal) -> String {
    let name = |class: &usize| graph.classes.get(*class).map_or("?", |class| &class.name).to_owned();
    match refusal {
        Refusal::Conflict(Conflict::RatioAcrossPriorities(a, b)) => {
            format!("{} and {} share in a ratio, but one of them comes before the other", name(&a), name(&b))
        }
        Refusal::Conflict(Conflict::PriorityCycle(class)) => format!("{} is to come before itself", name(&class)),
        Refusal::Conflict(Conflict::Twice(class)) => format!("{} stands on both sides of a relation", name(&class)),
        Refusal::Starved(classes) if !classes.is_empty() => {
            let names: Vec<String> = classes.iter().map(name).collect();
            format!("{}: what they share with others takes more than they were promised", names.join(", "))
        }
        other => other.to_string(),
    }
}

/// The chain whose packets a module is met by as they go forward.
pub(super) fn chain_of(origins: &[Origin], module: usize) -> Option<usize> {
    match origins.get(module) {
        Some(Origin::Node((chain, _), _)) => Some(*chain),
        _ => None,
    }
}
