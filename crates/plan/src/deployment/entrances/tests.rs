//! Who enters at a side, in which order.

use catena_plan_model::returns::Returns;
use catena_policy::{Direction, Library, NoFiles, Node, PolicyGraph};

use super::{Criterion, entries};

fn policy(text: &str) -> PolicyGraph {
    let outcome = catena_policy::load("t.catena", text, &Library::default(), &NoFiles);
    outcome.graph.unwrap_or_else(|| panic!("{:?}\n{text}", outcome.diagnostics))
}

/// NATs of this test use addresses by the number that they are given, balancers one that they send to.
fn returns(node: &Node) -> Returns {
    let pool = node.args.first().map_or_else(String::new, |(_, value)| value.to_string());
    let prefix = |text: String| vec![text.parse().unwrap_or_else(|why| panic!("{why}"))];
    match node.function.as_str() {
        "NAT" => Returns { destinations: prefix(format!("198.51.100.{pool}/32")), sources: Vec::new() },
        "LB" => Returns { destinations: Vec::new(), sources: prefix("10.1.0.1/32".to_owned()) },
        _ => Returns::default(),
    }
}

/// The entries as text: chain, and what enters it.
fn shown(text: &str, direction: Direction) -> Vec<String> {
    let policy = policy(text);
    let one = |entry: &super::Entry<'_>| {
        let what = match &entry.criterion {
            Criterion::Addresses(all) => {
                all.destinations.iter().chain(&all.sources).map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
            Criterion::Class(class, filter) => format!("{}: {}", class.name, filter.text),
            Criterion::Others => "others".to_owned(),
        };
        format!("{} {what}", policy.chains[entry.chain].name)
    };
    entries(&policy, direction, returns).iter().map(one).collect()
}

#[test]
fn addresses_come_before_classes() {
    let text = "class a = \"src net 10.0.0.0/8\" back \"dst net 198.51.100.0/24\"\nclass b = \"udp port 53\"\n\
        chain plain for b { in <-> Monitor() <-> out }\nchain nat for a { in <-> NAT(pool = 1) <-> LB() <-> out }\n\
        chain rest { in <-> NAT(pool = 2) <-> out }\n";
    let forward = ["nat a: src net 10.0.0.0/8", "plain b: udp port 53", "rest others"];
    assert_eq!(shown(text, Direction::Forward), forward);
    let back = [
        "nat 198.51.100.1/32 10.1.0.1/32",
        "rest 198.51.100.2/32",
        "nat a: dst net 198.51.100.0/24",
        "plain b: udp port 53",
        "rest others",
    ];
    assert_eq!(shown(text, Direction::Return), back);
}

#[test]
fn only_what_packets_meet_on_the_way_back_is_theirs() {
    let text = "class a = \"udp\"\nchain nat for a { in -> NAT(pool = 1) -> NAT(pool = 2) -> out  out -> NAT(pool = 3) -> in }\n\
        chain one_way { in -> NAT(pool = 4) -> out }\n";
    assert_eq!(shown(text, Direction::Return), ["nat 198.51.100.3/32", "nat a: udp"]);
}

#[test]
fn a_chain_alone_takes_all() {
    let text = "chain nat { in <-> NAT(pool = 1) <-> out }\nchain one_way for a { in -> Monitor() -> out }\nclass a = \"udp\"\n";
    assert_eq!(shown(text, Direction::Return), ["nat others"]);
    assert_eq!(shown(text, Direction::Forward), ["one_way a: udp", "nat others"]);
}
