//! What IPv4Fwd costs a packet: header check, look-up among 1,000 routes, TTL.
//!
//! `cargo bench -p catena-functions --bench ipv4fwd`

mod line;

use std::fmt::Write;

use catena_functions::ipv4fwd::DESCRIPTOR;
use catena_functions::{Args, Value};
use catena_packet::random::Random;
use std::net::{Ipv4Addr, Ipv6Addr};

const IPV4: &str = "flows=10k,size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16";
const IPV6: &str = "flows=10k,size=64,proto=udp:1+tcp:1,ipv6=100%";
const MIXED: &str = "flows=10k,size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16,ipv6=50%";

/// Routes of many lengths, half of them inside the addresses that the traffic goes to, and a default.
fn routes(count: usize) -> String {
    let mut random = Random::new(3);
    let mut routes = String::from("default 192.0.2.1\ndefault fe80::1\n");
    for i in 1..count {
        let bits = random.bits();
        let length = [16, 20, 24, 24, 24, 28, 32][random.below(7) as usize];
        let (ipv4, ipv6) =
            if i % 2 == 0 { (0xcb00, 0x2001_0db8_0002) } else { ((bits >> 48) as u32, (bits >> 16) | 1 << 45) };
        let ipv4 = (ipv4 << 16 | bits as u32 & 0xffff) & (u32::MAX << (32 - length));
        let ipv6 = (u128::from(ipv6) << 80 | u128::from(bits) << 16) & (u128::MAX << (96 - 2 * length));
        _ = writeln!(routes, "{}/{length} via 192.0.2.{}", Ipv4Addr::from_bits(ipv4), 2 + bits % 200);
        _ = writeln!(routes, "{}/{} via fe80::{:x}", Ipv6Addr::from_bits(ipv6), 32 + 2 * length, 2 + bits % 200);
    }
    routes
}

fn main() {
    let args = |count: usize| {
        // Prefixes drawn twice may have got two next hops: the metric tells them apart.
        let text: String = (0..).zip(routes(count).lines()).fold(String::new(), |mut text, (i, line)| {
            _ = writeln!(text, "{line} metric {i}");
            text
        });
        Args::default().with("routes", Value::File { path: "generated".into(), text })
    };
    line::report("source -> sink", None, IPV4);
    line::report("1,000 routes, IPv4", Some((&DESCRIPTOR, &args(1000))), IPV4);
    line::report("1,000 routes, IPv6", Some((&DESCRIPTOR, &args(1000))), IPV6);
    line::report("1,000 routes, half of each", Some((&DESCRIPTOR, &args(1000))), MIXED);
    let bare = args(1000).with("ttl", Value::Bool(false)).with("checksum", Value::Bool(false));
    line::report("1,000 routes, IPv4, look-up alone", Some((&DESCRIPTOR, &bare)), IPV4);
    let neighbours = (1..=201).map(|i| (format!("192.0.2.{i}"), Value::Text("02:00:00:00:00:01".into()))).collect();
    let macs =
        args(1000).with("neighbours", Value::Record(neighbours)).with("mac", Value::Text("02:00:00:00:00:02".into()));
    line::report("1,000 routes, IPv4, with stations", Some((&DESCRIPTOR, &macs)), IPV4);
}
