//! What runs is the plan: a packet that comes in by a side enters the chain by the host's branch that the plan's entrances name.
//!
//! Entrances are read here as another back end would: addresses and libpcap's program of the filter, the first match takes the packet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use catena_compile::backend::{self, OnHost};
use catena_compile::host::{Arm, Link, LowerError, Module};
use catena_compile::library::signatures;
use catena_compile::{Host, Lowered, catalogue, lower};
use catena_dataplane::branch::bpf::{Insn, Program};
use catena_packet::random::SplitMix64;
use catena_plan::alpine::Objective;
use catena_plan::demand::{self, Options};
use catena_plan::deployment::entrances::Entrance;
use catena_plan::deployment::{Before, Deployment, Ways};
use catena_plan::explain::Case;
use catena_plan::lemur::{Strategy, place};
use catena_plan::paper;
use catena_plan::plan::Plan;
use catena_plan::rack;
use catena_plan::returns::Prefix;
use catena_plan::switch::for_problem;
use catena_policy::{Direction, Disk, Filter, Libpcap, PolicyGraph, Promise, load};

use crate::run;

const RACK: &str = "name = \"r\"\npacket_bytes = 512\n[[server]]\nname = \"nf1\"\ncores = 16\nsteering_cores = 0\nshared = true\n\
    clock = \"2GHz\"\nnics = [\"100Gbps\"]\n";

/// Chain files in which classes and addresses do not agree.
const FILES: [(&str, &[&str], &str); 6] = [
    (
        "two NATs, the class of the first has the pools of both",
        &["first", "second"],
        "class a = \"src net 10.0.0.0/9\" back \"dst net 198.51.100.0/24\"\n\
         class b = \"src net 10.0.0.0/8\" back \"dst net 198.51.100.0/26\"\n\
         chain first for a { in <-> NAT(pool = 198.51.100.64/28) <-> out }\n\
         chain second for b { in <-> NAT(pool = [198.51.100.0/28, 198.51.100.70-198.51.100.90]) <-> out }\n",
    ),
    (
        "a balancer's servers are customers, too",
        &["internet", "rest", "site"],
        "class web = \"dst host 203.0.113.10 and tcp port 80\" back \"src net 10.1.0.0/24 and tcp port 8080\"\n\
         class homes = \"src net 10.1.0.0/24\"\n\
         chain site for web { in <-> LB(vip = 203.0.113.10:80, backends = [10.1.0.1:8080, 10.1.0.2:8081]) <-> out }\n\
         chain internet for homes { in <-> NAT(pool = 198.51.100.0/28) <-> out }\n\
         chain rest { in <-> Monitor() <-> out }\n",
    ),
    (
        "a class with a filter for the way back, before addresses of the chain without a class",
        &["rest"],
        "class voip = \"udp portrange 16384-32767\" back \"dst net 198.51.100.0/30 and udp\"\n\
         chain calls for voip { in <-> Monitor() <-> out }\n\
         chain rest { in <-> NAT(pool = 198.51.100.0/29) <-> out }\n",
    ),
    (
        "classes of one chain alone",
        &["only"],
        "class a = \"src net 10.0.0.0/9\" back \"dst net 198.51.100.0/28 and tcp\"\nclass b = \"udp port 53\"\n\
         chain only for a, b { in <-> NAT(pool = 198.51.100.8/29) <-> out }\n\
         chain one_way { in -> Monitor() -> out }\n",
    ),
    (
        "a NAT that packets on the way back do not meet",
        &["first", "rest"],
        "class a = \"src net 10.0.0.0/9\" back \"dst net 198.51.100.0/28\"\n\
         chain first for a { mon = Monitor()  in -> mon -> NAT(pool = 198.51.100.0/28) -> out  out -> mon -> in }\n\
         chain rest { unparsed = drop  in <-> NAT(pool = 198.51.100.4/30) <-> out }\n",
    ),
    ("one chain takes all", &["nat"], "chain nat { in <-> NAT(pool = 198.51.100.0/28) <-> out }\n"),
];

