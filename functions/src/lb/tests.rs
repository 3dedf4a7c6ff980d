//! Golden packets, and what must hold under any traffic.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use catena_dataplane::attribute::{Attributes, Slot};
use catena_dataplane::module::Verdict;
use catena_packet::wire::checksum::{self, pseudo_v4, pseudo_v6};
use catena_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};
use catena_packet::wire::{FlowKey, Seed, ipv4, ipv6, ports, tcp, udp};
use catena_packet::{Depot, Packet, Pool};
use catena_state::{Local, Share};
use proptest::prelude::*;

use super::balancer::{NO_BACKEND, NO_CONNECTION, NO_FIRST, TABLE_FULL};
use super::*;
use crate::config::Value;
use crate::function::{At, Function, Step};

const SECOND: u64 = 1_000_000_000;

/// A balancer, buffers, and a time.
struct Bench {
    balancer: Balancer<Local>,
    slot: Slot,
    pool: Pool,
    now: u64,
}

fn endpoint(text: &str) -> Value {
    text.parse().map(Value::Endpoint).or_else(|_| text.parse().map(Value::Address)).unwrap()
}

fn list(text: &str) -> Value {
    Value::List(text.split(' ').map(endpoint).collect())
}

fn args(vip: &str, backends: &str) -> Args {
    Args::default().with("vip", list(vip)).with("backends", list(backends))
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let mut engine = Local::new(Seed::from_number(3), Share::WHOLE);
        let slot = Attributes::default().slot("backend").unwrap();
        let balancer = Balancer::new(&mut engine, Settings::read(args).unwrap(), slot);
        Bench { balancer, slot, pool: Depot::map(1024, 0).unwrap().pool(), now: 1_000 * SECOND }
    }

    fn run(&mut self, gate: u16, packet: &mut Packet) -> Verdict {
        packet.reparse();
        packet.parse().unwrap();
        let at = At { tx: (), now: self.now, gate };
        let mut plan = self.balancer.prepare(at, packet);
        self.balancer.warm(&mut plan);
        loop {
            if let Step::Done(verdict) = self.balancer.finish(at, packet, &mut plan) {
                return verdict;
            }
        }
    }

    fn packet(&mut self, bytes: &[u8]) -> Packet {
        let mut packet = self.pool.take(bytes.len()).unwrap();
        packet.fill(bytes);
        packet
    }

    /// Send a packet in words by a gate and return what comes of it in words.
    fn say(&mut self, gate: u16, words: &str) -> String {
        let bytes = frame_of(words);
        let mut packet = self.packet(&bytes);
        let before = packet.data()[..12].to_vec();
        match self.run(gate, &mut packet) {
            Verdict::Drop(reason) => format!("dropped: {}", reason.text(balancer::REASONS)),
            Verdict::Gate(out) => {
                assert_eq!(out, gate);
                assert_eq!(packet.data()[..12], before, "MAC addresses stay");
                check_sums(packet.data());
                let number = self.slot.get(&packet);
                format!("{}{}", words_of(packet.data()), if number > 0 { format!(" #{number}") } else { String::new() })
            }
        }
    }

    fn loads(&self) -> Vec<i64> {
        self.balancer.backends().map(|b| b.connections).collect()
    }

    fn wait(&mut self, seconds: u64) {
        self.now += seconds * SECOND;
        for _ in 0..20 {
            self.balancer.tidy(self.now, true);
        }
    }
}

/// Make the frame that words such as `tcp 10.0.0.1:1000 > 192.0.2.1:80 S` say.
fn frame_of(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let [name, src, _, dst, rest @ ..] = &words[..] else { panic!("{words:?}") };
    let (src, dst): (SocketAddr, SocketAddr) = (src.parse().unwrap(), dst.parse().unwrap());
    let flags = rest.first().map_or("", |f| f);
    let bit = |letter: char, bit: u8| if flags.contains(letter) { bit } else { 0 };
    let flags = bit('S', SYN) | bit('A', ACK) | bit('F', FIN) | bit('R', RST);
    frame(if *name == "tcp" { 6 } else { 17 }, src, dst, flags)
}

