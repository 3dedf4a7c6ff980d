//! The comparison finds what it is there to find: faults planted in packets that came out well.

use super::compare::{Between, compare};
use super::notation::craft;
use super::packets::{Packet, write};
use super::parts::{Parts, put_right};
use super::trip::judge;

/// Packets before and after a good NAT, and the checksum to spoil.
const GOOD: [(&str, &str, &str); 5] = [
    ("udp 10.0.0.1:4000 > 192.0.2.9:53 len 13", "udp 198.51.100.1:1024 > 192.0.2.9:53 len 13", "UDP"),
    ("tcp 10.0.0.1:4000 > 192.0.2.9:80 PA len 4", "tcp 198.51.100.1:1024 > 192.0.2.9:80 PA len 4", "TCP"),
    ("icmp 10.0.0.1 > 192.0.2.9 echo 7", "icmp 198.51.100.1 > 192.0.2.9 echo 1024", "ICMP"),
    (
        "icmp 10.0.0.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.1:4000 }",
        "icmp 198.51.100.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 198.51.100.1:1024 }",
        "quoted UDP",
    ),
    ("tcp [fd00::1]:4000 > [2001:db8::9]:80 S", "tcp [2001:db8:f::1]:1024 > [2001:db8::9]:80 S", "TCP"),
];

fn packets<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Packet> {
    lines.into_iter().zip(1..).map(|(line, time)| Packet { time, frame: craft(line), missing: 0 }).collect()
}

fn good() -> (Vec<Packet>, Vec<Packet>) {
    (packets(GOOD.map(|(before, _, _)| before)), packets(GOOD.map(|(_, after, _)| after)))
}

/// Return where a checksum stands.
fn place(packet: &Packet, name: &str) -> usize {
    Parts::of(&packet.frame).sums.iter().find(|sum| sum.name == name).expect("a checksum").place
}

/// Make a checksum wrong by this much.
fn spoil(packet: &mut Packet, name: &str, error: u32) {
    put_right(&mut packet.frame, name);
    let place = place(packet, name);
    let field = &mut packet.frame[place..place + 2];
    let wrong = (u32::from(u16::from_be_bytes([field[0], field[1]])) + error) % 65535;
    field.copy_from_slice(&(wrong as u16).to_be_bytes());
}

/// Assert that there is a finding, of this packet and with these words in it.
fn found(input: &[Packet], output: &[Packet], number: usize, words: &str) {
    let findings = compare(input, output, Between::Translators).findings;
    assert!(findings.iter().any(|(n, what)| *n == number && what.contains(words)), "{words}: {findings:?}");
    assert!(findings.iter().all(|(n, _)| *n == number), "{words}: {findings:?}");
}

#[test]
fn what_is_good_has_no_findings() {
    let (input, output) = good();
    let result = compare(&input, &output, Between::Translators);
    assert_eq!((result.findings.as_slice(), result.changed, result.dropped), (&[][..], GOOD.len(), 0));
}

#[test]
fn a_flipped_checksum_byte_is_found() {
    for (number, (_, _, name)) in GOOD.iter().enumerate() {
        let (input, mut output) = good();
        let place = place(&output[number], name);
        output[number].frame[place + 1] ^= 0x40;
        found(&input, &output, number, &format!("{name} checksum was"));
    }
}

#[test]
fn an_address_without_its_checksum_is_found() {
    let (input, mut output) = good();
    output[1].frame[29] += 1;
    found(&input, &output, 1, "IPv4 checksum was wrong by 0x0000, is wrong by 0x0001");
    found(&input, &output, 1, "TCP checksum was wrong by 0x0000, is wrong by 0x0001");
}

#[test]
fn a_wrong_checksum_stays_as_wrong_as_it_was() {
    let (mut input, mut output) = good();
    spoil(&mut input[1], "TCP", 77);
    found(&input, &output, 1, "TCP checksum was wrong by 0x004d, is wrong by 0x0000");
    spoil(&mut output[1], "TCP", 78);
    found(&input, &output, 1, "TCP checksum was wrong by 0x004d, is wrong by 0x004e");
    spoil(&mut output[1], "TCP", 77);
    let result = compare(&input, &output, Between::Translators);
    assert_eq!((result.findings.as_slice(), result.wrong), (&[][..], 1));
}

#[test]
fn a_dropped_bad_packet_does_not_hide_a_new_one() {
    // As many bad ones came out as went in.
    let (mut input, mut output) = good();
    spoil(&mut input[0], "UDP", 5);
    output.remove(0);
    spoil(&mut output[0], "TCP", 5);
    found(&input, &output, 0, "TCP checksum was wrong by 0x0000, is wrong by 0x0005");
}

#[test]
fn zeros_are_told_apart() {
    // UDP's zero stands for none, which may neither come nor go.
    for (before, after) in [("len 3", "nosum len 3"), ("nosum len 3", "len 3")] {
        let input = packets([&*format!("udp 10.0.0.1:4000 > 192.0.2.9:53 {before}")]);
        let output = packets([&*format!("udp 198.51.100.1:1024 > 192.0.2.9:53 {after}")]);
        found(&input, &output, 0, "absent");
    }
    // A payload that makes the checksum zero: TCP must write it so.
    let (input, mut output) = good();
    let mut input = [input[1].clone()];
    let check = u16::from_be_bytes([output[1].frame[50], output[1].frame[51]]);
    for packet in [&mut input[0], &mut output[1]] {
        let [high, low] = [packet.frame[54], packet.frame[55]];
        let word = (u32::from(u16::from_be_bytes([high, low])) + u32::from(check)) % 65535;
        packet.frame[54..56].copy_from_slice(&(word as u16).to_be_bytes());
        put_right(&mut packet.frame, "TCP");
    }
    let mut output = [output.swap_remove(1)];
    assert_eq!(output[0].frame[50..52], [0, 0]);
    assert!(compare(&input, &output, Between::Translators).findings.is_empty());
    output[0].frame[50..52].fill(0xff);
    found(&input, &output, 0, "0xffff for 0x0000");
}

#[test]
fn what_was_not_sent_has_no_partner() {
    let alone = "has no partner";
    let (input, mut output) = good();
    *output[0].frame.last_mut().expect("a byte") ^= 1;
    put_right(&mut output[0].frame, "UDP");
    found(&input, &output, 0, alone);

    let (input, mut output) = good();
    output.push(output[2].clone());
    found(&input, &output, GOOD.len(), alone);

    let (input, mut output) = good();
    output[3].time += 1_000_000;
    found(&input, &output, 3, alone);

    // A translator is no hop; a router is one.
    let (input, mut output) = good();
    output[1].frame[22] -= 1;
    put_right(&mut output[1].frame, "IPv4");
    found(&input, &output, 1, alone);
    assert!(compare(&input, &output, Between::Routers).findings.is_empty());
}

#[test]
fn what_was_cut_must_say_so() {
    let (mut input, output) = good();
    input[4].missing = 100;
    found(&input, &output, 4, "lacked 100 bytes, lacks 0");
}

#[test]
fn wireshark_finds_it_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let (input, mut output) = good();
    write(&out, &output);
    assert_eq!(judge(&input, &out, Between::Translators).findings, []);
    spoil(&mut output[1], "TCP", 9);
    write(&out, &output);
    if super::tshark(&out).is_some() {
        let findings = judge(&input, &out, Between::Translators).findings;
        let said = r#"Wireshark: tcp.checksum.status was "1", is "0""#;
        assert!(findings.iter().any(|(number, what)| *number == 1 && what == said), "{findings:?}");
    }
}
