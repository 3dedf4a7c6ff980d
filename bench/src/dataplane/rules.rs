//! Rule sets and routes for the cases, the same every time.

use std::collections::BTreeSet;
use std::fmt::Write;

use catena_packet::random::Random;

/// Return `count` five-tuple rules in the manner of real filters: prefixes of many lengths that overlap, exact
/// ports, ranges and none, TCP, UDP and any; the traffic of the cases meets rules all over the list.
pub fn acl(count: usize) -> String {
    let mut random = Random::new(count as u64);
    let mut rules = String::new();
    for i in 0..count {
        let action = if random.below(10) == 0 { "deny" } else { "permit" };
        let proto = ["tcp", "udp", "any"][random.below(3) as usize];
        // Inside addresses of 100.64.0.0/10, servers of 203.0.0.0/16, as the generator's traffic.
        let source_length = [12, 16, 20, 24, 24, 28, 32, 32][random.below(8) as usize];
        let source = 0x6440_0000 | (random.bits() as u32 & 0x003f_ffff) & (u32::MAX << (32 - source_length));
        let target_length = [16, 20, 24, 24, 28, 32, 32, 32][random.below(8) as usize];
        let target = 0xcb00_0000 | (random.bits() as u32 & 0x0000_ffff) & (u32::MAX << (32 - target_length));
        let low = 1 + random.below(60_000);
        let ports = match random.below(4) {
            _ if proto == "any" => String::new(),
            0 => String::new(),
            1 => format!(" port {low}-{}", low + random.below(5_000)),
            _ => format!(" port {low}"),
        };
        let (source, target) = (std::net::Ipv4Addr::from_bits(source), std::net::Ipv4Addr::from_bits(target));
        if i % 10 == 9 {
            // One rule in ten is for IPv6.
            let host = random.below(1 << 24);
            _ = writeln!(rules, "{action} {proto} from any to 2001:db8:2::{:x}:{:x}/112{ports}", host >> 16, 0);
        } else {
            _ = writeln!(rules, "{action} {proto} from {source}/{source_length} to {target}/{target_length}{ports}");
        }
    }
    rules
}

/// Return `count` routes: half of them inside the addresses that the traffic goes to, and a default.
pub fn routes(count: usize) -> String {
    let mut random = Random::new(3);
    let mut routes = String::from("0.0.0.0/0 via 192.0.2.1\n::/0 via 2001:db8::1\n");
    let mut known = BTreeSet::new();
    while known.len() + 2 < count {
        let length = [16, 20, 24, 24, 24, 28, 32][random.below(7) as usize];
        let bits = random.bits() as u32;
        let near = known.len() % 2 == 0 && length > 16;
        let address = if near { 0xcb00_0000 | (bits & 0xffff) } else { bits } & (u32::MAX << (32 - length));
        if known.insert((address, length)) {
            _ = writeln!(routes, "{}/{length} via 192.0.2.{}", std::net::Ipv4Addr::from_bits(address), 2 + bits % 200);
        }
    }
    routes
}
