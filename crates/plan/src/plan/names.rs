//! Names in a plan that is read: whoever wrote it writes no lines of tables and messages.

use catena_plan_model::rack::is_name;

use super::{Plan, Verdict};
use crate::tasks::Start;

/// Check that what is shown in lines fits into them.
///
/// # Errors
/// The first name that does not.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let problem = &plan.problem;
    let servers = problem.servers.iter().map(|server| &server.name);
    let cards = problem.smart_nics.iter().map(|card| &card.name);
    if let Some(name) = servers.chain(cards).chain([&plan.rack]).find(|name| !is_name(name)) {
        return Err(format!(
            "{name:?} is no name of a rack or of what is in it: expected a word that fits a line of a table"
        ));
    }
    if let Some((what, name)) = others(plan).find(|(_, name)| !fits_a_line(name)) {
        return Err(format!("{name:?} is no name of a {what}: expected what fits a line of a table"));
    }
    match said(plan).find(|(_, text)| !fits_a_line(text)) {
        Some((what, text)) => Err(format!("{text:?} is said ({what}): expected what fits a line")),
        None => Ok(()),
    }
}

/// What is said in words, with where that is.
fn said(plan: &Plan) -> impl Iterator<Item = (&'static str, &str)> {
    let lists = [("what_if", &plan.what_if), ("left_out", &plan.left_out), ("unseen", &plan.unseen)];
    let lists = lists.into_iter().flat_map(|(what, texts)| texts.iter().map(move |text| (what, text)));
    let borrowed = plan.borrowed.iter().flat_map(|own| [("borrowed", &own.function), ("borrowed", &own.source)]);
    let why = match &plan.verdict {
        Verdict::Broken { why, .. } => Some(("verdict.why", why)),
        Verdict::Kept { .. } => None,
    };
    let changed = plan.delta.iter().flat_map(|delta| &delta.changed).map(|text| ("delta.changed", text));
    let all = lists.chain(borrowed).chain(why).chain(changed).chain([("strategy", &plan.strategy)]);
    all.map(|(what, text)| (what, text.as_str()))
}

/// A file's own name may be a chain's, and is as long as it is and of any letters: it is only held to its line.
fn fits_a_line(name: &str) -> bool {
    !name.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// All names but the rack's, with what they are of.
fn others(plan: &Plan) -> impl Iterator<Item = (&'static str, &str)> {
    let problem = plan.problem.chains.iter().flat_map(|chain| {
        let nodes = chain.nodes.iter().flat_map(|node| [("function", &node.name), ("function", &node.function)]);
        nodes.chain([("chain", &chain.name)])
    });
    let chains = plan.chains.iter().flat_map(|chain| {
        let own = chain.functions.iter().flat_map(|own| [("function", &own.name), ("function", &own.function)]);
        own.chain([("chain", &chain.name)])
    });
    let policies = plan.policy.iter().flat_map(|policy| &policy.chains).flat_map(|chain| {
        let own = chain.functions.iter().flat_map(|own| [("function", &own.name), ("function", &own.function)]);
        own.chain([("chain", &chain.name)]).chain(chain.classes.iter().map(|class| ("class", class)))
    });
    let tasks = plan.servers.iter().filter_map(|server| server.tasks.as_ref()).flat_map(|tasks| {
        let starts = tasks.tasks.iter().filter_map(|task| match &task.start {
            Start::Class(class) => Some(("class", class)),
            Start::Port | Start::Function { .. } => None,
        });
        starts.chain(tasks.classes.iter().map(|class| ("class", &class.name)))
    });
    let deployed = plan.deployment.iter().flat_map(|deployment| {
        let segments = deployment.segments.iter().flat_map(|segment| {
            segment.functions.iter().map(|own| ("function", own)).chain([("segment", &segment.name)])
        });
        segments.chain(deployment.instances.iter().map(|instance| ("segment's instance", &instance.name)))
    });
    let all = problem.chain(chains).chain(policies).chain(tasks).chain(deployed);
    all.map(|(what, name)| (what, name.as_str()))
}