fn frame(proto: u8, src: SocketAddr, dst: SocketAddr, flags: u8) -> Vec<u8> {
    let mut upper = vec![0; if proto == 6 { 24 } else { 12 }];
    let length = upper.len() as u16;
    upper[length as usize - 4..].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    let pseudo = match (src.ip(), dst.ip()) {
        (IpAddr::V4(s), IpAddr::V4(d)) => pseudo_v4(s.to_bits(), d.to_bits(), proto, length),
        (IpAddr::V6(s), IpAddr::V6(d)) => pseudo_v6(s.octets(), d.octets(), proto, length.into()),
        _ => panic!("one family"),
    };
    upper[..2].copy_from_slice(&src.port().to_be_bytes());
    upper[2..4].copy_from_slice(&dst.port().to_be_bytes());
    if proto == 6 {
        (upper[12], upper[13]) = (5 << 4, flags);
        tcp::Packet::new_unchecked(&mut upper[..]).fill_checksum(pseudo);
    } else {
        udp::Packet::new_unchecked(&mut upper[..]).set_length(length);
        udp::Packet::new_unchecked(&mut upper[..]).fill_checksum(pseudo);
    }
    network(proto, src.ip(), dst.ip(), &upper, |_| {})
}

fn network(
    proto: u8,
    src: IpAddr,
    dst: IpAddr,
    upper: &[u8],
    change: impl Fn(&mut ipv4::Packet<&mut [u8]>),
) -> Vec<u8> {
    let mut ethernet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = [0; 20];
            header[0] = 0x45;
            let mut ip = ipv4::Packet::new_unchecked(&mut header[..]);
            ip.set_total_len(20 + upper.len() as u16);
            ip.set_ttl(64);
            ip.set_proto(proto);
            ip.set_src(src);
            ip.set_dst(dst);
            change(&mut ip);
            ip.fill_checksum();
            ethernet.extend(header);
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            ethernet[12..].copy_from_slice(&[0x86, 0xdd]);
            let mut header = [0; 40];
            let mut ip = ipv6::Packet::new_unchecked(&mut header[..]);
            ip.set_class_and_label(0, 7);
            ip.set_payload_len(upper.len() as u16);
            ip.set_next_header(proto);
            ip.set_hop_limit(64);
            ip.set_src(src);
            ip.set_dst(dst);
            ethernet.extend(header);
        }
        _ => panic!("one family"),
    }
    ethernet.extend(upper);
    ethernet
}

fn words_of(frame: &[u8]) -> String {
    let layers = catena_packet::wire::parse(frame).unwrap();
    let key = FlowKey::read(frame, &layers).unwrap().to_string();
    let flags = if layers.proto == 6 { frame[usize::from(layers.l4) + 13] } else { 0 };
    let letters = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (ACK, 'A')].iter().filter(|(bit, _)| flags & bit != 0);
    let letters: String = letters.map(|(_, letter)| letter).collect();
    if letters.is_empty() { key } else { format!("{key} {letters}") }
}

/// Add all words up again, as a receiver would.
fn check_sums(frame: &[u8]) {
    let layers = catena_packet::wire::parse(frame).unwrap();
    let upper = &frame[usize::from(layers.l4)..];
    let pseudo = match FlowKey::read(frame, &layers).unwrap() {
        FlowKey::V4(key) => {
            assert!(checksum::verify_ipv4_checksum(&frame[14..34]));
            pseudo_v4(key.src, key.dst, key.proto, upper.len() as u16)
        }
        FlowKey::V6(_) => {
            let ip = ipv6::Packet::new_checked(&frame[14..]).unwrap();
            pseudo_v6(ip.src().octets(), ip.dst().octets(), layers.proto, upper.len() as u32)
        }
    };
    if layers.proto == 1 {
        assert_eq!(checksum::sum(upper), 0xffff);
    } else {
        assert_eq!(checksum::add(pseudo, checksum::sum(upper)), 0xffff, "{frame:02x?}");
    }
}

