//! ACL against golden scripts, golden messages, and the plain reading of its rules.

use super::*;
use crate::Value;
use crate::testing::{Fate, Harness, build as build_with, build_taking, craft, golden};
use catena_state::Share;
use std::sync::Arc;

mod agreement;
pub(crate) mod fragments;
mod messages;
mod source_routes;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn file(path: &str, text: &str) -> Value {
    Value::File { path: path.to_owned(), text: text.to_owned() }
}

fn list(rules: &[&str]) -> Args {
    Args::default().with("rules", Value::List(rules.iter().map(|rule| text(rule)).collect()))
}

/// Plays a script whose rules stand at its head, each behind `#|`.
fn play_with_rules(script: &str) {
    let rules: String =
        script.lines().filter_map(|line| line.strip_prefix("#|")).map(|line| format!("{line}\n")).collect();
    let mut harness = Harness::of(&DESCRIPTOR, &Args::default().with("rules", file("golden.acl", &rules)));
    golden(&mut harness, script);
    harness.end();
}

#[test]
fn golden_scripts() {
    play_with_rules(include_str!("tests/rules.txt"));
    play_with_rules(include_str!("tests/fragments.txt"));
    play_with_rules(include_str!("tests/iptables.txt"));
    play_with_rules(include_str!("tests/unparsed.txt"));
}

#[test]
fn the_default_is_what_one_says() {
    let packet = craft("udp 10.0.0.1:4000 > 192.0.2.9:53");
    for (default, passes) in [(None, 0), (Some("deny"), 0), (Some("permit"), 1)] {
        let args = list(&["deny tcp"]);
        let args = default.map_or(args.clone(), |word| args.with("default", Value::Word(word.to_owned())));
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        assert_eq!(harness.send(0, &[(1, packet.clone())]).len(), passes);
        harness.end();
    }
}

/// Rules, options, and why frames that are not understood are dropped, if they are.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], Option<&'static str>);

/// The rules that match every packet, or else the default, unless one says otherwise.
#[test]
fn frames_that_are_not_understood_meet_the_last_word() {
    let word = |word: &str| Value::Word(word.to_owned());
    let drop = Some("not IPv4, IPv6 or ARP");
    let cases: [Case; 10] = [
        (&["permit udp", "deny any"], &[], drop),
        (&["permit udp", "deny any"], &[("default", "permit")], drop),
        (&["permit udp"], &[], drop),
        (&["deny udp"], &[("default", "permit")], None),
        (&["deny udp", "permit any"], &[], None),
        (&["permit any", "deny any"], &[], None),
        // These say nothing of what is not IP.
        (&["permit any from 0.0.0.0/0", "permit any to ::/0", "permit 1-255"], &[], drop),
        (&["deny udp", "permit any"], &[("unparsed", "drop")], drop),
        (&["permit udp", "deny any"], &[("unparsed", "pass")], None),
        (&["permit udp"], &[("unparsed", "pass")], None),
    ];
    for (rules, options, expected) in cases {
        let args = options.iter().fold(list(rules), |args, (name, value)| args.with(name, word(value)));
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        for (kind, gate) in [("snap", 0), ("mpls", 1), ("pppoe", 0), ("llc", 1), ("lldp", 0)] {
            let frame = craft(&format!("{kind} {{ udp 10.0.0.1:4000 > 192.0.2.9:53 }}"));
            let fate = expected.map_or(Fate::Out(gate, frame.clone()), Fate::Dropped);
            assert_eq!(harness.send_one(gate, 1, &frame), fate, "{kind} with {rules:?} {options:?}");
        }
        assert!(matches!(harness.send_one(0, 1, &craft("arp")), Fate::Out(0, _)), "ARP with {rules:?} {options:?}");
        harness.end();
    }
}

