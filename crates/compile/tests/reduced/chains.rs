//! SplitMix64 chain files: functions with random configurations, joined at random.

use catena_packet::random::SplitMix64;
use catena_packet::wire::Net;

/// Networks and hosts that rules and packets share, so that they meet.
pub const V4: [&str; 6] = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "192.0.2.0/24", "192.0.2.9"];
const V6: [&str; 4] = ["2001:db8::/32", "2001:db8:1::/48", "2001:db8:1::7", "2001:db8:2::/48"];
const PROTOCOLS: [&str; 7] = ["any", "any", "tcp", "udp", "icmp", "6-17", "sctp"];
const PORTS: [&str; 6] = ["53", "80", "1-1023", "1024-65535", "0-65535", "50-60,80"];
/// Virtual addresses of balancers, and NATs' pool: among the destinations of packets.
pub const VIP: &str = "192.0.2.9";
pub const POOL: &str = "198.51.100.0/30";

pub fn pick<'a>(random: &mut SplitMix64, from: &[&'a str]) -> &'a str {
    from[random.below(from.len() as u32) as usize]
}

fn rule(random: &mut SplitMix64, deny: u32) -> String {
    let action = if random.below(100) < deny { "deny" } else { "permit" };
    let protocol = pick(random, &PROTOCOLS);
    let family = if random.below(4) > 0 { Net::Ipv4 } else { Net::Ipv6 };
    let mut side = |word: &str| {
        let address = match (random.below(3), family) {
            (0, _) => "any",
            (_, Net::Ipv4) => pick(random, &V4),
            _ => pick(random, &V6),
        };
        // A protocol without ports that are asked for would be refused.
        let ports = match (protocol, random.below(3)) {
            ("tcp" | "udp" | "sctp" | "any", 0) => format!(" port {}", pick(random, &PORTS)),
            _ => String::new(),
        };
        format!(" {word} {address}{ports}")
    };
    let (from, to) = (side("from"), side("to"));
    format!("\"{action} {protocol}{from}{to}\"")
}

fn acl(random: &mut SplitMix64) -> String {
    let deny = [0, 10, 40, 100][random.below(4) as usize];
    let rules: Vec<String> = (0..1 + random.below(10)).map(|_| rule(random, deny)).collect();
    let default = if deny > 0 && random.below(2) > 0 { ", default = permit" } else { "" };
    // Else hardly anything would get past two lists.
    let last = if random.below(3) > 0 { ", \"permit any\"" } else { "" };
    let unparsed = ["", "", "", ", unparsed = pass", ", unparsed = drop"][random.below(5) as usize];
    let routes = ["", "", ", source_routes = pass", ", source_routes = drop"][random.below(4) as usize];
    format!("ACL(rules = [{}{last}]{default}{unparsed}{routes})", rules.join(", "))
}

fn forward(random: &mut SplitMix64, gate: bool) -> String {
    let mac =
        |random: &mut SplitMix64| ["", " mac 02:00:00:00:00:01", " mac 02:00:00:00:00:02"][random.below(3) as usize];
    let mut routes = vec![format!("\"default via 192.0.2.1{}\"", mac(random))];
    if random.below(3) == 0 {
        routes.push("\"blackhole 10.1.2.0/24\"".to_owned());
    }
    if gate {
        routes.push(format!("\"10.1.0.0/16 192.0.2.2 gate 1{}\"", mac(random)));
    }
    let mut options = String::new();
    for (chance, option) in [(3, ", ttl = false"), (3, ", checksum = false")] {
        if random.below(chance) == 0 {
            options += option;
        }
    }
    if random.below(2) == 0 {
        options += ", mac = \"02:00:00:00:00:fe\"";
    }
    format!("IPv4Fwd(routes = [{}]{options})", routes.join(", "))
}

fn function(random: &mut SplitMix64, gate: bool) -> String {
    match random.below(10) {
        0..4 => acl(random),
        4..7 => forward(random, gate),
        7 => "Monitor(max_flows = 1000, export = \"@\")".to_owned(),
        8 => {
            let per = pick(random, &["class", "src", "flow"]);
            format!("Limiter(rate = {}pps, burst = 20, per = {per}, max_keys = 1000)", 100 + random.below(2000))
        }
        _ if random.below(2) == 0 => format!("NAT(pool = {POOL}, max_mappings = 1000)"),
        _ => format!("LB(vip = {VIP}, backends = [10.1.2.3, 10.1.0.8], max_connections = 1000)"),
    }
}

/// Return the text of a chain file: one chain, or two of which one is for a class.
pub fn file(random: &mut SplitMix64) -> String {
    if random.below(4) > 0 {
        return chain(random, "one", "");
    }
    let class = pick(random, &["src net 10.1.0.0/16", "udp", "ip6 or arp"]);
    let (first, second) = (chain(random, "one", " for some"), chain(random, "two", ""));
    format!("class some = \"{class}\"\n{first}{second}")
}

/// A chain for a class; every `"@"` at the beginning of a string stands for a folder.
fn chain(random: &mut SplitMix64, name: &str, class: &str) -> String {
    let count = 2 + random.below(5);
    let (mut functions, mut paths) = (String::new(), String::new());
    let mut line = Vec::new();
    for n in 0..count {
        let gate = n > 0 && random.below(4) == 0;
        let call = match n {
            // Two lists of the same rules are what reducing is about.
            1 if random.below(6) == 0 => None,
            _ => Some(function(random, gate)),
        };
        let call = call.unwrap_or_else(|| {
            let first = functions.lines().next().and_then(|l| l.split_once(" = ")).expect("there is a first function");
            first.1.replace("\"@0\"", "\"@\"")
        });
        let call = call.replace("\"@\"", &format!("\"@{n}\""));
        functions += &format!("    n{n} = {call}\n");
        // What a function sends by a gate of its own may meet other functions before it ends or joins again.
        let other = if call.contains("gate 1") {
            Some("1")
        } else if call.starts_with("ACL") && random.below(5) == 0 {
            Some("deny")
        } else {
            None
        };
        if let Some(value) = other {
            let detour = function(random, false).replace("\"@\"", &format!("\"@{n}x\""));
            let end = ["drop".to_owned(), "out".to_owned(), format!("n{}", n + 1)][random.below(3) as usize].clone();
            let end = if n + 1 == count && end.starts_with('n') { "out".to_owned() } else { end };
            functions += &format!("    x{n} = {detour}\n");
            paths += &format!("    n{n}[{value}] -> x{n} -> {end}\n");
        }
        if n > 0 && random.below(6) == 0 {
            let filter =
                pick(random, &["udp", "tcp port 80", "src net 10.1.0.0/16", "ip6", "ether src 02:02:02:02:02:02"]);
            let arm = function(random, false).replace("\"@\"", &format!("\"@{n}b\""));
            line.push(format!("[ \"{filter}\": {arm} ]"));
        }
        line.push(format!("n{n}"));
    }
    if random.below(6) == 0 {
        functions += "    unparsed = drop\n";
    }
    paths += &format!("    in -> {} -> out\n", line.join(" -> "));
    if random.below(2) == 0 {
        let mut back: Vec<String> = (0..count).rev().filter(|_| random.below(4) > 0).map(|n| format!("n{n}")).collect();
        back.insert(0, "out".to_owned());
        back.push("in".to_owned());
        paths += &format!("    {}\n", back.join(" -> "));
    }
    format!("chain {name}{class} {{\n{functions}{paths}}}\n").replace("\"@", &format!("\"@{name}"))
}