/// Run a script: a gate, a packet, `=>`, what comes of it.
fn golden(bench: &mut Bench, script: &str) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (gate, rest) = line.split_once(": ").unwrap();
        let (packet, expected) = rest.split_once(" => ").unwrap();
        let gate = if gate == "out" { 0 } else { 1 };
        assert_eq!(bench.say(gate, packet.trim()), expected.trim(), "{line}");
    }
}

#[test]
fn connections_go_to_the_server_with_the_fewest() {
    let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1:8080 10.0.0.2:8080"));
    golden(
        &mut bench,
        "out: tcp 7.0.0.1:1000 > 192.0.2.10:80 S    => tcp 7.0.0.1:1000 > 10.0.0.1:8080 S #1
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 S    => tcp 7.0.0.1:1001 > 10.0.0.2:8080 S #2
         back: tcp 10.0.0.1:8080 > 7.0.0.1:1000 SA  => tcp 192.0.2.10:80 > 7.0.0.1:1000 SA #1
         back: tcp 10.0.0.2:8080 > 7.0.0.1:1001 SA  => tcp 192.0.2.10:80 > 7.0.0.1:1001 SA #2
         out: tcp 7.0.0.1:1000 > 192.0.2.10:80 A    => tcp 7.0.0.1:1000 > 10.0.0.1:8080 A #1
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 FA   => tcp 7.0.0.1:1001 > 10.0.0.2:8080 FA #2
         back: tcp 10.0.0.2:8080 > 7.0.0.1:1001 FA  => tcp 192.0.2.10:80 > 7.0.0.1:1001 FA #2
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 A    => tcp 7.0.0.1:1001 > 10.0.0.2:8080 A #2
         out: tcp 7.0.0.1:1002 > 192.0.2.10:80 S    => tcp 7.0.0.1:1002 > 10.0.0.2:8080 S #2
         out: udp 7.0.0.1:1000 > 192.0.2.10:80      => udp 7.0.0.1:1000 > 10.0.0.1:8080 #1
         out: tcp 7.0.0.1:1000 > 192.0.2.10:443 S   => tcp 7.0.0.1:1000 > 192.0.2.10:443 S
         out: tcp 7.0.0.1:1000 > 9.9.9.9:80 S       => tcp 7.0.0.1:1000 > 9.9.9.9:80 S
         back: tcp 10.0.0.1:22 > 7.0.0.1:1000 SA    => tcp 10.0.0.1:22 > 7.0.0.1:1000 SA
         out: tcp 7.0.0.1:1009 > 192.0.2.10:80 R    => dropped: segment of no connection",
    );
    assert_eq!(bench.loads(), [2, 1]);
    assert!(bench.balancer.backends().all(|b| b.bytes > 100));
}

#[test]
fn both_ip_versions_behind_addresses_without_a_port() {
    let mut bench = Bench::new(&args("192.0.2.10 2001:db8::10", "10.0.0.1 fd00::1 [fd00::2]:53"));
    golden(
        &mut bench,
        "out: udp 7.0.0.1:1000 > 192.0.2.10:53              => udp 7.0.0.1:1000 > 10.0.0.1:53 #1
         out: udp [2001:db8::7]:5 > [2001:db8::10]:99       => udp [2001:db8::7]:5 > [fd00::1]:99 #2
         out: tcp [2001:db8::7]:6 > [2001:db8::10]:99 S     => tcp [2001:db8::7]:6 > [fd00::2]:53 S #3
         back: udp [fd00::1]:99 > [2001:db8::7]:5           => udp [2001:db8::10]:99 > [2001:db8::7]:5 #2
         back: tcp [fd00::2]:53 > [2001:db8::7]:6 SA        => tcp [2001:db8::10]:99 > [2001:db8::7]:6 SA #3
         back: tcp [fd00::2]:53 > [2001:db8::7]:7 SA        => tcp [fd00::2]:53 > [2001:db8::7]:7 SA",
    );
}

