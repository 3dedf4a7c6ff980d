//! What Limiter costs a packet that passes.
//!
//! `cargo bench -p catena-functions --bench limiter`

mod line;

use catena_functions::limiter::DESCRIPTOR;
use catena_functions::{Args, Value};

fn main() {
    let args = |per: &str| {
        Args::default().with("rate", Value::BitRate(1_000_000_000_000)).with("per", Value::Word(per.to_owned()))
    };
    // Every flow of its own source.
    let ipv4 = "flows=10k,size=64,proto=udp:1+tcp:1,src=100.64.0.0/10,dst=203.0.0.0/16";
    let ipv6 = "flows=10k,size=64,proto=udp:1+tcp:1,ipv6=100%";
    line::report("source -> sink", None, ipv4);
    line::report("per = class", Some((&DESCRIPTOR, &args("class"))), ipv4);
    line::report("per = src, 10,000 sources", Some((&DESCRIPTOR, &args("src"))), ipv4);
    line::report("per = flow, 10,000 flows", Some((&DESCRIPTOR, &args("flow"))), ipv4);
    line::report("per = flow, 1,000,000 flows", Some((&DESCRIPTOR, &args("flow"))), &ipv4.replace("10k", "1M"));
    let hosts = args("src").with("prefix6", Value::Integer(128));
    line::report("per = src, 10,000 sources, IPv6", Some((&DESCRIPTOR, &hosts)), ipv6);
}
