//! Route lines as people and `ip route` write them, and what is said of those that are wrong.

use proptest::prelude::*;

use super::*;

fn forward(via: Option<&str>, dev: Option<&str>, gate: Option<u16>) -> Hop {
    Hop::Forward { via: via.map(|via| via.parse().unwrap()), dev: dev.map(Into::into), gate, mac: None }
}

/// Prefix and next hop of every route, IPv4 first.
fn read(text: &str) -> Vec<(String, Hop)> {
    let routes = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let hop = |hop: NextHop| routes.hops[usize::from(hop.id().unwrap())].clone();
    let ipv4 = routes.ipv4.iter().map(|&(prefix, to)| (prefix.to_string(), hop(to)));
    let ipv6 = routes.ipv6.iter().map(|&(prefix, to)| (prefix.to_string(), hop(to)));
    ipv4.chain(ipv6).collect()
}

fn says(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_short_form() {
    let text = "# routes\n\n10.0.0.0/8 1 # by gate\n10.0.0.0/9 via 192.0.2.1\n\t 10.0.0.7  via 192.0.2.1 gate 1#\r\n\
                2001:db8::/32 65535\n::1 gate 2\n0.0.0.0/0 via 192.0.2.1";
    assert_eq!(
        read(text),
        [
            ("0.0.0.0/0".into(), forward(Some("192.0.2.1"), None, None)),
            ("10.0.0.0/8".into(), forward(None, None, Some(1))),
            ("10.0.0.0/9".into(), forward(Some("192.0.2.1"), None, None)),
            ("10.0.0.7/32".into(), forward(Some("192.0.2.1"), None, Some(1))),
            ("::1/128".into(), forward(None, None, Some(2))),
            ("2001:db8::/32".into(), forward(None, None, Some(65535))),
        ]
    );
    assert_eq!(parse(text).unwrap().hops.len(), 5);
}

#[test]
fn a_next_router_with_or_without_via_and_with_its_station() {
    let mac = Some(Mac([2, 0, 0, 0, 0, 0xaf]));
    let by = |via: &str| Hop::Forward { via: via.parse().ok(), dev: None, gate: None, mac };
    let text = "10.1.0.0/24 10.1.0.254 mac 02:00:00:00:00:AF\n10.2.0.0/16 fe80::1 mac 02:00:00:00:00:af\n\
                10.3.0.1 mac 02:00:00:00:00:af\n0.0.0.0/0 192.0.2.1\n::/0 2001:db8::1";
    assert_eq!(
        read(text),
        [
            ("0.0.0.0/0".into(), forward(Some("192.0.2.1"), None, None)),
            ("10.1.0.0/24".into(), by("10.1.0.254")),
            ("10.2.0.0/16".into(), by("fe80::1")),
            ("10.3.0.1/32".into(), by("")),
            ("::/0".into(), forward(Some("2001:db8::1"), None, None)),
        ]
    );
    assert_eq!(parse(text).unwrap().hop_lines, [1, 2, 3, 4, 5]);
    assert_eq!(parse("default 1\n\n::1 2").unwrap().hop_lines, [1, 3]);
}

#[test]
fn what_ip_route_prints() {
    let text = "default via 10.1.1.1 dev eth0 proto dhcp src 10.1.1.5 metric 100 \n\
                10.1.1.0/24 dev eth0 proto kernel scope link src 10.1.1.5 metric 100 linkdown\n\
                10.9.0.0/16 via inet6 fe80::9 dev eth1 onlink\n\
                unicast 10.8.0.0/16 nhid 3 via 10.1.1.8 dev eth0 table 5 \n\
                blackhole 192.168.0.0/16 \n\
                default via fe80::1 dev eth0 proto ra metric 1024 expires 1790sec hoplimit 64 pref medium\n\
                fe80::/64 dev eth0 proto kernel metric 256 pref medium\n\
                fe80::/64 dev eth1 proto kernel metric 256 pref medium\n\
                unreachable 2001:db8::/32 dev lo metric 1024 error -113 pref medium\n";
    assert_eq!(
        read(text),
        [
            ("0.0.0.0/0".into(), forward(Some("10.1.1.1"), Some("eth0"), None)),
            ("10.1.1.0/24".into(), forward(None, Some("eth0"), None)),
            ("10.8.0.0/16".into(), forward(Some("10.1.1.8"), Some("eth0"), None)),
            ("10.9.0.0/16".into(), forward(Some("fe80::9"), Some("eth1"), None)),
            ("192.168.0.0/16".into(), Hop::Discard),
            ("::/0".into(), forward(Some("fe80::1"), Some("eth0"), None)),
            ("2001:db8::/32".into(), Hop::Discard),
            ("fe80::/64".into(), forward(None, Some("eth0"), None)),
        ]
    );
}

#[test]
fn default_without_an_address_is_both() {
    let both = [("0.0.0.0/0".into(), forward(None, None, Some(3))), ("::/0".into(), forward(None, None, Some(3)))];
    assert_eq!(read("default 3"), both);
    assert_eq!(read("default via inet6 fe80::1"), [("0.0.0.0/0".into(), forward(Some("fe80::1"), None, None))]);
}

#[test]
fn the_lowest_metric_counts() {
    let text = "10.0.0.0/8 via 1.1.1.1 metric 20\n10.0.0.0/8 via 2.2.2.2 metric 10\n10.0.0.0/8 via 3.3.3.3 metric 30";
    assert_eq!(read(text), [("10.0.0.0/8".into(), forward(Some("2.2.2.2"), None, None))]);
    assert_eq!(read("10.0.0.0/8 1\n10.0.0.0/8 1").len(), 1);
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        (
            "10.0.0/8 1",
            "line 1, column 1: expected a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`, found `10.0.0/8`",
        ),
        (
            "10.0.0.0/33 1",
            "line 1, column 1: expected a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`, found `10.0.0.0/33`",
        ),
        (
            "10.0.0.0/+8 1",
            "line 1, column 1: expected a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`, found `10.0.0.0/+8`",
        ),
        ("\n  10.1.2.3/8 1", "line 2, column 3: bits are set behind the prefix length; perhaps 10.0.0.0/8?"),
        ("2001:db8::1/32 1", "line 1, column 1: bits are set behind the prefix length; perhaps 2001:db8::/32?"),
        (
            "10.0.0.0/8",
            "line 1, column 11: expected the number of a gate, `via ADDRESS`, `gate NUMBER`, `dev NAME` or `mac ADDRESS`",
        ),
        (
            "10.0.0.0/8 # 1",
            "line 1, column 11: expected the number of a gate, `via ADDRESS`, `gate NUMBER`, `dev NAME` or `mac ADDRESS`",
        ),
        (
            "10.0.0.0/8 eth0",
            "line 1, column 12: expected the number of a gate, `via ADDRESS`, `gate NUMBER`, `dev NAME` or `mac ADDRESS`, found `eth0`",
        ),
        (
            "10.0.0.0/8 70000",
            "line 1, column 12: expected the number of a gate, `via ADDRESS`, `gate NUMBER`, `dev NAME` or `mac ADDRESS`, found `70000`",
        ),
        ("10.0.0.0/8 via", "line 1, column 15: expected an address"),
        ("10.0.0.0/8 via 1.2.3", "line 1, column 16: expected an address, found `1.2.3`"),
        ("::/8 via inet 1.2.3.4", "line 1, column 15: expected an IPv6 address, found `1.2.3.4`"),
        ("10.0.0.0/8 via 1.2.3.4 gate x", "line 1, column 29: expected the number of a gate, 0 to 65535, found `x`"),
        ("10.0.0.0/8 1 2", "line 1, column 14: expected the end of the line, or a word of `ip route`, found `2`"),
        ("::/8 1.2.3.4", "line 1, column 6: expected an IPv6 address, found `1.2.3.4`"),
        (
            "10.0.0.0/8 mac 03:00:00:00:00:01",
            "line 1, column 16: expected the address of one station such as 02:00:00:00:00:01, found `03:00:00:00:00:01`",
        ),
        ("10.0.0.0/8 dev eth0 metric", "line 1, column 27: expected a metric, 0 to 4294967295"),
        ("10.0.0.0/8 proto", "line 1, column 17: expected a value"),
        (
            "default nexthop via 1.1.1.1",
            "line 1, column 9: expected a single next hop (several for one route are not supported), found `nexthop`",
        ),
        (
            "10.0.0.0/8 1\n::/0 1\n  10.0.0.0/8 2",
            "line 3, column 3: the prefix has another next hop in line 1; different metrics tell routes apart",
        ),
        ("blackhole", "line 1, column 10: expected a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`"),
        ("10.0.0.0/8 dev ä 5é", "line 1, column 18: expected the end of the line, or a word of `ip route`, found `5é`"),
    ];
    for (text, message) in cases {
        assert_eq!(says(text), message);
    }
}

