//! Golden records, totals against a plain reference, and IPFIX read by other eyes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use catena_dataplane::Module;
use catena_dataplane::pipeline::Time;
use catena_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};
use catena_packet::wire::{FlowKey, Seed, tcp};
use catena_state::{Delayed, Local};
use proptest::prelude::*;

use super::flow::Flow;
use super::*;
use crate::config::Value;
use crate::function::Runner;
use crate::testing::engines::{Late, delays, tests};
use crate::testing::{Harness, hashed_with};
use catena_packet::random::Random;

const START: u64 = 1_700_000_000 * SECOND;
const MILLI: u64 = 1_000_000;

/// A monitor that writes to a file.
struct Bench {
    harness: Harness,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(format: &str, limits: Limits, max_flows: usize) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        let args = Args::default()
            .with("export", Value::Text(path.to_str().unwrap().to_owned()))
            .with("format", Value::Word(format.to_owned()))
            .with("idle_timeout", Value::Duration(limits.idle))
            .with("active_timeout", Value::Duration(limits.active))
            .with("max_flows", Value::Integer(max_flows as i64));
        Bench { harness: Harness::of(&DESCRIPTOR, &args), folder }
    }

    fn see(&mut self, now: u64, bytes: &[u8]) {
        self.see_all(&[(now, bytes.to_vec())]);
    }

    fn see_all(&mut self, frames: &[(u64, Vec<u8>)]) {
        let left = self.harness.send(0, frames);
        let sent = frames.iter().enumerate().map(|(i, (_, bytes))| (i, 0, bytes.clone()));
        assert!(left.into_iter().eq(sent), "packets pass unchanged");
    }

    /// Run a script: ms since the start, `tcp 10.0.0.1:1000 > 192.0.2.1:80 S`, bytes after the headers.
    fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [ms, name, src, _, dst, rest @ ..] = &words[..] else { panic!("{line}") };
            let flags = rest.first().map_or("", |flags| flags);
            let bit = |letter: char, bit: u8| if flags.contains(letter) { bit } else { 0 };
            let flags = bit('S', SYN) | bit('A', ACK) | bit('F', FIN) | bit('R', RST);
            let proto = if *name == "tcp" { 6 } else { 17 };
            let payload = rest.get(1).map_or(0, |n| n.parse().unwrap());
            let now = START + ms.parse::<u64>().unwrap() * MILLI;
            self.harness.tick(now);
            self.see(now, &frame(proto, src.parse().unwrap(), dst.parse().unwrap(), flags, payload));
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.harness.finish();
        self.harness.end();
        std::fs::read(self.folder.path().join("flows")).unwrap()
    }

    fn lines(self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.end()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn gauge(&self, name: &str) -> u64 {
        self.harness.gauges()[name]
    }
}

const LIMITS: Limits = Limits { idle: 60 * SECOND, active: 1800 * SECOND };

/// Make a frame; checksums are nothing to the monitor.
fn frame(proto: u8, src: SocketAddr, dst: SocketAddr, flags: u8, payload: usize) -> Vec<u8> {
    let header = if proto == 6 { 20 } else { 8 };
    let mut upper = vec![0; header + payload];
    upper[..2].copy_from_slice(&src.port().to_be_bytes());
    upper[2..4].copy_from_slice(&dst.port().to_be_bytes());
    if proto == 6 {
        let mut segment = tcp::Packet::new_unchecked(&mut upper[..]);
        segment.set_header_len(20);
        segment.set_flags(flags);
    } else {
        let length = upper.len() as u16;
        upper[4..6].copy_from_slice(&length.to_be_bytes());
    }
    let mut frame = vec![0; 12];
    match (src, dst) {
        (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + upper.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
            frame.extend(src.ip().octets());
            frame.extend(dst.ip().octets());
        }
        (SocketAddr::V6(src), SocketAddr::V6(dst)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((upper.len() as u16).to_be_bytes());
            frame.extend([proto, 64]);
            frame.extend(src.ip().octets());
            frame.extend(dst.ip().octets());
        }
        _ => panic!("one family"),
    }
    frame.extend(upper);
    frame
}

