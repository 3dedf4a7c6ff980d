//! Filters judge the headers that functions judge: as libpcap does where a packet holds nothing else, and the same where
//! VLAN tags, extension headers or authentication headers stand in between.

mod fragments;
mod packet;

use catena_compile::library::signatures;
use catena_compile::lower;
use catena_dataplane::branch::bpf::{Insn, Program};
use catena_dataplane::branch::{Arm, Branch};
use catena_dataplane::{Context, Module};
use catena_packet::wire::{Seed, parse};
use catena_packet::{Batch, Depot};
use catena_policy::filter::{Condition, Expression};
use catena_policy::{Disk, Filter, Libpcap, load};
use packet::{Between, Frame, between, frames};
use proptest::prelude::*;

use crate::run;

fn filter(text: &str) -> Filter {
    Filter::new(text, &Libpcap).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A branch with one arm.
struct Judge {
    branch: Branch,
    cx: Context,
}

/// A branch through which only packets of the filter pass.
fn branch(filter: &Filter) -> Judge {
    let test = catena_compile::filter::test(&filter.expression).expect("libpcap's programs run");
    let branch = Branch::new(vec![Arm { when: vec![test], gate: 0 }], Seed::from_number(1));
    Judge { branch, cx: Context::new(&Depot::map(8, 0).expect("there is memory for a few packets"), 1) }
}

/// Whether the packet matches; `None` where it is malformed.
fn matches(judge: &mut Judge, frame: &[u8]) -> Option<bool> {
    parse(frame).ok()?;
    let mut packet = judge.cx.pool().take(frame.len()).expect("packets come back");
    packet.fill(frame);
    let mut batch = Batch::new();
    batch.push(packet);
    judge.branch.process(&mut judge.cx, &mut batch);
    let passes = !batch.is_empty();
    judge.cx.pool().put_batch(&mut batch);
    Some(passes)
}

fn libpcap(filter: &Filter, frame: &[u8]) -> bool {
    let insns: Vec<Insn> = filter.program.iter().map(|i| Insn { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    Program::new(&insns).expect("libpcap's programs run").matches(frame)
}

/// Conditions on addresses, ports and protocols, in the spellings of `man pcap-filter`.
fn condition() -> impl Strategy<Value = String> {
    let endpoint = prop::sample::select(vec!["", "src ", "dst ", "src or dst ", "src and dst ", "dst or src "]);
    let v4 = prop::sample::select(vec!["10.0.0.1", "10.0.0.2", "192.0.2.9", "(10.0.0.1 or 10.0.0.2)"]);
    let v6 = prop::sample::select(vec!["2001:db8::1", "2001:db8::2", "::ffff:10.0.0.1"]);
    let net =
        prop::sample::select(vec!["10.0.0.0/8", "10", "10.1", "10.0.0.0/31", "0.0.0.0/0", "10.0.0 mask 255.255.255.0"]);
    let net6 = prop::sample::select(vec!["2001:db8::/32", "::/0", "::ffff:0:0/96"]);
    let port = prop::sample::select(vec!["25", "53", "domain", "smtp", "syslog", "http", "(25 or 53)"]);
    let range = prop::sample::select(vec!["25-80", "80-25", "0-65535", "514-514"]);
    let protocol = prop::sample::select(vec![
        "ip",
        "ip6",
        "arp",
        "rarp",
        "tcp",
        "udp",
        "sctp",
        "icmp",
        "icmp6",
        "igmp",
        "esp",
        "ah",
        "pim",
        "ip proto 47",
        "ip6 proto 17",
        "proto 6",
        "ip proto \\tcp",
        "proto \\udp",
        "ip proto 51",
        "ip proto 0",
        "vrrp",
    ]);
    let others = prop::sample::select(vec![
        "tcp[13] & 2 != 0",
        "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
        "ip[8] = 64",
        "(ip[0] & 0xf) > 5",
        "udp[4:2] = 8",
        "ip6[7] > 1",
        "greater 60",
        "len <= 60",
        "ether host 02:00:00:00:00:01",
        "ether proto 0x806",
        "icmp[0] == 8",
        "ip multicast",
        "ether multicast",
        "gateway 127.0.0.1 or tcp",
    ]);
    let over = prop::sample::select(vec!["", "tcp ", "udp ", "sctp "]);
    let ip = prop::sample::select(vec!["", "ip "]);
    prop_oneof![
        (ip.clone(), endpoint.clone(), v4)
            .prop_map(|(ip, endpoint, address)| { format!("{ip}{endpoint}host {address}") }),
        (prop::sample::select(vec!["", "ip6 "]), endpoint.clone(), v6)
            .prop_map(|(ip, endpoint, address)| format!("{ip}{endpoint}host {address}")),
        (ip, endpoint.clone(), net).prop_map(|(ip, endpoint, net)| format!("{ip}{endpoint}net {net}")),
        (endpoint.clone(), net6).prop_map(|(endpoint, net)| format!("{endpoint}net {net}")),
        (over.clone(), endpoint.clone(), port)
            .prop_map(|(over, endpoint, port)| format!("{over}{endpoint}port {port}")),
        (over, endpoint.clone(), range)
            .prop_map(|(over, endpoint, range)| format!("{over}{endpoint}portrange {range}")),
        Just("src 10.0.0.1".to_owned()),
        Just("dst port 25 or domain or 80".to_owned()),
        Just("host 10.0.0.1 or 10.0.0.2 and not 192.0.2.9".to_owned()),
        protocol.prop_map(str::to_owned),
        others.prop_map(str::to_owned),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    condition().prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} and {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} || {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) or !({b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

/// Whether libpcap takes the text: not all that is drawn goes together.
fn valid(text: &str) -> Option<Filter> {
    Filter::new(text, &Libpcap).ok()
}

proptest! {
    /// On packets that hold nothing in between, a filter means what tcpdump makes of it.
    #[test]
    fn plain_packets_match_as_with_libpcap(text in expression(), frames in prop::collection::vec(frames(), 40)) {
        let Some(filter) = valid(&text) else { return Ok(()) };
        let mut branch = branch(&filter);
        for frame in frames {
            let bytes = frame.bytes(&[]);
            if let Some(found) = matches(&mut branch, &bytes) {
                prop_assert_eq!(found, libpcap(&filter, &bytes), "{} of {:?}: {:?}", text, frame, filter.expression);
            }
        }
    }

    /// Whatever stands in between, the verdict is that of the packet without it.
    #[test]
    fn headers_in_between_change_no_verdict(
        text in expression(),
        frames in prop::collection::vec((frames(), between()), 40),
    ) {
        // These ask for what is in between, or for the frame.
        const OF_BETWEEN: [&str; 8] = ["ah", "proto 51", "proto 0", "len", "greater", "ether", "ip6[", "gateway"];
        if OF_BETWEEN.iter().any(|word| text.contains(word)) {
            return Ok(());
        }
        let Some(filter) = valid(&text) else { return Ok(()) };
        let mut branch = branch(&filter);
        for (frame, between) in frames {
            let plain = matches(&mut branch, &frame.bytes(&[]));
            let found = matches(&mut branch, &frame.bytes(&between));
            prop_assert_eq!(found, plain, "{} of {:?} behind {:?}: {:?}", text, frame, between, filter.expression);
        }
    }
}

/// The spellings that operators use are read; if one were left to libpcap, a header in between would pass it.
#[test]
fn what_is_about_addresses_and_ports_is_read() {
    fn programs(expression: &Expression) -> usize {
        match expression {
            Expression::All(parts) | Expression::Any(parts) => parts.iter().map(programs).sum(),
            Expression::Not(inner) => programs(inner),
            Expression::Is(Condition::Program { .. }) => 1,
            Expression::Is(_) => 0,
        }
    }
    for text in [
        "tcp port 25",
        "tcp dst port 25 or 465 or smtp",
        "udp portrange 16384-32767",
        "ip src net 10.0.0.0/8 and not (tcp port 25 or udp port domain)",
        "ip6 host 2001:db8::1 && icmp6",
        "src or dst port http",
        "net 2001:db8::/32 and tcp",
        "ip proto 47 or ip6 proto \\udp",
        "vlan 7 and udp src port 53",
        "ip host (10.0.0.1 or 10.0.0.2)",
        "host 10.0.0.1",
        "!tcp",
        "",
    ] {
        assert_eq!(programs(&filter(text).expression), 0, "{text}: {:?}", filter(text).expression);
    }
    // What is about bytes is left to it.
    assert_eq!(programs(&filter("tcp[13] & 2 != 0 and port 80").expression), 1);
    assert_eq!(programs(&filter("mpls and tcp port 80").expression), 1);
}

/// Tags are counted as libpcap counts them, and what stands behind `vlan` is found behind any number of tags.
#[test]
fn tags_are_counted() {
    let frame = Frame { is_v6: false, src: 0, dst: 1, proto: 6, ports: [1000, 25], flags: 2, options: false, other: 0 };
    let tagged = |ids: &[u16]| frame.bytes(&ids.iter().map(|id| Between::Tag(*id)).collect::<Vec<_>>());
    let cases: [(&str, &[u16], bool); 16] = [
        ("vlan", &[], false),
        ("vlan", &[7], true),
        ("vlan 7", &[7], true),
        ("vlan 7", &[8, 7], false),
        ("vlan 8 and vlan 7", &[8, 7], true),
        ("vlan 7 and vlan 8", &[8, 7], false),
        ("vlan 8 and tcp port 25", &[8, 7], true),
        ("not vlan and tcp port 25", &[], true),
        ("not vlan and tcp port 25", &[7], false),
        ("vlan 0x7", &[7], true),
        ("vlan 010", &[8], true),
        ("vlan 7 and ether proto 0x800", &[7], true),
        ("vlan 7 and ether proto 0x806", &[7], false),
        ("ether proto 0x8100", &[7], true),
        (
            "(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((vlan 7)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
            &[7],
            true,
        ),
        ("tcp port 031", &[7], true),
    ];
    for (text, ids, expected) in cases {
        assert_eq!(matches(&mut branch(&filter(text)), &tagged(ids)), Some(expected), "{text} of {ids:?}");
    }
}

/// Who asks for a header in between, by number or by name, finds it right behind IP, as with tcpdump, and behind tags.
#[test]
fn headers_in_between_are_found() {
    let frame =
        |is_v6| Frame { is_v6, src: 0, dst: 1, proto: 6, ports: [1000, 25], flags: 2, options: false, other: 0 };
    let cases: [(&str, bool, Between); 7] = [
        ("ip proto 51", false, Between::Authentication),
        ("proto 51", true, Between::Authentication),
        ("ip proto \\ah", false, Between::Authentication),
        ("ah", false, Between::Authentication),
        ("ip6 proto 0", true, Between::HopByHop),
        ("ip6 proto 60", true, Between::Destination),
        ("ip6 proto 44", true, Between::Atomic),
    ];
    for (text, is_v6, header) in cases {
        let filter = filter(text);
        assert!(libpcap(&filter, &frame(is_v6).bytes(&[header])), "{text}");
        for between in [&[header][..], &[Between::Tag(7), header]] {
            assert_eq!(
                matches(&mut branch(&filter), &frame(is_v6).bytes(between)),
                Some(true),
                "{text} of {between:?}"
            );
        }
        assert_eq!(matches(&mut branch(&filter), &frame(is_v6).bytes(&[])), Some(false), "{text}");
        let not = format!("not ({text})");
        assert_eq!(matches(&mut branch(&self::filter(&not)), &frame(is_v6).bytes(&[header])), Some(false), "{not}");
    }
    for text in ["ip6 protochain 6", "protochain \\tcp"] {
        let all = frame(true).bytes(&[Between::HopByHop, Between::Destination]);
        assert_eq!(matches(&mut branch(&filter(text)), &all), Some(true), "{text}");
    }
}

/// Comparisons of two numbers of the packet, as in the example of `man pcap-filter`.
#[test]
fn numbers_of_the_packet_are_compared() {
    let bytes = |flags| {
        let frame = Frame { is_v6: false, src: 0, dst: 1, proto: 6, ports: [80, 80], flags, options: false, other: 0 };
        frame.bytes(&[])
    };
    for text in [
        "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
        "ip[12:4] = ip[16:4]",
        "tcp[0:2] >= tcp[2:2]",
        "80 = tcp[2:2]",
    ] {
        let filter = filter(text);
        assert_eq!(matches(&mut branch(&filter), &bytes(2)), Some(libpcap(&filter, &bytes(2))), "{text}");
    }
}

/// A name in a filter is the number that the system gives it, of TCP and UDP alike.
#[test]
fn ports_have_names() {
    let reads = |text: &str| match filter(text).expression {
        Expression::Is(Condition::Port { from, to, .. }) => (from, to),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(reads("tcp dst port smtp"), (25, 25));
    assert_eq!(reads("udp port domain"), (53, 53));
    assert_eq!(reads("src or dst port http"), (80, 80));
}

/// Chains that drop mail and pass the rest.
const NO_MAIL: [&str; 3] = [
    "class mail = \"tcp port 25\"\nchain m for mail { in -> drop }\nchain rest { in -> out }",
    "chain c { in -> [ \"tcp port 25\": drop, else: ] -> out }",
    "chain c { in -> [ {'dst_port': 25, drop}, else: ] -> out }",
];

#[test]
fn nothing_in_between_passes_a_class_or_an_arm() {
    let to =
        |port, is_v6| Frame { is_v6, src: 0, dst: 1, proto: 6, ports: [80, port], flags: 2, options: false, other: 0 };
    let between: [&[Between]; 7] = [
        &[],
        &[Between::HopByHop],
        &[Between::Destination],
        &[Between::Atomic],
        &[Between::Authentication],
        &[Between::Tag(7)],
        &[Between::Tag(7), Between::HopByHop, Between::Atomic, Between::Authentication, Between::Destination],
    ];
    for text in NO_MAIL {
        let outcome = load("mail.catena", text, &signatures(), &Disk);
        let host =
            lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered");
        let packets: Vec<run::Packet> = [25, 80]
            .into_iter()
            .flat_map(|port| between.map(|between| [false, true].map(|is_v6| (0, 1, to(port, is_v6).bytes(between)))))
            .flatten()
            .collect();
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let left = run::run(&host, &packets, folder.path()).out;
        let left: Vec<u64> = left.iter().map(|(_, clock, _)| *clock).collect();
        // Those to port 80, which come behind.
        assert_eq!(left, (15..=28).collect::<Vec<u64>>(), "{text}");
    }
}
