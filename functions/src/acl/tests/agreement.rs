//! The module against the plain reading of its rules, packet by packet, over random lists and packets.

use super::*;
use crate::acl::key::{KeyV4, KeyV6};
use crate::acl::rule::{Action, Rule};
use crate::acl::synthetic::{self, Style};
use catena_packet::random::SplitMix64;

/// Ethernet, up to two VLAN tags, and the EtherType.
fn link(random: &mut SplitMix64, ethertype: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..random.below(8).saturating_sub(5) {
        frame.extend([0x81, 0, 0, random.below(256) as u8]);
    }
    frame.extend(ethertype.to_be_bytes());
    frame
}

/// What comes after the IP header: the ports if there are any, in an upper layer that is whole.
fn upper(sport: u16, dport: u16, protocol: u8) -> Vec<u8> {
    let ports = [sport.to_be_bytes(), dport.to_be_bytes()].concat();
    match protocol {
        6 => [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 2, 16, 0, 0, 0, 0, 0]].concat(),
        17 => [&ports[..], &[0, 8, 0, 0]].concat(),
        132 | 33 | 136 => [&ports[..], &[0; 12]].concat(),
        1 | 58 => vec![8, 0, 0, 0, 0, 1, 0, 1],
        // An authentication header would be looked into.
        _ => vec![0; 16],
    }
}

/// Whether the parser would read on in this protocol as in a header of its own.
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | 44 | 50 | 51 | 59 | 60 | 135 | 139 | 140)
}

/// A frame with this key and the key it then truly has: a later fragment has no ports.
fn frame_v4(key: &KeyV4, random: &mut SplitMix64) -> (Vec<u8>, KeyV4) {
    let protocol = if is_extension(key.protocol) { 47 } else { key.protocol };
    let has_ports = protocol::has_ports(protocol);
    let mut key = KeyV4 { protocol, has_ports, ..*key };
    let data = upper(key.sport, key.dport, protocol);
    let options = 4 * random.below(6).saturating_sub(3) as usize;
    // Don't fragment, whole, first, later. A fragment before the last is a multiple of 8 bytes.
    let fragment: u16 = [0x4000, 0, 0x2000, 0x00b9][random.below(4) as usize];
    let data = if fragment == 0x2000 { [&data[..], &[0; 8][..(8 - data.len() % 8) % 8]].concat() } else { data };
    if fragment == 0x00b9 {
        key.has_ports = false;
    }
    let mut frame = link(random, 0x0800);
    let length = (20 + options + data.len()) as u16;
    frame.extend([0x45 + (options / 4) as u8, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 7]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0]);
    frame.extend(key.src.to_be_bytes());
    frame.extend(key.dst.to_be_bytes());
    frame.extend(vec![1; options]);
    frame.extend(data);
    (frame, key)
}

fn frame_v6(key: &KeyV6, random: &mut SplitMix64) -> (Vec<u8>, KeyV6) {
    let protocol = if is_extension(key.protocol) { 47 } else { key.protocol };
    let has_ports = protocol::has_ports(protocol);
    let mut key = KeyV6 { protocol, has_ports, ..*key };
    let mut data = upper(key.sport, key.dport, protocol);
    let mut next = protocol;
    // Whole, hop-by-hop options, first fragment, later fragment.
    match random.below(5) {
        0 => {
            data.splice(0..0, [next, 0, 1, 4, 0, 0, 0, 0]);
            next = 0;
        }
        1 => {
            data.extend(&[0; 8][..(8 - data.len() % 8) % 8]);
            data.splice(0..0, [next, 0, 0, 1, 0, 0, 0, 9]);
            next = 44;
        }
        2 => {
            data.splice(0..0, [next, 0, 5, 0xc8, 0, 0, 0, 9]);
            next = 44;
            key.has_ports = false;
        }
        _ => {}
    }
    let mut frame = link(random, 0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, 64]);
    frame.extend(key.src.to_be_bytes());
    frame.extend(key.dst.to_be_bytes());
    frame.extend(data);
    (frame, key)
}

/// What the list says, read rule by rule.
fn plain(rules: &[Rule], default: Action, matches: impl Fn(&Rule) -> bool) -> (bool, &'static str) {
    match rules.iter().find(|rule| matches(rule)) {
        Some(rule) => (rule.action == Action::Permit, "denied by a rule"),
        None => (default == Action::Permit, "denied by default"),
    }
}

/// Packets of both families mixed, some of them for the second or third time.
fn agree(rules: &[Rule], default: Action, packets: usize, seed: u64) {
    let module = Filter::new(
        Arc::new(List::new(rules, default).unwrap()),
        catena_packet::wire::Seed::from_number(seed),
        false,
        0,
    );
    let mut harness = Harness::new(Box::new(module), 2);
    let mut random = SplitMix64::new(seed);
    let (four, six) = (synthetic::packets_v4(rules, packets, seed), synthetic::packets_v6(rules, packets, seed));
    let (mut frames, mut expected) = (Vec::new(), Vec::new());
    for i in 0..packets {
        let i = if random.below(3) == 0 { random.below(i as u32 + 1) as usize } else { i };
        if random.below(2) == 0 {
            let (frame, key) = frame_v4(&four[i], &mut random);
            frames.push((1, frame));
            expected.push(plain(rules, default, |rule| rule.matches_v4(&key)));
        } else {
            let (frame, key) = frame_v6(&six[i], &mut random);
            frames.push((1, frame));
            expected.push(plain(rules, default, |rule| rule.matches_v6(&key)));
        }
    }
    let gate = (seed % 2) as u16;
    let out = harness.send(gate, &frames);
    let passed: Vec<usize> = out.iter().map(|(i, _, _)| *i).collect();
    let expected_out: Vec<usize> = (0..packets).filter(|&i| expected[i].0).collect();
    let differs = passed.iter().zip(&expected_out).find(|(a, b)| a != b).map(|(a, b)| *a.min(b));
    assert_eq!(passed, expected_out, "first: {:02x?}", differs.map(|i| &frames[i]));
    assert!(out.iter().all(|(i, by, bytes)| *by == gate && *bytes == frames[*i].1));
    let mut drops = std::collections::BTreeMap::new();
    for (_, reason) in expected.iter().filter(|(permitted, _)| !permitted) {
        *drops.entry(*reason).or_insert(0) += 1;
    }
    assert_eq!(harness.drops(), drops);
    harness.end();
}

#[test]
fn the_module_agrees_with_the_plain_reading_of_its_rules() {
    let styles = [Style::Acl, Style::Fw, Style::Ipc];
    for (seed, style) in (0..30).zip(styles.into_iter().cycle()) {
        let mut rules = synthetic::rules_v4(style, 4 + 5 * seed as usize, seed);
        let six = synthetic::rules_v6(style, 4 + 5 * seed as usize, seed + 100);
        rules = rules.into_iter().zip(six).flat_map(|(four, six)| [four, six]).collect();
        if seed % 3 == 0 {
            // Without the last rules, which match all: the default is met.
            rules.truncate(rules.len() - 2);
        }
        let default = if seed % 2 == 0 { Action::Deny } else { Action::Permit };
        agree(&rules, default, 25_000, seed);
    }
}