const SESSIONS: &str = "
       0 tcp 7.0.0.1:1000 > 192.0.2.1:80 S
      15 tcp 192.0.2.1:80 > 7.0.0.1:1000 SA
      20 tcp 7.0.0.1:1000 > 192.0.2.1:80 A
      21 tcp 7.0.0.1:1000 > 192.0.2.1:80 A 100
      40 tcp 192.0.2.1:80 > 7.0.0.1:1000 A 1000
      50 udp [2001:db8::7]:5353 > [2001:db8::1]:53 - 30
      60 tcp 192.0.2.1:80 > 7.0.0.1:1000 FA
      61 tcp 7.0.0.1:1000 > 192.0.2.1:80 FA
      62 tcp 192.0.2.1:80 > 7.0.0.1:1000 A
      70 udp [2001:db8::1]:53 > [2001:db8::7]:5353 - 200
    3000 tcp 192.0.2.9:22 > 7.0.0.1:1001 SA
    3100 tcp 7.0.0.1:1001 > 192.0.2.9:22 R";

#[test]
fn records_in_json() {
    let mut bench = Bench::new("json", LIMITS, 100);
    bench.run(SESSIONS);
    let text = String::from_utf8(bench.end()).unwrap();
    let expected = "\
        {'ts':1700000000.000000,'id.orig_h':'7.0.0.1','id.orig_p':1000,'id.resp_h':'192.0.2.1','id.resp_p':80,'proto':'tcp',\
        'ip_proto':6,'duration':0.062000,'conn_state':'SF','orig_pkts':4,'orig_ip_bytes':260,'resp_pkts':4,\
        'resp_ip_bytes':1160,'orig_tcp_flags':'SFA','resp_tcp_flags':'SFA','tcp_rtt':0.020000,'end':'closed'}\n\
        {'ts':1700000003.000000,'id.orig_h':'7.0.0.1','id.orig_p':1001,'id.resp_h':'192.0.2.9','id.resp_p':22,'proto':'tcp',\
        'ip_proto':6,'duration':0.100000,'conn_state':'OTH','orig_pkts':1,'orig_ip_bytes':40,'resp_pkts':1,\
        'resp_ip_bytes':40,'orig_tcp_flags':'R','resp_tcp_flags':'SA','end':'forced'}\n\
        {'ts':1700000000.050000,'id.orig_h':'2001:db8::7','id.orig_p':5353,'id.resp_h':'2001:db8::1','id.resp_p':53,'proto':'udp',\
        'ip_proto':17,'duration':0.020000,'conn_state':'SF','orig_pkts':1,'orig_ip_bytes':78,'resp_pkts':1,\
        'resp_ip_bytes':248,'end':'forced'}\n";
    assert_eq!(text, expected.replace('\'', "\""));
}

#[test]
fn a_flow_ends_by_silence_by_age_and_by_a_new_beginning() {
    let limits = Limits { idle: 10 * SECOND, active: 25 * SECOND };
    let mut bench = Bench::new("json", limits, 100);
    bench.run(
        "0     udp 7.0.0.1:1 > 7.0.0.2:2
         11000 udp 7.0.0.1:1 > 7.0.0.2:2
         20000 udp 7.0.0.1:1 > 7.0.0.2:2
         29000 udp 7.0.0.1:1 > 7.0.0.2:2
         37000 udp 7.0.0.1:1 > 7.0.0.2:2
         50000 tcp 7.0.0.1:1 > 7.0.0.2:2 S
         50001 tcp 7.0.0.2:2 > 7.0.0.1:1 RA
         50002 tcp 7.0.0.1:1 > 7.0.0.2:2 S",
    );
    let lines = bench.lines();
    let told: Vec<_> = lines
        .iter()
        .map(|l| (l["end"].as_str().unwrap(), l["conn_state"].as_str().unwrap(), l["orig_pkts"].as_u64().unwrap()))
        .collect();
    // The third record: after the active one at 37 s nothing but that packet was left, and then silence.
    let expected =
        [("idle", "S0", 1), ("active", "S0", 3), ("idle", "S0", 1), ("closed", "REJ", 1), ("forced", "S0", 1)];
    assert_eq!(told, expected);
}

