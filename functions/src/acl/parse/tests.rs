//! Rules in words: what is read, and what is said of mistakes.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn error(text: &str) -> String {
    parse(text).unwrap_err().into_iter().map(|e| e.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn reads_the_examples_of_the_manual() {
    let text = "\
# the edge
permit tcp from 10.0.0.0/8 to any port 80-443   # web

deny udp from any port 53 to 2001:db8::/32
permit any
deny to 192.0.2.1
permit 47
permit sctp from any port 1,5-6 to any port 7,8";
    let rules = parse(text).unwrap();
    let any = Rule::any(Action::Permit);
    assert_eq!(
        rules[..5],
        [
            Rule {
                src: Some(Prefix::v4(0x0a00_0000, 8)),
                dport: Some(Ports { first: 80, last: 443 }),
                protocols: Protocols::one(6),
                line: 2,
                ..any
            },
            Rule {
                action: Action::Deny,
                sport: Some(Ports { first: 53, last: 53 }),
                dst: Some(Prefix::v6(0x2001_0db8 << 96, 32)),
                protocols: Protocols::one(17),
                line: 4,
                ..any
            },
            Rule { line: 5, ..any },
            Rule { action: Action::Deny, dst: Some(Prefix::v4(0xc000_0201, 32)), line: 6, ..any },
            Rule { protocols: Protocols::one(47), line: 7, ..any },
        ]
    );
    assert_eq!(rules.len(), 9);
    assert_eq!(rules[8].to_string(), "permit sctp from any port 5-6 to any port 8");
}

#[test]
fn errors_say_where_what_and_the_likely_word() {
    for (text, message) in [
        ("pemit any", "line 1, column 1: expected `permit` or `deny`, found `pemit`; did you mean `permit`?"),
        ("\n drop any", "line 2, column 2: expected `permit` or `deny`, found `drop`; did you mean `deny`?"),
        (
            "permit",
            "line 1, column 7: expected `any`, a protocol, `from` or `to`, found the end of the line; `permit any` permits everything",
        ),
        (
            "permit tpc from any",
            "line 1, column 8: expected `any`, a protocol (a name or 0 to 255), `from` or `to`, found `tpc`; did you mean `tcp`?",
        ),
        (
            "permit tcp form any",
            "line 1, column 12: expected `from`, `to` or the end of the line, found `form`; did you mean `from`?",
        ),
        (
            "deny tcp from 10.0.0.1/8",
            "line 1, column 15: `10.0.0.1/8` has bits set behind its prefix; the network is `10.0.0.0/8`",
        ),
        ("deny tcp from 10.0.0.0/33", "line 1, column 15: expected a prefix length of 0 to 32 behind `/`, found `33`"),
        (
            "deny from 10.0.0.0/8 to ::1",
            "line 1, column 25: no packet goes from IPv4 to IPv6: this rule could never match",
        ),
        ("permit icmp from any port 7", "line 1, column 22: icmp has no ports; tcp, udp, sctp, dccp and udplite have"),
        ("permit udp to any port 9-7", "line 1, column 24: the range `9-7` is empty; did you mean `7-9`?"),
        (
            "permit udp to any port 80:90",
            "line 1, column 24: expected a port of 0 to 65535, a range such as `80-443`, or a list such as `80,443`, found `80:90`; a range is written with `-`",
        ),
        (
            "permit tcp to any port",
            "line 1, column 23: expected ports such as `80`, `80-443` or `80,443`, found the end of the line",
        ),
        (
            "permit tcp to any prot 80",
            "line 1, column 19: expected the end of the line, found `prot`; did you mean `port`?",
        ),
    ] {
        assert_eq!(error(text), message);
    }
}

#[test]
fn each_wrong_line_is_reported_up_to_a_limit() {
    assert_eq!(error("x\npermit any\ny").lines().count(), 2);
    assert_eq!(parse(&"x\n".repeat(100)).unwrap_err().len(), MOST_ERRORS);
}

fn rule() -> impl Strategy<Value = Rule> {
    let v4 = || prop::option::of((any::<u32>(), 0..=32u8).prop_map(|(a, l)| Prefix::v4(a, l)));
    let v6 = || prop::option::of((any::<u128>(), 0..=128u8).prop_map(|(a, l)| Prefix::v6(a, l)));
    let ports =
        || prop::option::of((any::<u16>(), any::<u16>()).prop_map(|(a, b)| Ports { first: a.min(b), last: a.max(b) }));
    let protocols = prop_oneof![Just(Protocols::ALL), Just(Protocols::one(6)), Just(Protocols { first: 3, last: 40 })];
    let action = prop_oneof![Just(Action::Permit), Just(Action::Deny)];
    let addresses = prop_oneof![(v4(), v4()), (v6(), v6())];
    (action, addresses, ports(), ports(), protocols).prop_map(|(action, (src, dst), sport, dport, protocols)| Rule {
        action,
        src,
        dst,
        sport,
        dport,
        protocols,
        line: 1,
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_the_same(rule in rule()) {
        prop_assert_eq!(parse(&rule.to_string()), Ok(vec![rule]));
    }

    #[test]
    fn no_text_panics(text in "(permit|deny|any|tcp|udp|from|to|port|[0-9:./,-]{0,6}|\\PC|[ \n#]){0,12}") {
        let _ = parse(&text);
    }
}
