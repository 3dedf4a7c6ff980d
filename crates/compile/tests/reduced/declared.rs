//! Functions do what they declare: they change no field but those they may, and fields that they do not read make no
//! difference to them.

use std::collections::BTreeMap;

use catena_compile::host::Lowered;
use catena_compile::library::signatures;
use catena_compile::{Host, lower};
use catena_functions::Fields;
use catena_packet::random::SplitMix64;
use catena_packet::wire::{Layers, Net, parse};
use catena_policy::{Disk, load};

use super::packets;
use crate::run::{Packet, run};

const CALLS: [&str; 9] = [
    "ACL(rules = [\"deny tcp from 10.1.0.0/16 to any port 80\", \"permit udp to any port 1-1023\", \"permit tcp\"])",
    "IPv4Fwd(routes = [\"default 192.0.2.1\", \"blackhole 10.7.0.0/16\"])",
    "IPv4Fwd(routes = [\"default 192.0.2.1 mac 02:00:00:00:00:01\"], mac = \"02:00:00:00:00:02\", checksum = false)",
    "IPv4Fwd(routes = \"default 192.0.2.1\", ttl = false)",
    "Monitor(max_flows = 1000)",
    "Limiter(rate = 500pps, burst = 20, per = src)",
    "Limiter(rate = 500pps, burst = 20)",
    "NAT(pool = 198.51.100.0/30, max_mappings = 1000)",
    "LB(vip = 192.0.2.9, backends = [10.1.2.3, 10.1.0.8])",
];

fn one(call: &str) -> Host {
    let text = format!("chain c {{ f = {call}\n in -> f -> out\n out -> f -> in }}\n");
    let outcome = load("one.catena", &text, &signatures(), &Disk);
    lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("one function can be lowered")
}

fn effects(host: &Host) -> catena_functions::Effects {
    let of = |m: &catena_compile::host::Module| match &m.kind {
        Lowered::Function { descriptor, args, .. } => Some((descriptor.effects)(args)),
        _ => None,
    };
    host.modules.iter().find_map(of).expect("there is a function")
}

/// The field that a byte of a frame belongs to.
fn field(at: usize, layers: &Layers) -> Fields {
    let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
    match (layers.net, at.checked_sub(l3)) {
        _ if at < 12 => Fields::STATIONS,
        (_, None) => Fields::NETWORK,
        (Net::Ipv4, Some(8)) | (Net::Ipv6, Some(7)) => Fields::TTL,
        (Net::Ipv4, Some(9)) => Fields::PROTOCOL,
        (Net::Ipv4, Some(10 | 11)) => Fields::CHECKSUM,
        (Net::Ipv4, Some(12..16)) | (Net::Ipv6, Some(8..24)) => Fields::SOURCE,
        (Net::Ipv4, Some(16..20)) | (Net::Ipv6, Some(24..40)) => Fields::DESTINATION,
        _ if layers.has(Layers::PORTS) && (l4..l4 + 4).contains(&at) => Fields::PORTS,
        _ => Fields::OTHERS,
    }
}

fn traffic(random: &mut SplitMix64) -> Vec<Packet> {
    let mut time = 1_600_000_000_000_000_000;
    let packet = |_| {
        time += random.below(2_000_000) as u64;
        (random.below(3) as usize / 2, time, packets::frame(random))
    };
    (0..3000).map(packet).collect()
}

#[test]
fn functions_change_only_what_they_declare() {
    let mut random = SplitMix64::new(3);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for call in CALLS {
        let host = one(call);
        let writes = effects(&host).writes;
        let mut changed = Fields::NONE;
        let packets = traffic(&mut random);
        let observed = run(&host, &packets, folder.path());
        for (_, clock, after) in &observed.out {
            let before = &packets[*clock as usize - 1].2;
            let layers = parse(before).expect("what is malformed does not leave");
            assert_eq!(before.len(), after.len());
            for (at, _) in before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after) {
                changed = changed | field(at, &layers);
            }
        }
        assert!(writes.has(changed), "{call} changes {changed}, and declares {writes}");
        assert!(observed.out.len() > 300, "{call} lets hardly anything pass");
    }
}

#[test]
fn fields_that_are_not_read_make_no_difference() {
    let mut random = SplitMix64::new(4);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for call in CALLS {
        let host = one(call);
        let reads = effects(&host).reads;
        let packets = traffic(&mut random);
        // Another value in every byte of fields that are not read, and of payload behind what is parsed.
        let mut others = packets.clone();
        let mut differ = 0;
        for (_, _, frame) in &mut others {
            let Ok(layers) = parse(frame) else { continue };
            for (at, byte) in frame.iter_mut().enumerate() {
                let field = field(at, &layers);
                // Protocol and lengths decide what is malformed, which is everybody's to drop.
                if field != Fields::OTHERS && field != Fields::PROTOCOL && !reads.meets(field) {
                    *byte ^= 0x11;
                    differ += 1;
                }
            }
        }
        let (one, other) = (run(&host, &packets, folder.path()), run(&host, &others, folder.path()));
        let fates = |left: &[(bool, u64, Vec<u8>)]| left.iter().map(|(side, clock, _)| (*clock, *side)).collect();
        let (before, after): (BTreeMap<u64, bool>, BTreeMap<u64, bool>) = (fates(&one.out), fates(&other.out));
        assert!(before == after, "{call} depends on more than {reads}");
        assert_eq!((one.counted, one.gauges), (other.counted, other.gauges), "{call} depends on more than {reads}");
        assert!(differ > 0, "{call} reads all fields");
    }
}