#[test]
fn what_became_old_just_before_the_end_says_so() {
    for (end, told) in [(25_000, "forced"), (25_001, "active")] {
        let mut bench = Bench::new("json", Limits { idle: 10 * SECOND, active: 25 * SECOND }, 100);
        for ms in ["0", "9000", "18000"] {
            bench.run(&format!("{ms} udp 7.0.0.1:1 > 7.0.0.2:2"));
        }
        bench.run(&format!("20000 udp 7.0.0.3:3 > 7.0.0.4:4\n{end} udp 7.0.0.3:3 > 7.0.0.4:4"));
        assert_eq!(bench.lines()[0]["end"], told, "a run of {end} ms");
    }
}

#[test]
fn who_makes_room_was_not_used_of_late() {
    let mut bench = Bench::new("json", LIMITS, 24);
    let udp = |port: u16| frame(17, SocketAddr::from(([7, 0, 0, 1], port)), "7.0.0.2:53".parse().unwrap(), 0, 0);
    // All 24 flows were used when another one comes: one makes room, and the other 23 have had their second chance.
    for port in 0..25 {
        bench.see(START, &udp(port));
    }
    // Two flows that are always in use stay until those 23 are gone.
    for port in 25..46 {
        bench.see(START, &udp(100));
        bench.see(START, &udp(101));
        bench.see(START, &udp(port));
    }
    assert_eq!((bench.gauge("flows"), bench.gauge("flows at the end"), bench.gauge("flows evicted")), (48, 24, 24));
    let lines = bench.lines();
    assert_eq!(lines.len(), 48);
    for port in [100, 101] {
        let used: Vec<_> = lines.iter().filter(|l| l["id.orig_p"] == port).collect();
        assert_eq!((used.len(), used[0]["orig_pkts"].as_u64()), (1, Some(21)));
    }
}

/// Let the flows of a monitor have had so many bytes.
fn set_bytes<E: Engine>(harness: &mut Harness, bytes: u32) {
    let monitor = harness.module::<Runner<E, Monitor<E>>>();
    monitor.command(START, |monitor, tx| monitor.each_v4(tx, |flow: &mut Flow| flow.bytes[flow.origin()] = bytes));
}

/// Flows come, end and are evicted: what is exported, and in which order, depends on the packets alone.
#[test]
fn records_come_in_one_order_whatever_flows_are_hashed_with() {
    let limits = Limits { idle: 2 * SECOND, active: 5 * SECOND };
    let records = |seed| {
        hashed_with(seed, || {
            let mut bench = Bench::new("json", limits, 24);
            let (mut random, mut now) = (Random::new(7), START);
            for _ in 0..2000 {
                now += random.below(40) as u64 * MILLI;
                let end = |net: u32, host: u32| format!("{net}.0.0.{host}:{}", 1 + host % 3).parse().unwrap();
                let flags = if random.below(9) == 0 { FIN | ACK } else { ACK };
                let (host, other) = (random.below(40), random.below(2));
                bench.harness.tick(now);
                bench.see(now, &frame(6, end(7, host), end(9, other), flags, 8));
            }
            assert!(bench.gauge("flows evicted") > 100, "there is little room");
            bench.end()
        })
    };
    let first = records(1);
    assert!(first.iter().filter(|byte| **byte == b'\n').count() > 500);
    (2..8).for_each(|seed| assert!(records(seed) == first, "seed {seed}"));
}