#[test]
fn a_server_that_is_down_gets_no_new_connections() {
    let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1 10.0.0.2"));
    golden(&mut bench, "out: tcp 7.0.0.1:1 > 192.0.2.10:80 S => tcp 7.0.0.1:1 > 10.0.0.1:80 S #1");
    let number = bench.balancer.backend("10.0.0.1".parse().unwrap(), None);
    assert_eq!(number, Some(1));
    assert!(bench.balancer.set_backend(1, false) && !bench.balancer.set_backend(3, false));
    golden(
        &mut bench,
        "out: tcp 7.0.0.1:2 > 192.0.2.10:80 S => tcp 7.0.0.1:2 > 10.0.0.2:80 S #2
         out: tcp 7.0.0.1:3 > 192.0.2.10:80 S => tcp 7.0.0.1:3 > 10.0.0.2:80 S #2
         out: tcp 7.0.0.1:1 > 192.0.2.10:80 A => tcp 7.0.0.1:1 > 10.0.0.1:80 A #1",
    );
    bench.balancer.set_backend(2, false);
    golden(&mut bench, "out: tcp 7.0.0.1:4 > 192.0.2.10:80 S => dropped: no backend up");
    assert_eq!(bench.loads(), [1, 2]);
}

#[test]
fn without_draining_connections_move() {
    for method in ["least_connections", "consistent_hash"] {
        let args = args("192.0.2.10:80", "10.0.0.1 10.0.0.2").with("drain", Value::Bool(false));
        let mut bench = Bench::new(&args.with("method", Value::Word(method.to_owned())));
        bench.balancer.set_backend(2, false);
        golden(
            &mut bench,
            "out: tcp 7.0.0.1:1 > 192.0.2.10:80 S  => tcp 7.0.0.1:1 > 10.0.0.1:80 S #1
             out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.1:80 A #1",
        );
        bench.balancer.set_backend(2, true);
        bench.balancer.set_backend(1, false);
        golden(
            &mut bench,
            "out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.2:80 A #2
             back: tcp 10.0.0.2:80 > 7.0.0.1:1 A   => tcp 192.0.2.10:80 > 7.0.0.1:1 A #2
             out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.2:80 A #2",
        );
        assert_eq!(bench.loads(), [0, 1]);
        bench.balancer.set_backend(2, false);
        golden(&mut bench, "out: tcp 7.0.0.1:1 > 192.0.2.10:80 A => dropped: no backend up");
        assert_eq!(bench.loads(), [0, 0]);
    }
}

#[test]
fn the_table_has_an_end() {
    let args = args("192.0.2.10:80", "10.0.0.1").with("max_connections", Value::Integer(2));
    let mut bench = Bench::new(&args);
    let script = "out: udp 7.0.0.1:1 > 192.0.2.10:80 => udp 7.0.0.1:1 > 10.0.0.1:80 #1
                  out: udp 7.0.0.1:2 > 192.0.2.10:80 => udp 7.0.0.1:2 > 10.0.0.1:80 #1
                  out: udp 7.0.0.1:3 > 192.0.2.10:80 => dropped: connection table full
                  out: udp 7.0.0.1:1 > 192.0.2.10:80 => udp 7.0.0.1:1 > 10.0.0.1:80 #1";
    golden(&mut bench, script);
    bench.wait(376);
    assert_eq!(bench.loads(), [0], "forgotten after the time-out and a quarter");
    golden(&mut bench, script);
}

#[test]
fn one_way_keeps_the_other_alive() {
    let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1"));
    bench.say(0, "udp 7.0.0.1:1 > 192.0.2.10:80");
    for _ in 0..30 {
        bench.wait(80);
        assert_eq!(bench.say(1, "udp 10.0.0.1:80 > 7.0.0.1:1"), "udp 192.0.2.10:80 > 7.0.0.1:1 #1");
    }
    assert_eq!(bench.loads(), [1]);
    for _ in 0..30 {
        bench.wait(80);
        bench.say(0, "udp 7.0.0.1:1 > 192.0.2.10:80");
    }
    assert_eq!(bench.say(1, "udp 10.0.0.1:80 > 7.0.0.1:1"), "udp 192.0.2.10:80 > 7.0.0.1:1 #1");
    bench.wait(376);
    assert_eq!(bench.loads(), [0]);
}