/// The plan of a policy for one large server, whatever it promises.
fn planned(policy: &mut PolicyGraph) -> Plan {
    policy.chains.iter_mut().for_each(|chain| chain.promise = Promise::default());
    policy.relations.clear();
    let rack = rack::parse(RACK, &[]).rack.expect("the rack can be read");
    let mut known = catalogue::catalogue();
    known.returning = catalogue::returning(policy);
    // Whatever functions cost, packets enter chains the same.
    let mut profile = paper::profile();
    let cost = profile.functions.values().next().expect("the paper has figures").clone();
    for function in &known.functions {
        profile.functions.insert(function.name.clone(), cost.clone());
    }
    let problem = demand::problem(policy, &rack, &known, &profile, Options::default());
    let problem = problem.unwrap_or_else(|unknown| panic!("{unknown:?}"));
    let (switch, sources) = (for_problem(&problem), BTreeMap::new());
    let outcome = place(&problem, Strategy::Lemur, &*switch);
    let case =
        Case { problem: &problem, rack: &rack, switch: &*switch, sources: &sources, strategy: "any", runs: None };
    let plan = Plan::of(&case, &outcome).scheduled(policy, Objective::FewestTasks);
    let plan = plan.deployed(Before::Nothing(1), Some(Ways { policy, catalogue: &known }));
    plan.judge(&*switch).unwrap_or_else(|faults| panic!("{faults:#?}"));
    plan
}

/// A packet as entrances see it.
struct Seen {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    bytes: Vec<u8>,
}

