//! Changes are made where they are meant, and wrong ones say what there is.

use catena_policy::{Library, NoFiles, PolicyGraph};

use super::Edit;
use crate::rack::{Rack, SwitchKind, parse};

fn rack() -> Rack {
    let source = include_str!("../../../../examples/racks/lemur-smartnic.toml");
    parse(source, &[]).rack.expect("the example is good")
}

fn graph() -> PolicyGraph {
    let source = "chain a { promise 1Gbps..2Gbps within 45us in -> NAT -> out }";
    catena_policy::load("t.catena", source, &Library::default(), &NoFiles).graph.expect("the chain is good")
}

fn changed(text: &str) -> (Rack, PolicyGraph) {
    let (mut rack, mut graph) = (rack(), graph());
    let edit = Edit::parse(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    edit.apply(&mut rack, &mut graph).unwrap_or_else(|wrong| panic!("{wrong}"));
    (rack, graph)
}

fn refused(text: &str) -> String {
    let wrong = Edit::parse(text).and_then(|edit| edit.apply(&mut rack(), &mut graph()));
    wrong.expect_err(text).to_string()
}

#[test]
fn numbers_of_the_rack_change() {
    assert_eq!(changed("cores=8").0.servers[0].cores_per_socket, 4);
    assert_eq!(changed("nf1.steering_cores=2").0.servers[0].steering_cores, 2);
    assert_eq!(changed("nic=100Gbps").0.servers[0].nics[0].bps, 100e9);
    assert_eq!(changed("smart_nic=25Gbps").0.servers[0].smart_nics[0].bps, 25e9);
    assert_eq!(changed("clock = 3GHz").0.servers[0].clock_hz, 3e9);
    assert!(changed("shared=true").0.servers[0].shared);
    assert_eq!(changed("bounce=4us").0.switch.map(|s| s.bounce_ns), Some(4e3));
    assert_eq!(changed("packet_bytes=64").0.packet_bytes, 64.0);
    let Some(SwitchKind::Pisa(stages)) = changed("stages=20").0.switch.map(|s| s.kind) else { panic!("PISA") };
    assert_eq!((stages.stages, stages.sram_blocks), (20, 80));
}

#[test]
fn servers_are_copied_under_new_names() {
    let servers = changed("servers=3").0.servers;
    assert_eq!(servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["nf1", "nf1+2", "nf1+3"]);
    assert!(refused("servers=17").contains("34 network cards would not fit the 32 ports"));
}

#[test]
fn promises_change() {
    assert_eq!(changed("a.t_min=1500Mbps").1.chains[0].promise.t_min_bps, 1_500_000_000);
    assert_eq!(changed("a.t_max=none").1.chains[0].promise.t_max_bps, None);
    assert_eq!(changed("a.d_max=1ms").1.chains[0].promise.d_max_ns, Some(1_000_000));
    assert!(refused("a.t_min=3Gbps").contains("would guarantee more than it allows"));
}

#[test]
fn wrong_changes_say_what_there_is() {
    assert!(refused("core=8").contains("did you mean `cores`?"));
    assert!(refused("speed=8").contains("keys: servers, packet_bytes, stages"));
    assert!(refused("cores").contains("expected KEY=VALUE"));
    assert!(refused("cores=many").contains("`many` is no whole number from 1 to 1024"));
    assert!(refused("cores=7").contains("7 cores do not divide over the 2 sockets of `nf1`"));
    assert!(refused("nf1.steering_cores=16").contains("16 of 16 cores of `nf1`"));
    assert!(refused("nf2.cores=8").contains("did you mean `nf1`?"));
    assert!(refused("t_min=1Gbps").contains("CHAIN.t_min"));
    assert!(refused("b3.t_min=1Gbps").contains("there are: a"));
    assert!(refused("nf1.stages=20").contains("without a name"));
    assert!(refused("stages=2").contains("taken by steering"));
    assert!(refused("entries=2").contains("not of this kind of switch"));
    assert!(refused("nic=40GBs").contains("did you mean `Gbps`?"));
    assert!(refused("shared=maybe").contains("neither true nor false"));
}
