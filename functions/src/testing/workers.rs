//! That several workers together do what one does: what an operator bounds is bounded for all of them.

use catena_dataplane::Module;
use catena_state::{Access, Declaration, Scope, Share, Team};

use super::engines::{made, on_delayed};
use super::{Fate, Harness, START, build, build_for, craft, describe};
use crate::registry::{FUNCTIONS, find};
use crate::{Affinity, Args, Descriptor, Value};

/// Instances, as many as workers.
const COUNT: u32 = 3;
/// Hosts that each worker meets: more than any has room for.
const HOSTS: u32 = 40;

fn function(name: &str) -> &'static Descriptor {
    find(name).expect("it is in the registry")
}

fn word(text: &str) -> Value {
    Value::Word(text.into())
}

fn number(n: i64) -> Value {
    Value::Integer(n)
}

/// The instances of a function.
fn instances(name: &str, args: &Args) -> Vec<Harness> {
    let made = (0..COUNT).map(|index| build(function(name), args, Share { index, count: COUNT }));
    made.map(|module| Harness::new(module.unwrap_or_else(|error| panic!("{error}")), 2)).collect()
}

/// Return what workers have together of a gauge, after packets of hosts that each has for itself. Of a host's lines, `HOST` is
/// its address.
fn together(name: &str, args: &Args, gauge: &str, lines: &[(u16, &str)]) -> (u64, Vec<u64>) {
    let mut parts = Vec::new();
    for (index, mut harness) in instances(name, args).into_iter().enumerate() {
        for host in 0..HOSTS {
            let address = format!("10.{index}.0.{host}");
            for (gate, line) in lines {
                harness.send(*gate, &[(START, craft(&line.replace("HOST", &address)))]);
            }
        }
        parts.push(harness.gauges()[gauge]);
        harness.end();
    }
    (parts.iter().sum(), parts)
}

/// A pool large enough for all.
fn nat() -> Args {
    Args::default().with("pool", Value::Prefix("198.51.100.0".parse().unwrap(), 24))
}

fn limiter(per: &str) -> Args {
    Args::default().with("rate", Value::PacketRate(1000)).with("per", word(per))
}

fn lb() -> Args {
    let endpoint = |text: &str| Value::Endpoint(text.parse().unwrap());
    Args::default().with("vip", endpoint("192.0.2.10:80")).with("backends", Value::List(vec![endpoint("10.9.0.1:80")]))
}

#[test]
fn a_bound_is_the_total_of_all_workers() {
    let udp = &[(0, "udp HOST:4000 > 192.0.2.9:53")][..];
    let scan = &[(0, "tcp HOST:4000 > 192.0.2.9:80 S"), (1, "tcp 192.0.2.9:80 > HOST:4000 RA")][..];
    let none = Args::default;
    for (name, args, bound, gauge, lines) in [
        ("NAT", nat(), "max_mappings", "mappings", udp),
        ("Limiter", limiter("src"), "max_keys", "keys", udp),
        ("Limiter", limiter("flow"), "max_keys", "keys", udp),
        // Receivers are what workers may meet in common: each worker's entry of one counts.
        ("Limiter", limiter("dst"), "max_keys", "keys", &[(0, "udp 10.9.9.9:4000 > HOST:53")]),
        ("PortScan", none(), "max_contacts", "contacts", scan),
        ("PortScan", none(), "max_sources", "sources", scan),
        ("Monitor", none(), "max_flows", "flows at the end", udp),
        ("LB", lb(), "max_connections", "connections", &[(0, "udp HOST:4000 > 192.0.2.10:80")]),
    ] {
        for (total, parts) in [(10, [4, 3, 3]), (12, [4, 4, 4]), (3, [1, 1, 1])] {
            let what = format!("{total} of `{bound}` of {name}({args:?})");
            let args = args.clone().with(bound, number(total));
            assert_eq!(together(name, &args, gauge, lines), (total as u64, parts.into()), "{what}");
        }
        // Without room a worker would refuse all its hosts.
        let too_little = args.with(bound, number(2));
        let error = build(function(name), &too_little, Share { index: 0, count: COUNT }).map(drop).unwrap_err();
        let expected = format!("`{bound}`: 2 is less than one for each of 3 workers");
        assert!(error.to_string().starts_with(&expected), "{name}: {error}");
        assert!(build(function(name), &too_little, Share::WHOLE).is_ok(), "{name}");
    }
}

