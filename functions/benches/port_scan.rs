//! What PortScan costs a packet.
//!
//! `cargo bench -p catena-functions --bench port_scan`

mod line;

use catena_functions::port_scan::DESCRIPTOR;
use catena_functions::{Args, Value};

fn main() {
    // Nobody answers; so many failures are wanted of a scanner that all pass.
    let certain = |part: f64| Value::Percent(part);
    let args = Args::default().with("detection", certain(1.0 - 1e-12)).with("false_alarms", certain(1e-12));
    let traffic = |more: &str| format!("flows=10k,size=64,proto=tcp,src=100.64.0.0/10,dst=203.0.0.0/16{more}");
    line::report("source -> sink", None, &traffic(""));
    line::report("segments of 10,000 connections", Some((&DESCRIPTOR, &args)), &traffic(""));
    line::report("each packet a new connection", Some((&DESCRIPTOR, &args)), &traffic(",tcp=client,dist=fixed(1)"));
}