#[test]
fn next_hops_are_limited() {
    let line = |i: u32| format!("10.{}.{}.0/24 via 10.1.{}.{}\n", i >> 8 & 255, i & 255, i >> 8 & 255, i & 255);
    let most: String = (0..65_535).map(line).collect();
    assert_eq!(parse(&most).unwrap().hops.len(), NextHop::COUNT);
    let more = most + "11.0.0.0/8 1\n";
    assert_eq!(says(&more), "line 65536, column 1: more than 65535 different next hops");
}

proptest! {
    #[test]
    fn no_text_panics(text in "(default|blackhole|via|dev|gate|mac|metric|[0-9a-f.:/+#]{1,12}|inet6|[\\s\u{a0}ä]|\\PC){0,24}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1 && !error.to_string().is_empty());
        }
    }

    #[test]
    fn prefixes_are_read_as_they_are_written(four in any::<(u32, u8)>(), six in any::<(u128, u8)>(), gate in any::<u16>()) {
        let ipv4 = Prefix::new(four.0, four.1 % 33).unwrap();
        let ipv6 = Prefix::new(six.0, six.1 % 129).unwrap();
        let routes = parse(&format!("{ipv6} gate {gate}\n{ipv4}\t{gate}")).unwrap();
        prop_assert_eq!(routes.ipv4, [(ipv4, NextHop::new(0))]);
        prop_assert_eq!(routes.ipv6, [(ipv6, NextHop::new(0))]);
    }
}
