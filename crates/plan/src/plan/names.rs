//! Names in a plan that is read: whoever wrote it writes no lines of tables and messages.

use catena_plan_model::rack::is_name;

use super::Plan;

/// Check that what is shown in lines fits into them.
///
/// # Errors
/// The first name that does not.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let problem = &plan.problem;
    let servers = problem.servers.iter().map(|server| &server.name);
    let cards = problem.smart_nics.iter().map(|card| &card.name);
    match servers.chain(cards).chain([&plan.rack]).find(|name| !is_name(name)) {
        Some(name) => Err(format!(
            "{name:?} is no name of a rack or of what is in it: expected a word that fits a line of a table"
        )),
        None => Ok(()),
    }
}