/// TCP, UDP or ICMP over IPv4.
fn packet(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, ports: [u16; 2]) -> Seen {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    bytes.extend([0x45, 0, 0, 40, 0, 1, 0, 0, 64, protocol, 0, 0]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    let upper: [u8; 16] = match protocol {
        6 => [0, 0, 0, 1, 0, 0, 0, 1, 0x50, 16, 1, 0, 0, 0, 0, 0],
        17 => [0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => [0; 16],
    };
    let first = if protocol == 1 {
        [8, 0, 0, 0]
    } else {
        [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat().try_into().expect("four bytes")
    };
    bytes.extend(first);
    bytes.extend(upper);
    Seen { source, destination, bytes }
}

/// Packets between addresses that the file or the plan has in it, and those beside them.
fn drawn(text: &str, deployment: &Deployment, random: &mut SplitMix64) -> Vec<Seen> {
    let mut addresses: BTreeSet<u32> = BTreeSet::new();
    let mut ports: BTreeSet<u16> = BTreeSet::new();
    for word in text.split(|c: char| !(c.is_ascii_digit() || c == '.')) {
        addresses.extend(word.parse::<Ipv4Addr>().map(u32::from));
        ports.extend(word.parse::<u16>());
    }
    for prefix in deployment.entrances.iter().flat_map(|entrance| entrance.destinations.iter().chain(&entrance.sources))
    {
        let IpAddr::V4(first) = prefix.address() else { continue };
        let past = u64::from(u32::from(first)) + (1 << (32 - u64::from(prefix.length())));
        addresses.extend([u32::from(first), past as u32]);
    }
    let (addresses, ports): (Vec<u32>, Vec<u16>) = (addresses.into_iter().collect(), ports.into_iter().collect());
    let mut address = || {
        let near = [0, 0, 1, 2, 5, 9, u32::MAX, u32::MAX - 1][random.below(8) as usize];
        let far = random.below(1 << 20);
        let of = addresses.get(random.below(addresses.len().max(1) as u32) as usize).copied().unwrap_or_default();
        let by = if random.below(8) == 0 { far } else { near };
        let port = ports.get(random.below(ports.len().max(1) as u32) as usize).copied().unwrap_or_default();
        (
            Ipv4Addr::from(of.wrapping_add(by)),
            port.wrapping_add([0, 0, 0, 1, u16::MAX][random.below(5) as usize]),
            random.below(7),
        )
    };
    let one = |_| {
        let ((source, from, protocol), (destination, to, _)) = (address(), address());
        packet(source, destination, [6, 6, 6, 17, 17, 17, 1][protocol as usize], [from, to])
    };
    (0..3000).map(one).collect()
}

/// The chain of the path that entrances name; None: no entrance takes the packet.
fn by_plan(deployment: &Deployment, filters: &[Option<Program>], direction: Direction, seen: &Seen) -> Option<String> {
    let within = |address: Ipv4Addr, prefix: &Prefix| {
        let IpAddr::V4(network) = prefix.address() else { return false };
        let differ = u32::from(address) ^ u32::from(network);
        prefix.length() == 0 || differ >> (32 - u32::from(prefix.length())) == 0
    };
    let takes = |(entrance, filter): &(&Entrance, &Option<Program>)| {
        let by_address = entrance.destinations.iter().any(|prefix| within(seen.destination, prefix))
            || entrance.sources.iter().any(|prefix| within(seen.source, prefix));
        let is_plain = entrance.destinations.is_empty() && entrance.sources.is_empty();
        entrance.direction == direction
            && (by_address || is_plain && filter.as_ref().is_none_or(|filter| filter.matches(&seen.bytes)))
    };
    let (entrance, _) = deployment.entrances.iter().zip(filters).find(takes)?;
    let path = deployment.paths.iter().find(|path| path.spi == entrance.spi).expect("entrances are of paths");
    assert_eq!(path.direction, direction);
    Some(path.chain.clone())
}

/// The chain that a module is of, or leads to.
fn chain_at(host: &Host, policy: &PolicyGraph, module: usize) -> String {
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        match &host.modules[module].kind {
            Lowered::Function { origin: (chain, _), .. } => return policy.chains[*chain].name.clone(),
            _ => open.extend(host.links.iter().filter(|link| link.from == module).map(|link| link.to)),
        }
    }
    panic!("a chain of no function cannot be told here")
}

/// The chain that each packet enters by the host's branch, whose packets leave here instead of entering one.
fn by_host(host: &Host, policy: &PolicyGraph, direction: Direction, packets: &[Seen]) -> Vec<Option<String>> {
    let mut taken = vec![None; packets.len()];
    let Some((entry, _)) = host.entries[usize::from(direction == Direction::Return)] else { return taken };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let frames: Vec<run::Packet> = packets.iter().map(|seen| (0, 1, seen.bytes.clone())).collect();
    let every = vec![Arm { when: Vec::new(), gate: 0 }];
    let (arms, ways): (&[Arm], Vec<(u16, usize)>) = match &host.modules[entry].kind {
        // What a file says of the edges that leave the side itself is no entrance.
        Lowered::Branch(arms) if host.modules[entry].name.starts_with("classify") => {
            (arms, host.links.iter().filter(|link| link.from == entry).map(|link| (link.gate, link.to)).collect())
        }
        _ => (&every, vec![(0, entry)]),
    };
    for (gate, to) in ways {
        let modules = [("branch", Lowered::Branch(arms.to_vec())), ("out", Lowered::Exit(Direction::Forward))];
        let modules = modules.map(|(name, kind)| Module { name: name.to_owned(), kind });
        let links = vec![Link { from: 0, gate, to: 1, to_gate: 0 }];
        let alone = Host { modules: modules.into(), links, entries: [Some((0, 0)), None], ..Host::default() };
        let name = chain_at(host, policy, to);
        for (_, clock, _) in run::run(&alone, &frames, folder.path()).out {
            let was = taken[clock as usize - 1].replace(name.clone());
            assert_eq!(was, None, "a packet left by two gates");
        }
    }
    taken
}

/// The programs of the filters of entrances.
fn programs(entrances: &[Entrance]) -> Vec<Option<Program>> {
    let program = |entrance: &Entrance| {
        let filter = Filter::new(entrance.filter.as_ref()?, &Libpcap).unwrap_or_else(|error| panic!("{error}"));
        let insns: Vec<Insn> =
            filter.program.iter().map(|i| Insn { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
        Some(Program::new(&insns).expect("libpcap's programs run"))
    };
    entrances.iter().map(program).collect()
}

/// The policy of a file, what it is lowered to, and its plan; None: its functions are those of papers, which run nowhere.
pub fn both(name: &str, text: &str) -> Option<(PolicyGraph, Host, Plan)> {
    let mut policy = load(name, text, &signatures(), &Disk).graph?;
    let host = match lower(&policy) {
        Err(LowerError::UnknownFunction { .. }) => return None,
        lowered => lowered.unwrap_or_else(|error| panic!("{name}: {error}")),
    };
    let plan = planned(&mut policy);
    assert!(plan.deployment.is_some(), "{name}: {:?}", plan.verdict);
    Some((policy, host, plan))
}

/// Hold plan and host against each other; returns which chains took packets on the way back, and how many of these packets classes
/// alone would have led elsewhere.
fn compare(name: &str, text: &str) -> Option<(BTreeSet<String>, usize)> {
    let (policy, host, plan) = both(name, text)?;
    let deployment = plan.deployment.as_ref()?;
    let filters = programs(&deployment.entrances);
    let mut classes = deployment.clone();
    classes.entrances.retain(|entrance| entrance.destinations.is_empty() && entrance.sources.is_empty());
    let of_classes = programs(&classes.entrances);
    let packets = drawn(text, deployment, &mut SplitMix64::new(5));
    let (mut met, mut otherwise) = (BTreeSet::new(), 0);
    for direction in [Direction::Forward, Direction::Return] {
        for (seen, ran) in packets.iter().zip(by_host(&host, &policy, direction, &packets)) {
            let said = by_plan(deployment, &filters, direction, seen);
            assert_eq!(
                said, ran,
                "{name}: {direction:?} from {} to {}: {:x?}",
                seen.source, seen.destination, seen.bytes
            );
            if direction == Direction::Return {
                if by_plan(&classes, &of_classes, direction, seen) != ran {
                    otherwise += 1;
                }
                met.extend(ran);
            }
        }
    }
    Some((met, otherwise))
}

#[test]
fn packets_enter_chains_as_the_plan_says() {
    for (name, chains, text) in FILES {
        let (met, otherwise) = compare(name, text).unwrap_or_else(|| panic!("{name}: it is wrong"));
        assert_eq!(met.iter().map(String::as_str).collect::<Vec<_>>(), chains, "{name}");
        let by_address = name != "one chain takes all";
        assert_eq!(otherwise > 0, by_address, "{name}: addresses decided about {otherwise}");
    }
}

fn edge() -> (PolicyGraph, Host, Plan) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/edge.catena");
    let text = std::fs::read_to_string(&path).expect("the example can be read");
    both(&path.display().to_string(), &text).expect("it is of the library's functions")
}

/// A host beside the balancer's servers answers a customer: it looks like the class of the one, and is of the other.
#[test]
fn an_address_of_the_nat_tells_more_than_the_class_of_the_servers() {
    let (policy, host, plan) = edge();
    let deployment = plan.deployment.expect("it is placed");
    let answer = packet([10, 1, 0, 9].into(), [198, 51, 100, 5].into(), 6, [8080, 40000]);
    let said = by_plan(&deployment, &programs(&deployment.entrances), Direction::Return, &answer);
    assert_eq!(said.as_deref(), Some("internet"));
    assert_eq!(by_host(&host, &policy, Direction::Return, &[answer]), [said]);
}

#[test]
fn a_plan_of_other_entrances_is_not_run() {
    let (policy, _, plan) = edge();
    let lowered = |plan: &Plan| backend::lower(&policy, plan, &[&OnHost::default()]).err().map(|why| why.to_string());
    assert_eq!(lowered(&plan), None);
    let changes: [fn(&mut Vec<Entrance>); 4] = [
        |entrances| entrances.reverse(),
        |entrances| drop(entrances.pop()),
        |entrances| entrances.iter_mut().for_each(|entrance| entrance.sources.clear()),
        |entrances| entrances.retain(|entrance| entrance.destinations.is_empty()),
    ];
    for change in changes {
        let mut other = plan.clone();
        change(&mut other.deployment.as_mut().expect("it is placed").entrances);
        let why = lowered(&other).expect("packets would enter other chains");
        assert!(why.contains("enter other chains than they would here"), "{why}");
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "catena") {
            found.push(path);
        }
    }
}

/// All files of functions that the library has; those of papers' functions run nowhere.
#[test]
fn packets_enter_chains_of_the_examples_as_the_plan_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut compared = BTreeSet::new();
    for path in found {
        let text = std::fs::read_to_string(&path).expect("examples can be read");
        if let Some((met, otherwise)) = compare(&path.display().to_string(), &text) {
            let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
            if name == "edge.catena" {
                assert_eq!(met, ["calls", "internet", "site"].map(str::to_owned).into());
                assert!(otherwise > 0);
            }
            compared.insert(name);
        }
    }
    assert_eq!(compared, ["edge.catena", "native.catena"].map(str::to_owned).into());
}