/// Lemur §2: "an ACL that drops packets with dst other than" the given one.
#[test]
fn records_are_read_as_lemur_means_them() {
    let fields = |fields: &[(&str, Value)]| {
        Value::Record(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    };
    let args = Args::default().with(
        "rules",
        Value::List(vec![
            fields(&[("dst_ip", text("10.1.0.0/16")), ("dst_port", Value::Integer(22)), ("drop", Value::Bool(true))]),
            fields(&[("dst_ip", text("10.0.0.0/8")), ("drop", Value::Bool(false))]),
            fields(&[
                ("src_ip", text("192.0.2.1")),
                ("ip_proto", Value::Integer(17)),
                ("src_port", Value::Range(50, 60)),
            ]),
        ]),
    );
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    golden(
        &mut harness,
        "\
0s 0: tcp 192.0.2.1:4000 > 10.2.0.1:22 S
  -> 0: tcp 192.0.2.1:4000 > 10.2.0.1:22 S
0s 0: tcp 192.0.2.1:4000 > 10.1.0.1:22 S
  -> drop: denied by a rule
0s 0: tcp 192.0.2.1:4000 > 11.0.0.1:22 S
  -> drop: denied by default
0s 0: udp 192.0.2.1:53 > 11.0.0.1:22
  -> 0: udp 192.0.2.1:53 > 11.0.0.1:22
",
    );
    harness.end();
}

#[test]
fn denied_packets_take_the_edge_that_selects_them() {
    let module = build_taking(&["deny"], &DESCRIPTOR, &list(&["permit tcp"]), Share::WHOLE).unwrap();
    let mut harness = Harness::new(module, 4);
    golden(
        &mut harness,
        "\
0s 0: tcp 10.0.0.1:1 > 10.0.0.2:2 S
  -> 0: tcp 10.0.0.1:1 > 10.0.0.2:2 S
0s 1: tcp 10.0.0.2:2 > 10.0.0.1:1 SA
  -> 1: tcp 10.0.0.2:2 > 10.0.0.1:1 SA
0s 0: udp 10.0.0.1:1 > 10.0.0.2:2
  -> 2: udp 10.0.0.1:1 > 10.0.0.2:2
0s 1: udp 10.0.0.2:2 > 10.0.0.1:1
  -> 3: udp 10.0.0.2:2 > 10.0.0.1:1
0s 1: mpls { tcp 10.0.0.2:2 > 10.0.0.1:1 SA }
  -> 3: other
",
    );
    assert!(harness.drops().is_empty());
    harness.end();
}

#[test]
fn rules_change_while_it_runs() {
    let mut harness = Harness::of(&DESCRIPTOR, &list(&["permit tcp", "permit udp"]));
    let packet = || vec![(1, craft("udp 10.0.0.1:1 > 10.0.0.2:2")); 40];
    assert_eq!(harness.send(0, &packet()).len(), 40);
    assert_eq!(harness.gauges(), [("rules", 2), ("packets searched for", 32)].into());
    let rules = parse::parse("deny udp\npermit any\npermit any").unwrap();
    harness.module::<Filter>().replace(Arc::new(List::new(&rules, rule::Action::Deny).unwrap()));
    assert_eq!(harness.send(0, &packet()).len(), 0);
    assert_eq!(harness.gauges()["rules"], 3);
    assert_eq!(harness.drops(), [("denied by a rule", 40)].into());
    harness.end();
}

#[test]
fn both_families_of_iptables_are_one_list() {
    let four = file("v4", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n");
    let six = file(
        "v6",
        "# Generated by ip6tables-save v1.8.9 on Sat\n*filter\n:FORWARD ACCEPT [0:0]\n\
         -A FORWARD -m conntrack --ctstate INVALID -j DROP\n-A FORWARD -p tcp -j DROP\nCOMMIT\n",
    );
    let args = Args::default()
        .with("rules", Value::List(vec![four, six]))
        .with("leave_out", Value::List(vec![text("conntrack")]));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    golden(
        &mut harness,
        "\
0s 0: tcp 10.0.0.1:1 > 10.0.0.2:2 S
  -> 0: tcp 10.0.0.1:1 > 10.0.0.2:2 S
0s 0: udp 10.0.0.1:1 > 10.0.0.2:2
  -> drop: denied by a rule
0s 0: tcp [2001:db8::1]:1 > [2001:db8::2]:2 S
  -> drop: denied by a rule
0s 0: udp [2001:db8::1]:1 > [2001:db8::2]:2
  -> 0: udp [2001:db8::1]:1 > [2001:db8::2]:2
",
    );
    assert_eq!(harness.gauges()["rules left out"], 1);
    harness.end();
}