/// The balancers of a team's workers, who know of each other.
fn balancers(args: &Args) -> Vec<Harness> {
    let team = Team::new(COUNT as usize);
    (0..COUNT)
        .map(|index| {
            let module = build_for(Some(&team), function("LB"), args, Share { index, count: COUNT }, &[]);
            Harness::new(module.unwrap_or_else(|error| panic!("{error}")), 2)
        })
        .collect()
}

#[test]
fn workers_that_share_a_balancer_have_the_total_together() {
    let mut harnesses = balancers(&lb().with("max_connections", number(10)));
    for (host, index) in (0..HOSTS).flat_map(|host| (0..COUNT).map(move |index| (host, index))) {
        let frame = craft(&format!("udp 10.{index}.0.{host}:4000 > 192.0.2.10:80"));
        harnesses[index as usize].send(0, &[(START, frame)]);
        harnesses.iter_mut().for_each(|harness| harness.tick(START));
    }
    assert_eq!(harnesses.iter().map(|harness| harness.gauges()["connections"]).sum::<u64>(), 10);
    harnesses.into_iter().for_each(Harness::end);
}

/// Each new connection goes to the server that has fewest of all workers' connections, as they were after the latest batch.
#[test]
fn workers_choose_the_server_with_fewest_connections_of_all() {
    let servers: Vec<String> = (1..=5).map(|n| format!("10.9.0.{n}")).collect();
    let list = |items: &[String]| Value::List(items.iter().map(|text| Value::Address(text.parse().unwrap())).collect());
    let args = Args::default().with("vip", list(&["192.0.2.10".to_owned()])).with("backends", list(&servers));
    let mut harnesses = balancers(&args);
    let mut active = [0u32; 5];
    // Who has the packet, by turns of one, two and three connections. What a worker opens alone would be even again and again.
    let turns = (0..60usize).flat_map(|turn| std::iter::repeat_n(turn % COUNT as usize, 1 + turn % 3));
    for (host, index) in turns.enumerate() {
        let frame = craft(&format!("udp 10.{index}.{}.{}:4000 > 192.0.2.10:80", host / 250, host % 250));
        let sent = harnesses[index].send(0, &[(START, frame)]);
        let text = describe(&sent[0].2);
        let server = servers.iter().position(|server| text.contains(&format!("> {server}:"))).expect("a server");
        assert_eq!(
            Some(server),
            (0..5).min_by_key(|n| (active[*n], *n)),
            "connection {host}, of worker {index}: {text}"
        );
        active[server] += 1;
        harnesses.iter_mut().for_each(|harness| harness.tick(START));
    }
    harnesses.into_iter().for_each(Harness::end);
}

/// Sessions have no gauge: packets that find room for theirs pass.
#[test]
fn sessions_of_a_nat_are_four_for_each_mapping_of_all_workers() {
    let args = nat().with("max_mappings", number(60)).with("filtering", word("address"));
    let passed = instances("NAT", &args).into_iter().enumerate().map(|(index, mut harness)| {
        let frames = (0..20u32).flat_map(|host| (1..=10u32).map(move |to| (host, to)));
        let frames = frames.map(|(host, to)| craft(&format!("udp 10.{index}.0.{host}:4000 > 192.0.2.{to}:53")));
        let passed = harness.send(0, &frames.map(|frame| (START, frame)).collect::<Vec<_>>()).len();
        harness.end();
        passed
    });
    let passed: usize = passed.sum();
    assert!(passed > 60 && passed <= 60 * 4, "{passed}");
}

/// What instances have in common, or would, though workers do not share packets out by its key, and why each may have its own all
/// the same. All that is not here and not counted up only must be kept by source or narrower.
const SHARED_OUT: &[(&str, &str, &str)] = &[
    ("LB", "connections", "each has its part of the total, and knows how many all have at each server"),
    ("Limiter", "buckets", "each has its part of the rate, and of the keys"),
    ("NAT", "ports", "each lends blocks of its own"),
    ("NAT", "shares of sessions", "each shares out the room of its own sessions"),
    ("NAT", "shares of fragments", "each shares out the room of its own fragments"),
    ("NAT", "identifications", "the highest bits are the instance"),
];

fn is_shared_out(function: &str, object: &Declaration) -> bool {
    SHARED_OUT.iter().any(|(of, name, _)| (*of, *name) == (function, object.name))
}