#[test]
fn an_end_counts_once_and_a_new_beginning_counts_again() {
    let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1"));
    for (flags, back) in [("S", 0), ("SA", 1), ("A", 0), ("FA", 1), ("FA", 0), ("A", 1), ("FA", 0), ("R", 0), ("R", 1)]
    {
        let words = ["tcp 7.0.0.1:1 > 192.0.2.10:80", "tcp 10.0.0.1:80 > 7.0.0.1:1"][back];
        bench.say(back as u16, &format!("{words} {flags}"));
    }
    assert_eq!(bench.loads(), [0]);
    bench.say(0, "tcp 7.0.0.1:1 > 192.0.2.10:80 S");
    assert_eq!(bench.loads(), [1]);
    bench.say(1, "tcp 10.0.0.1:80 > 7.0.0.1:1 R");
    assert_eq!(bench.loads(), [0]);
    bench.wait(500);
    assert_eq!(bench.loads(), [0]);
    let mut gauges = HashMap::new();
    Function::<Local>::gauges(&bench.balancer, &mut |name, value| _ = gauges.insert(name, value));
    assert_eq!((gauges["connections"], gauges["opened"], gauges["backends up"]), (0, 2, 1));
}

#[test]
fn later_fragments_follow_the_first() {
    let mut bench = Bench::new(&args("192.0.2.10:53", "10.0.0.1:5353 10.0.0.2:5353"));
    let (client, vip): (SocketAddr, SocketAddr) = ("7.0.0.1:9".parse().unwrap(), "192.0.2.10:53".parse().unwrap());
    let mut fragment = |id: u16, offset: u16, gate: u16, src: SocketAddr, dst: SocketAddr| {
        let mut upper = [0; 24];
        upper[..2].copy_from_slice(&src.port().to_be_bytes());
        upper[2..4].copy_from_slice(&dst.port().to_be_bytes());
        upper[5] = 44;
        let frame = network(17, src.ip(), dst.ip(), &upper, |ip| {
            ip.set_ident(id);
            ip.set_fragment(false, offset == 0, offset);
        });
        let mut packet = bench.packet(&frame);
        match bench.run(gate, &mut packet) {
            Verdict::Drop(reason) => Err(reason),
            Verdict::Gate(_) => {
                assert!(checksum::verify_ipv4_checksum(&packet.data()[14..34]));
                let layers = packet.layers();
                let ip = ipv4::Packet::new_checked(&packet.data()[14..]).unwrap();
                Ok((ip.src().to_string(), ip.dst().to_string(), ports(packet.data(), &layers)))
            }
        }
    };
    let ok = |src: &str, dst: &str, ports| Ok((src.to_owned(), dst.to_owned(), ports));
    assert_eq!(fragment(1, 24, 0, client, vip), Err(NO_FIRST));
    assert_eq!(fragment(1, 0, 0, client, vip), ok("7.0.0.1", "10.0.0.1", Some((9, 5353))));
    assert_eq!(fragment(1, 24, 0, client, vip), ok("7.0.0.1", "10.0.0.1", None));
    assert_eq!(fragment(2, 0, 0, client, vip), ok("7.0.0.1", "10.0.0.1", Some((9, 5353))));
    assert_eq!(fragment(2, 24, 0, client, vip), ok("7.0.0.1", "10.0.0.1", None));
    let server = "10.0.0.1:5353".parse().unwrap();
    assert_eq!(fragment(7, 24, 1, server, client), ok("10.0.0.1", "7.0.0.1", None), "unknown: passes");
    assert_eq!(fragment(7, 0, 1, server, client), ok("192.0.2.10", "7.0.0.1", Some((53, 9))));
    assert_eq!(fragment(7, 24, 1, server, client), ok("192.0.2.10", "7.0.0.1", None));
    bench.wait(60);
    assert_eq!(bench.loads(), [1, 0]);
}