#[test]
fn a_counter_never_wraps() {
    let mut bench = Bench::new("json", LIMITS, 8);
    let big = frame(17, "7.0.0.1:1".parse().unwrap(), "7.0.0.2:2".parse().unwrap(), 0, 2000);
    bench.see(START, &big);
    // Nearly as many as a counter can take, so that not millions of packets must be sent.
    let had = u32::MAX - 100_000;
    match delays() {
        None => set_bytes::<Local>(&mut bench.harness, had),
        Some(_) => set_bytes::<Delayed>(&mut bench.harness, had),
    }
    bench.see_all(&vec![(START, big); 99]);
    let lines = bench.lines();
    let sum = |name: &str| lines.iter().map(|l| l[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((lines.len(), sum("orig_pkts"), sum("orig_ip_bytes")), (2, 100, u64::from(had) + 99 * 2028));
}

#[test]
fn what_is_not_ip_passes_and_ends_are_told() {
    let mut bench = Bench::new("json", LIMITS, 8);
    let mut arp = vec![0; 42];
    (arp[12], arp[13], arp[18], arp[19]) = (0x08, 0x06, 6, 4);
    bench.see(START, &arp);
    assert_eq!((bench.gauge("packets not IP"), bench.gauge("flows")), (1, 0));
    assert!(bench.lines().is_empty());
    let nowhere = Args::default().with("export", Value::Text("/nonexistent/flows".to_owned()));
    let error = Export::to(file(&nowhere, Share::WHOLE)).start(Time::Packets).unwrap_err();
    assert!(error.starts_with("export `/nonexistent/flows` cannot be written"), "{error}");
    if Path::new("/dev/full").exists() {
        let full = Args::default().with("export", Value::Text("/dev/full".to_owned()));
        bench = Bench::new("json", LIMITS, 8);
        bench.harness = Harness::of(&DESCRIPTOR, &full);
        bench.run(SESSIONS);
        let error = bench.harness.finish_error();
        assert!(error.starts_with("flow records could not be written to `/dev/full`"), "{error}");
    }
}

#[test]
fn it_is_built_from_arguments() {
    let mut attributes = catena_dataplane::attribute::Attributes::default();
    let mut context = Build {
        instance: "it",
        seed: Seed::from_number(0),
        share: Share { index: 1, count: 2 },
        team: None,
        attributes: &mut attributes,
        taken: &[],
        tables: &crate::Tables::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows");
    let args = Args::default().with("export", Value::Text(path.to_str().unwrap().to_owned()));
    let mut module: Box<dyn Module> = (DESCRIPTOR.build)(&args, &mut context).unwrap();
    let own = folder.path().join("flows.1");
    assert_eq!(module.outputs(), std::slice::from_ref(&own));
    assert!(!own.exists(), "making a monitor opens nothing");
    module.start(Time::Packets).unwrap();
    drop(module);
    assert!(own.exists() && !path.exists());
    let error = (DESCRIPTOR.build)(&args.with("max_flows", Value::Integer(0)), &mut context).err().unwrap();
    assert_eq!(error.param, "max_flows");
    assert!(DESCRIPTOR.manual().starts_with("Monitor: counts"));
}

/// Read IPFIX as RFC 7011 says, by its templates: data records as values by element, enterprise ones apart.
fn decode(mut file: &[u8]) -> Vec<HashMap<(u16, u32), Vec<u8>>> {
    let word = |bytes: &[u8]| usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    let long = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut templates: HashMap<usize, Vec<(u16, u32, usize)>> = HashMap::new();
    let mut records = Vec::new();
    while !file.is_empty() {
        assert_eq!(word(file), 10, "version");
        let (message, rest) = file.split_at(word(&file[2..]));
        file = rest;
        assert_eq!(long(&message[8..]) as usize, records.len(), "sequence number");
        let mut sets = &message[16..];
        while !sets.is_empty() {
            let id = word(sets);
            let (set, rest) = sets.split_at(word(&sets[2..]));
            sets = rest;
            let mut set = &set[4..];
            while !set.is_empty() {
                if id != 2 {
                    let mut record = HashMap::new();
                    for &(element, enterprise, length) in &templates[&id] {
                        record.insert((element, enterprise), set[..length].to_vec());
                        set = &set[length..];
                    }
                    records.push(record);
                    continue;
                }
                let (template, count) = (word(set), word(&set[2..]));
                set = &set[4..];
                let mut fields = Vec::new();
                for _ in 0..count {
                    let (element, length) = (word(set) as u16, word(&set[2..]));
                    set = &set[4..];
                    let mut enterprise = 0;
                    if element & 0x8000 != 0 {
                        enterprise = long(set);
                        set = &set[4..];
                    }
                    fields.push((element & 0x7fff, enterprise, length));
                }
                templates.insert(template, fields);
            }
        }
    }
    records
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

#[test]
fn records_in_ipfix() {
    let mut bench = Bench::new("ipfix", LIMITS, 100);
    bench.run(SESSIONS);
    let records = decode(&bench.end());
    assert_eq!(records.len(), 3);
    let tcp = records.iter().find(|r| number(&r[&(11, 0)]) == 80).unwrap();
    let get = |element, enterprise| number(&tcp[&(element, enterprise)]);
    assert_eq!((tcp[&(8, 0)].as_slice(), tcp[&(12, 0)].as_slice()), (&[7, 0, 0, 1][..], &[192, 0, 2, 1][..]));
    assert_eq!((get(7, 0), get(4, 0), get(136, 0)), (1000, 6, 3));
    assert_eq!((get(2, 0), get(1, 0), get(2, 29305), get(1, 29305)), (4, 260, 4, 1160));
    assert_eq!((get(6, 0), get(6, 29305)), (0x13, 0x13));
    assert_eq!((get(156, 0) >> 32) - 2_208_988_800, 1_700_000_000);
    assert_eq!((get(157, 0) - get(156, 0)).div_ceil(1 << 22), 64, "62 ms in units of 2^-10 s");
    let udp = records.iter().find(|r| number(&r[&(11, 0)]) == 53).unwrap();
    assert_eq!(udp[&(28, 0)][..], "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    assert_eq!((number(&udp[&(1, 0)]), number(&udp[&(1, 29305)])), (78, 248));
}

#[test]
fn tshark_reads_the_ipfix_file() {
    let mut bench = Bench::new("ipfix", LIMITS, 10_000);
    bench.run(SESSIONS);
    for port in 0..2500 {
        let src = SocketAddr::from(([7, 0, 0, 2], port));
        bench.see(START, &frame(17, src, "7.0.0.3:53".parse().unwrap(), 0, 1));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.ipfix");
    std::fs::write(&path, bench.end()).unwrap();
    let fields =
        ["cflow.srcaddr", "cflow.srcaddrv6", "cflow.packets", "cflow.octets", "cflow.srcport", "_ws.malformed"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=;"]).args(fields);
    let Ok(output) = tshark.output() else {
        return catena_testing::skip("tshark is not installed", "install tshark");
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    let all = |column: usize| -> Vec<&str> {
        lines.iter().flat_map(|line| line[column].split(',')).filter(|value| !value.is_empty()).collect()
    };
    assert_eq!((all(0).len(), all(1), all(4).len()), (2502, vec!["2001:db8::7"], 2503), "{text}");
    assert!(all(2).contains(&"4") && all(3).contains(&"260"));
    assert!(all(5).is_empty(), "{text}");
}

#[derive(Default)]
struct Reference {
    packets: [u64; 2],
    bytes: [u64; 2],
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever ends when: all records of a flow together are its packets.
    #[test]
    fn records_add_up_to_what_came_in(
        steps in prop::collection::vec((0u16..60, any::<bool>(), any::<bool>(), any::<bool>(), any::<u8>(), 0usize..100, 0u64..9000), 1..1500),
        max_flows in 1usize..80,
        at_once in 1usize..64,
        back_in_time: bool,
    ) {
        let limits = Limits { idle: 5 * SECOND, active: 20 * SECOND };
        let mut bench = Bench::new("json", limits, max_flows);
        let mut reference: HashMap<String, Reference> = HashMap::new();
        let (mut now, mut number) = (START, 0);
        for (i, steps) in steps.chunks(at_once).enumerate() {
            let mut frames = Vec::new();
            for &(port, v6, is_tcp, back, flags, payload, step) in steps {
                now += step * MILLI / 10;
                number += 1;
                let at = if back_in_time && number % 7 == 0 { now - 3 * SECOND } else { now };
                let (a, b) = if v6 { ("2001:db8::7", "2001:db8::1") } else { ("7.0.0.1", "192.0.2.1") };
                let a = SocketAddr::new(a.parse().unwrap(), 1000 + port);
                let b = SocketAddr::new(b.parse().unwrap(), 80);
                let (src, dst) = if back { (b, a) } else { (a, b) };
                let proto = if is_tcp { 6 } else { 17 };
                frames.push((at, frame(proto, src, dst, flags, payload)));
                let name = FlowKey::new(a, b, proto).unwrap();
                let sums = reference.entry(name.to_string()).or_default();
                let headers = if is_tcp { 20 } else { 8 } + if v6 { 40 } else { 20 };
                sums.packets[usize::from(back)] += 1;
                sums.bytes[usize::from(back)] += (payload + headers) as u64;
            }
            bench.see_all(&frames);
            if i % 2 == 0 {
                bench.harness.tick(now);
            }
            prop_assert!(bench.gauge("flows at the end") <= 2 * max_flows as u64);
        }
        bench.harness.finish();
        let totals = (bench.gauge("packets in ended flows"), bench.gauge("bytes in ended flows"), bench.gauge("records lost"));
        let sum = |ways: fn(&Reference) -> [u64; 2]| reference.values().flat_map(ways).sum::<u64>();
        prop_assert_eq!(totals, (sum(|r| r.packets), sum(|r| r.bytes), 0));
        for line in bench.lines() {
            let ip = |name: &str| line[name].as_str().unwrap().parse().unwrap();
            let port = |name: &str| line[name].as_u64().unwrap() as u16;
            let orig = SocketAddr::new(ip("id.orig_h"), port("id.orig_p"));
            let resp = SocketAddr::new(ip("id.resp_h"), port("id.resp_p"));
            let swap = orig.port() == 80;
            let (a, b) = if swap { (resp, orig) } else { (orig, resp) };
            let name = FlowKey::new(a, b, line["ip_proto"].as_u64().unwrap() as u8).unwrap().to_string();
            let sums = reference.get_mut(&name).unwrap();
            for (way, from) in [("orig", usize::from(swap)), ("resp", usize::from(!swap))] {
                sums.packets[from] -= line[format!("{way}_pkts")].as_u64().unwrap();
                sums.bytes[from] -= line[format!("{way}_ip_bytes")].as_u64().unwrap();
            }
        }
        prop_assert!(reference.values().all(|sums| sums.packets == [0; 2] && sums.bytes == [0; 2]));
    }
}

pub(super) const LATE: Late = Late {
    source: include_str!("tests.rs"),
    quick: tests![
        records_in_json,
        a_flow_ends_by_silence_by_age_and_by_a_new_beginning,
        what_became_old_just_before_the_end_says_so,
        who_makes_room_was_not_used_of_late,
        a_counter_never_wraps,
        records_in_ipfix,
    ],
    slow: tests![
        records_come_in_one_order_whatever_flows_are_hashed_with,
        what_is_not_ip_passes_and_ends_are_told,
        tshark_reads_the_ipfix_file,
        records_add_up_to_what_came_in,
    ],
    apart: &[
        // No packet is sent.
        "it_is_built_from_arguments",
    ],
};
