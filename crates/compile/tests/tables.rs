//! What functions make from their arguments alone is made once for all pipelines of a host.

use std::sync::Arc;

use catena_compile::library::signatures;
use catena_compile::{Built, Counts, Host, build, lower, reduce};
use catena_dataplane::Module;
use catena_dataplane::port::Sink;
use catena_functions::acl::{self, Filter};
use catena_functions::ipv4fwd::{self, IPv4Fwd};
use catena_packet::wire::Seed;
use catena_policy::{Disk, load};
use catena_state::Share;

fn host(text: &str) -> Host {
    let outcome = load("tables.catena", text, &signatures(), &Disk);
    lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered")
}

fn built(host: &Host, share: Share) -> Built {
    build(host, Seed::from_number(5), (share, None), |_| Box::new(Sink)).expect("it can be built")
}

/// Build a pipeline on trial, and then those of four workers.
fn five(host: &Host) -> Vec<Built> {
    drop(built(host, Share::WHOLE));
    (0..4).map(|index| built(host, Share { index, count: 4 })).collect()
}

fn module<'a, M: Module>(built: &'a mut Built, name: &str) -> &'a M {
    let node = built.graph.find(name).expect("the module is there");
    built.graph.module_mut(node).expect("it is of this type")
}

fn rules(built: &mut Built, name: &str) -> Arc<acl::List> {
    Arc::clone(module::<Filter>(built, name).list().expect("it searches its rules"))
}

fn routes(built: &mut Built, name: &str) -> Arc<ipv4fwd::Table> {
    Arc::clone(module::<IPv4Fwd>(built, name).table())
}

const ACLS: &str = r#"a = ACL(rules = "permit tcp")
b = ACL(rules = "permit udp")
in -> a -> b -> out
"#;

#[test]
fn the_rules_of_an_acl_are_compiled_once() {
    let host = host(ACLS);
    let mut workers = five(&host);
    assert_eq!(host.tables.len(), 2);
    let [first, other] = ["a", "b"].map(|name| rules(&mut workers[0], name));
    assert!(!Arc::ptr_eq(&first, &other), "other arguments make another table");
    assert!(workers.iter_mut().all(|worker| Arc::ptr_eq(&first, &rules(worker, "a"))));
    assert!(workers.iter_mut().all(|worker| Arc::ptr_eq(&other, &rules(worker, "b"))));
}

/// The first ACL of a reduced chain tells the second one's verdicts: these are other tables than those of the chain as it was.
#[test]
fn what_a_reduced_chain_leaves_out_is_left_out_of_no_other() {
    let plain = host(ACLS);
    let (reduced, findings) = reduce(plain.clone(), Counts::Functions).expect("the rules are right");
    assert!(!findings.findings.is_empty());
    let mut before = built(&plain, Share::WHOLE);
    let made = plain.tables.len();
    let mut workers = five(&reduced);
    assert_eq!((made, reduced.tables.len()), (2, 4), "a clone of a host has its tables");
    let first = rules(&mut workers[0], "a");
    assert!(!Arc::ptr_eq(&first, &rules(&mut before, "a")));
    assert!(workers.iter_mut().all(|worker| Arc::ptr_eq(&first, &rules(worker, "a"))));
    assert!(workers.iter_mut().all(|worker| module::<Filter>(worker, "b").list().is_none()), "it is told");
}

#[test]
fn a_table_of_routes_is_made_once() {
    let host = host(
        r#"f = IPv4Fwd(routes = ["10.0.0.0/8 192.0.2.1", "11.0.0.0/8 192.0.2.2 gate 1"])
g = IPv4Fwd(routes = "default 192.0.2.1")
in -> f
f[1] -> g -> out
f -> out
"#,
    );
    let mut workers = five(&host);
    assert_eq!(host.tables.len(), 2);
    let [first, other] = ["f", "g"].map(|name| routes(&mut workers[0], name));
    assert!(!Arc::ptr_eq(&first, &other));
    assert!(workers.iter_mut().all(|worker| Arc::ptr_eq(&first, &routes(worker, "f"))));
}

#[test]
fn tables_that_are_forgotten_live_as_long_as_the_pipelines() {
    let host = host(ACLS);
    let mut workers = five(&host);
    host.tables.clear();
    let first = Arc::downgrade(&rules(&mut workers[0], "a"));
    assert_eq!(first.strong_count(), 4, "each worker has it, and nobody else");
    drop(workers);
    assert_eq!(first.strong_count(), 0);
}