#[test]
fn pings_are_balanced_and_icmp_errors_pass() {
    let mut bench = Bench::new(&args("192.0.2.10", "10.0.0.1"));
    let mut icmp = |kind: u8, gate: u16, src: &str, dst: &str| {
        let mut upper = [kind, 0, 0, 0, 1, 2, 3, 4];
        let check = checksum::checksum(&upper);
        upper[2..4].copy_from_slice(&check.to_be_bytes());
        let mut packet = bench.packet(&network(1, src.parse().unwrap(), dst.parse().unwrap(), &upper, |_| {}));
        assert_eq!(bench.run(gate, &mut packet), Verdict::Gate(gate));
        check_sums(packet.data());
        words_of(packet.data())
    };
    assert_eq!(icmp(3, 0, "7.0.0.1", "192.0.2.10"), "icmp 7.0.0.1 > 192.0.2.10");
    assert_eq!(icmp(8, 0, "7.0.0.1", "192.0.2.10"), "icmp 7.0.0.1 > 10.0.0.1");
    assert_eq!(icmp(0, 1, "10.0.0.1", "7.0.0.1"), "icmp 192.0.2.10 > 7.0.0.1");
}

#[test]
fn bad_arguments_are_named() {
    let record = |weight| {
        let fields = vec![("server".to_owned(), endpoint("10.0.0.2:1")), ("weight".to_owned(), Value::Integer(weight))];
        Args::default().with("vip", endpoint("1.1.1.1")).with("backends", Value::Record(fields))
    };
    let prefix = Args::default().with("vip", Value::Prefix("10.1.2.3".parse().unwrap(), 8));
    let cases = [
        (Args::default(), "`vip`: is required"),
        (args("1.1.1.1", "fd00::1"), "`backends`: none is IPv4, as 1.1.1.1 is"),
        (args("1.1.1.1", "1.1.1.1"), "`backends`: 1.1.1.1 is also a `vip`"),
        (args("1.1.1.1", "1.1.1.2 1.1.1.2"), "`backends`: 1.1.1.2 stands there twice"),
        (prefix.with("backends", list("10.1.0.1")), "`backends`: 10.1.0.1 is also a `vip`"),
        (args("1.1.1.1 1.1.1.1:80", "1.1.1.2"), "`vip`: 1.1.1.1 stands there with and without a port"),
        (record(0), "`backends`: `weight` must be a whole number from 1 to 256"),
    ];
    for (args, expected) in cases {
        let error = Settings::read(&args).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(Settings::read(&record(256)).is_ok());
}

#[test]
fn a_prefix_is_many_addresses() {
    let vips = Value::List(vec![
        Value::Prefix("192.0.2.77".parse().unwrap(), 26),
        Value::Prefix("2001:db8::".parse().unwrap(), 64),
    ]);
    let mut bench = Bench::new(&args("1.1.1.1", "10.0.0.1 fd00::1").with("vip", vips));
    golden(
        &mut bench,
        "out: udp 7.0.0.1:1 > 192.0.2.64:5             => udp 7.0.0.1:1 > 10.0.0.1:5 #1
         out: udp 7.0.0.1:2 > 192.0.2.127:5            => udp 7.0.0.1:2 > 10.0.0.1:5 #1
         back: udp 10.0.0.1:5 > 7.0.0.1:1              => udp 192.0.2.64:5 > 7.0.0.1:1 #1
         back: udp 10.0.0.1:5 > 7.0.0.1:2              => udp 192.0.2.127:5 > 7.0.0.1:2 #1
         out: udp 7.0.0.1:1 > 192.0.2.63:5             => udp 7.0.0.1:1 > 192.0.2.63:5
         out: udp 7.0.0.1:1 > 192.0.2.128:5            => udp 7.0.0.1:1 > 192.0.2.128:5
         out: udp [2001::1]:1 > [2001:db8::ffff:1]:5   => udp [2001::1]:1 > [fd00::1]:5 #2
         out: udp [2001::1]:1 > [2001:db8:0:1::]:5     => udp [2001::1]:1 > [2001:db8:0:1::]:5",
    );
}

#[test]
fn weights_share_connections() {
    let server = |ip: &str, weight| {
        let fields = vec![("server".to_owned(), endpoint(ip)), ("weight".to_owned(), Value::Integer(weight))];
        Value::Record(fields)
    };
    let backends = Value::List(vec![server("10.0.0.1", 2), server("10.0.0.2", 6), endpoint("10.0.0.3")]);
    for method in ["least_connections", "consistent_hash"] {
        let args = Args::default().with("vip", endpoint("192.0.2.10")).with("backends", backends.clone());
        let mut bench = Bench::new(&args.with("method", Value::Word(method.to_owned())));
        for port in 1..=9000 {
            bench.say(0, &format!("udp 7.0.0.1:{port} > 192.0.2.10:80"));
        }
        for (load, expected) in bench.loads().iter().zip([2000i64, 6000, 1000]) {
            let off = if method == "least_connections" { 0 } else { 200 };
            assert!((load - expected).abs() <= off, "{method}: {:?}", bench.loads());
        }
    }
}

#[test]
fn removing_a_server_moves_few_new_connections() {
    let backends: Vec<String> = (1..=10).map(|n| format!("10.0.0.{n}")).collect();
    let args = args("192.0.2.10", &backends.join(" ")).with("method", Value::Word("consistent_hash".to_owned()));
    let servers = |down: Option<u16>| -> Vec<String> {
        let mut bench = Bench::new(&args);
        down.map(|number| bench.balancer.set_backend(number, false));
        (1..=5000).map(|port| bench.say(0, &format!("udp 7.0.0.1:{port} > 192.0.2.10:80"))).collect()
    };
    let before = servers(None);
    assert_eq!(before, servers(None), "another balancer chooses alike");
    let moved = servers(Some(4)).iter().zip(&before).filter(|(a, b)| a != b).count();
    assert!((400..=700).contains(&moved), "{moved} of 5,000 moved");
}

/// What the balancer should know, kept the plain way.
#[derive(Default)]
struct Model {
    /// By client port and whether IPv6 and TCP: server number, FIN seen on the way out, and back.
    live: HashMap<(u16, bool, bool), (u16, bool, bool)>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_must_hold_under_any_traffic(
        steps in prop::collection::vec((1u16..40, any::<bool>(), any::<bool>(), 0u8..12, 0u16..6), 1..400),
        hash: bool,
    ) {
        let method = if hash { "consistent_hash" } else { "least_connections" };
        let backends = "10.0.0.1:81 10.0.0.2 10.0.0.3:81 [fd00::1]:81 [fd00::2]:81 fd00::3";
        let args = args("192.0.2.10:80 [2001:db8::10]:80", backends);
        let mut bench = Bench::new(&args.with("method", Value::Word(method.to_owned())));
        let mut model = Model::default();
        let mut up = [true; 6];
        let (ips, plain) = (["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2", "fd00::3"], [2, 6]);
        for (port, v6, is_tcp, action, backend) in steps {
            let key = (port, v6, is_tcp);
            let (client, vip): (IpAddr, IpAddr) = if v6 {
                ("2001:db8::7".parse().unwrap(), "2001:db8::10".parse().unwrap())
            } else {
                ("7.0.0.1".parse().unwrap(), "192.0.2.10".parse().unwrap())
            };
            let (client, vip) = (SocketAddr::new(client, port), SocketAddr::new(vip, 80));
            let proto = if is_tcp { 6 } else { 17 };
            let address = |number: u16| {
                let port = if plain.contains(&number) { 80 } else { 81 };
                SocketAddr::new(ips[usize::from(number) - 1].parse().unwrap(), port)
            };
            let live = model.live.get(&key).copied();
            match action {
                // A packet out: data, or with FIN or RST.
                0..=6 => {
                    let flags = match action { 4 => FIN | ACK, 5 => RST, 6 => SYN, _ => ACK };
                    let flags = if is_tcp { flags } else { 0 };
                    let mut packet = bench.packet(&frame(proto, client, vip, flags));
                    let known = live.filter(|_| flags != 0 || !is_tcp);
                    let before = bench.loads();
                    let verdict = bench.run(0, &mut packet);
                    match (verdict, known) {
                        (Verdict::Gate(gate), known) => {
                            prop_assert_eq!(gate, 0);
                            check_sums(packet.data());
                            let number = bench.slot.get(&packet);
                            let layers = packet.layers();
                            let dst = FlowKey::read(packet.data(), &layers).unwrap().dst();
                            prop_assert_eq!(dst, address(number));
                            match known {
                                Some((server, ..)) => prop_assert_eq!(number, server, "affinity"),
                                None => {
                                    // A closed connection's last packets still go where it went, and open nothing.
                                    let opens = bench.loads().iter().sum::<i64>() > before.iter().sum::<i64>();
                                    if opens {
                                        prop_assert!(up[usize::from(number) - 1], "a new connection to a server that is down");
                                        if !hash {
                                            let family = if v6 { 3..6 } else { 0..3 };
                                            let least = family.filter(|&i| up[i]).map(|i| before[i]).min().unwrap();
                                            prop_assert_eq!(before[usize::from(number) - 1], least);
                                        }
                                        model.live.insert(key, (number, false, false));
                                    }
                                }
                            }
                        }
                        (Verdict::Drop(reason), known) => {
                            prop_assert!(known.is_none() && (reason == NO_BACKEND || reason == NO_CONNECTION));
                            let family = if v6 { 3..6 } else { 0..3 };
                            prop_assert!(reason != NO_BACKEND || up[family] == [false; 3], "no backend is up");
                            prop_assert!(reason != TABLE_FULL);
                        }
                    }
                    if let Some(state) = model.live.get_mut(&key) {
                        state.1 |= flags & FIN != 0;
                        if flags & RST != 0 || state.1 && state.2 { model.live.remove(&key); }
                    }
                }
                // A packet back from the server it has.
                7..=9 => {
                    let Some((server, ..)) = live else { continue };
                    let flags = match action { 8 => FIN | ACK, 9 => SYN | ACK, _ => ACK };
                    let flags = if is_tcp { flags } else { 0 };
                    let mut packet = bench.packet(&frame(proto, address(server), client, flags));
                    prop_assert_eq!(bench.run(1, &mut packet), Verdict::Gate(1));
                    check_sums(packet.data());
                    let layers = packet.layers();
                    let words = FlowKey::read(packet.data(), &layers).unwrap();
                    prop_assert_eq!((words.src(), words.dst()), (vip, client), "the way back restores the address");
                    let state = model.live.get_mut(&key).unwrap();
                    state.2 |= flags & FIN != 0;
                    if state.1 && state.2 { model.live.remove(&key); }
                }
                10 => {
                    let is_up = up[usize::from(backend)];
                    up[usize::from(backend)] = !is_up;
                    prop_assert!(bench.balancer.set_backend(backend + 1, !is_up));
                }
                _ if port < 4 => {
                    bench.wait(10_000);
                    model.live.clear();
                }
                _ => bench.wait(1),
            }
            let mut counts = vec![0i64; 6];
            model.live.values().for_each(|(server, ..)| counts[usize::from(*server) - 1] += 1);
            prop_assert_eq!(bench.loads(), counts, "loads are the live connections");
        }
    }

    /// Whatever arrives, by whatever gate: no panic.
    #[test]
    fn any_bytes_are_survived(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40), kinds: [u8; 40]) {
        let mut bench = Bench::new(&args("192.0.2.10 2001:db8::10", "10.0.0.1 fd00::1"));
        for (mut bytes, kind) in frames.into_iter().zip(kinds) {
            let good = frame(if kind & 1 == 0 { 6 } else { 17 },
                if kind & 2 == 0 { "7.0.0.1:1" } else { "[2001:db8::7]:1" }.parse().unwrap(),
                if kind & 2 == 0 { "192.0.2.10:80" } else { "[2001:db8::10]:80" }.parse().unwrap(), kind);
            let keep = bytes.len().min(good.len());
            for (i, byte) in bytes.iter_mut().take(keep).enumerate() {
                if *byte > 16 || i < 14 { *byte = good[i]; }
            }
            bytes.extend(&good[keep..]);
            let mut packet = bench.packet(&bytes);
            if packet.parse().is_ok() {
                bench.run(u16::from(kind >> 7), &mut packet);
            }
        }
    }
}
