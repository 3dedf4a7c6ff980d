//! Where the heuristic falls short of the exact planner: the smallest problems known, with what both find. The book
//! tells of them (docs/planning.md), and its figures are held against these.
//!
//! They were made from random problems by leaving out and rounding whatever could be.

use super::sample::{Holds, ON_LINK, chain, node, problem, server};
use super::{Strategy, exact, place};
use catena_plan_model::check::check;
use catena_plan_model::placement::{Outcome, Site};
use catena_plan_model::problem::{Problem, Replication, SmartNic};

const BOOK: &str = include_str!("../../../docs/planning.md");

/// The sites and the marginal rate in Gbit/s, as the book prints it, of a placement that passes the checker.
fn found(problem: &Problem, outcome: &Outcome) -> Option<(Vec<Vec<Site>>, String)> {
    let (placement, marginal_bps) = (outcome.placement()?, outcome.marginal_bps()?);
    assert!(check(problem, placement, &Holds(5)).is_ok());
    Some((placement.sites.clone(), format!("{:.2}", marginal_bps / 1e9)))
}

/// What the heuristic finds, and what the exact planner does without a start.
fn both(problem: &Problem) -> [Option<(Vec<Vec<Site>>, String)>; 2] {
    let ours = place(problem, Strategy::Lemur, &Holds(5));
    let best = exact::plan(problem, &Holds(5), None, &exact::Settings::default()).outcome;
    let Outcome::Placed { marginal_bps, bound_bps, .. } = &best else { panic!("{best:?}") };
    assert_eq!(*bound_bps, Some(*marginal_bps), "the best is proven");
    [found(problem, &ours), found(problem, &best)]
}

#[track_caller]
fn the_book_says(sentence: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(BOOK).contains(&words(sentence)), "docs/planning.md does not say: {sentence}");
}

/// From the heuristic's placement to the best, three functions change places at once. One or two of them alone make
/// it worse, as `a` then shares a core with what may have one only.
#[test]
fn worse_three_functions_would_have_to_move_at_once() {
    let (s0, s1) = (Site::Server(0), Site::Server(1));
    let costs = [("a", 19_000.0, true), ("b", 300.0, false), ("c", 300.0, false)];
    let nodes = costs.map(|(name, cycles, replicable)| node(name, Some(cycles), false, replicable));
    let chains = vec![chain("x", nodes.into(), &[(0, 1), (0, 2)])];
    let servers = vec![server(0, 4, vec![40e9]), server(1, 2, vec![40e9])];
    let [ours, best] = both(&problem(chains, servers, vec![], Replication::ByState));
    assert_eq!(ours, Some((vec![vec![s1, s0, s0]], "1.24".to_owned())));
    assert_eq!(best, Some((vec![vec![s0, s1, s1]], "2.47".to_owned())));
    the_book_says("the heuristic's plan carries 1.24 Gbit/s, the best one 2.47");
}

/// The heuristic goes from `a` on the switch to `a` on the card, as less of the promise is missed so; from there three
/// functions would have to move at once.
#[test]
fn missed_three_functions_would_have_to_move_at_once() {
    let mut a = node("a", Some(900.0), true, true);
    a.smart_nic = Some(5_000.0);
    let mut x = chain("x", vec![a, node("b", Some(600.0), false, true)], &[(0, 1)]);
    x.t_min_bps = 20e9;
    let y = chain("y", vec![node("c", Some(140.0), false, false)], &[]);
    let servers = vec![server(0, 2, vec![12e9 * ON_LINK]), server(1, 2, vec![23e9 * ON_LINK])];
    let card = SmartNic { name: "card".into(), server: 0, bps: 35e9 * ON_LINK, cycles_hz: 6e9, clock_hz: 0.5e9 };
    let problem = problem(vec![x, y], servers, vec![card], Replication::Paper);
    let [ours, best] = both(&problem);
    assert_eq!(ours, None);
    let sites = vec![vec![Site::Switch, Site::Server(1)], vec![Site::Server(0)]];
    assert_eq!(best, Some((sites, "15.00".to_owned())));
    the_book_says("the heuristic finds no plan; the best one carries 15.00 Gbit/s beyond the promise");
}