/// A function whose packets do not stay together is refused; those that are not keep to what they say.
#[test]
fn state_is_kept_by_what_workers_share_packets_out_by() {
    let mut used = 0;
    for function in FUNCTIONS {
        assert!(function.affinity.is_kept_by_workers(), "{} can have one worker only: say so here", function.name);
        for object in function.state {
            let is_kept = object.scope.is_within_source() || object.access == Access::WriteMostly;
            assert!(is_kept || is_shared_out(function.name, object), "{}: {object}", function.name);
        }
    }
    let any = Value::List(vec![Value::Text("permit any".into())]);
    let routes = Value::List(vec![Value::Text("default via 192.0.2.1".into())]);
    let pool = ["198.51.100.0", "2001:db8:99::"].map(|first| Value::Prefix(first.parse().unwrap(), 30));
    let share = Share { index: 1, count: COUNT };
    for (name, args) in [
        ("ACL", Args::default().with("rules", any)),
        ("IPv4Fwd", Args::default().with("routes", routes)),
        ("LB", lb()),
        ("LB", lb().with("method", word("consistent_hash"))),
        ("Limiter", limiter("class")),
        ("Limiter", limiter("src")),
        ("Limiter", limiter("src").with("prefix4", number(24))),
        ("Limiter", limiter("dst")),
        ("Limiter", limiter("flow")),
        ("Monitor", Args::default()),
        ("NAT", nat().with("filtering", word("address"))),
        ("NAT", nat().with("pool", Value::List(pool.into()))),
        ("PortScan", Args::default()),
    ] {
        // What functions make is noted where they are late.
        let made = on_delayed(1, || {
            made();
            build(function(name), &args, share).map(drop).unwrap_or_else(|error| panic!("{name}: {error}"));
            made()
        });
        for object in made.iter().filter(|object| object.access != Access::WriteMostly) {
            let is_kept = object.scope.is_within_source();
            assert!(is_kept || is_shared_out(name, object), "{name}({args:?}): {object}");
            if !is_kept {
                used += 1;
            }
        }
    }
    assert!(used >= SHARED_OUT.len());
}

#[test]
fn a_function_whose_packets_do_not_stay_together_has_one_worker() {
    let why = |affinity, share| {
        let descriptor = Descriptor { affinity, ..*function("Monitor") };
        build(&descriptor, &Args::default(), share).map(drop).map_err(|error| error.to_string())
    };
    let two = Share { index: 0, count: 2 };
    for (affinity, kept) in [
        (Affinity::Single, "it is one for all packets"),
        (Affinity::Scope(Scope::Destination), "it is kept by destination address"),
        (Affinity::Scope(Scope::Configured), "it is one for all packets"),
        (Affinity::Scope(Scope::Global), "it is one for all packets"),
    ] {
        let expected =
            format!("`Monitor`: 2 instances would each have a part of the state: {kept} (run it with one worker)");
        assert_eq!(why(affinity, two), Err(expected));
        assert_eq!(why(affinity, Share::WHOLE), Ok(()));
    }
    for scope in [Scope::Connection, Scope::SourceEndpoint, Scope::HostPair, Scope::Source] {
        assert_eq!(why(Affinity::Scope(scope), two), Ok(()));
    }
    assert_eq!(why(Affinity::None, two), Ok(()));
}

/// As its manual says.
#[test]
fn a_nat_leads_hairpins_within_an_instance() {
    let args = nat();
    let mut workers = instances("NAT", &args);
    let mut external = |index: usize| {
        let frame = craft(&format!("udp 10.{index}.0.1:4000 > 192.0.2.9:53"));
        let Fate::Out(0, bytes) = workers[index].send_one(0, START, &frame) else { panic!("it is refused") };
        describe(&bytes).split(' ').nth(1).expect("a source").to_owned()
    };
    let [own, other] = [external(0), external(1)];
    let mut fate = |to: &str| workers[0].send_one(0, START, &craft(&format!("udp 10.0.0.2:4000 > {to}")));
    assert!(matches!(fate(&own), Fate::Out(1, _)));
    assert_eq!(fate(&other), Fate::Dropped("no mapping"));
    workers.into_iter().for_each(Harness::end);
}

#[test]
fn every_worker_has_a_block_of_ports() {
    let args = nat().with("ports", Value::Range(2000, 2007)).with("block", number(4));
    let made = |count| build(function("NAT"), &args, Share { index: 0, count }).map(|_: Box<dyn Module>| ());
    assert!(made(2).is_ok());
    let error = made(3).unwrap_err().to_string();
    assert!(
        error.starts_with("`block`: an address has 2 blocks of ports, less than one for each of 3 workers"),
        "{error}"
    );
}
