//! Later fragments go where their first went.

use super::packet::{V4, V6};
use super::{branch, filter, matches};

/// A fragment of a datagram of UDP to port 53: its source, identification and whether it is the first.
fn v4(src: usize, proto: u8, ident: u8, is_first: bool) -> Vec<u8> {
    let offset: [u8; 2] = if is_first { [0x20, 0] } else { [0, 3] };
    let head = [8, 0, 0x45, 0, 0, 44, 0, ident, offset[0], offset[1], 64, proto, 0, 0];
    let upper = if is_first { [15, 160, 0, 53, 0, 48, 0, 0] } else { [0; 8] };
    [&[2; 12][..], &head, &V4[src], &V4[3], &upper, &[0; 16]].concat()
}

/// The same over IPv6, where a first fragment has destination options before UDP; a later one begins at byte 128.
fn v6(src: usize, ident: u8, is_first: bool) -> Vec<u8> {
    let upper: &[u8] = if is_first { &[17, 0, 1, 4, 0, 0, 0, 0, 15, 160, 0, 53, 0, 160, 0, 0] } else { &[0; 16] };
    let offset: [u8; 2] = if is_first { [0, 1] } else { [0, 128] };
    let fragment = [60, 0, offset[0], offset[1], 0, 0, 0, ident];
    let head = [0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 44, 64];
    [&[2; 12][..], &head, &V6[src], &V6[1], &fragment, upper].concat()
}

#[test]
fn later_fragments_follow_their_first() {
    let dns = &mut branch(&filter("udp port 53"));
    assert_eq!(matches(dns, &v4(0, 17, 5, false)), Some(false), "its first has not come");
    assert_eq!(matches(dns, &v4(0, 17, 5, true)), Some(true));
    assert_eq!(matches(dns, &v4(0, 17, 5, false)), Some(true));
    assert_eq!(matches(dns, &v4(0, 17, 6, false)), Some(false), "another datagram");
    assert_eq!(matches(dns, &v4(1, 17, 5, false)), Some(false), "of another sender");
    assert_eq!(matches(dns, &v4(0, 47, 5, false)), Some(false), "of another protocol");
    let tagged = |mut frame: Vec<u8>| {
        frame.splice(12..12, [0x81, 0, 0, 7]);
        frame
    };
    assert_eq!(matches(dns, &tagged(v4(0, 17, 5, false))), Some(false), "of another VLAN");
    assert_eq!(matches(dns, &tagged(v4(0, 17, 5, true))), Some(true));
    assert_eq!(matches(dns, &tagged(v4(0, 17, 5, false))), Some(true));
}

#[test]
fn later_fragments_of_ipv6_follow_their_first() {
    let dns = &mut branch(&filter("udp port 53"));
    assert_eq!(matches(dns, &v6(0, 5, false)), Some(false), "its first has not come");
    assert_eq!(matches(dns, &v6(0, 5, true)), Some(true));
    assert_eq!(matches(dns, &v6(0, 5, false)), Some(true));
    assert_eq!(matches(dns, &v6(0, 6, false)), Some(false), "another datagram");
    assert_eq!(matches(dns, &v6(1, 5, false)), Some(false), "of another sender");
}

/// What matches by its first fragment's absence of ports does not begin to match by its later ones.
#[test]
fn a_filter_that_excludes_ports_excludes_the_whole_datagram() {
    let others = &mut branch(&filter("not udp port 53"));
    assert_eq!(matches(others, &v4(0, 17, 5, true)), Some(false));
    assert_eq!(matches(others, &v4(0, 17, 5, false)), Some(false));
}

#[test]
fn a_datagram_is_forgotten_after_half_a_minute() {
    let dns = &mut branch(&filter("udp port 53"));
    dns.cx.set_now(1_000_000_000);
    assert_eq!(matches(dns, &v4(0, 17, 5, true)), Some(true));
    dns.cx.set_now(30_900_000_000);
    assert_eq!(matches(dns, &v4(0, 17, 5, false)), Some(true));
    dns.cx.set_now(31_100_000_000);
    assert_eq!(matches(dns, &v4(0, 17, 5, false)), Some(false));
}

/// Where more datagrams are under way than are remembered, the newest are known.
#[test]
fn the_oldest_datagrams_give_way() {
    let dns = &mut branch(&filter("udp port 53"));
    for time in 0..20_000_u64 {
        dns.cx.set_now(1_000_000_000 + 1_000 * time);
        let mut first = v4(0, 17, 0, true);
        first[28..30].copy_from_slice(&(time as u16).to_be_bytes());
        first[18..20].copy_from_slice(&(time as u16).to_be_bytes());
        assert_eq!(matches(dns, &first), Some(true));
        let mut later = v4(0, 17, 0, false);
        later[18..20].copy_from_slice(&(time as u16).to_be_bytes());
        later[28..30].copy_from_slice(&(time as u16).to_be_bytes());
        assert_eq!(matches(dns, &later), Some(true), "the datagram before");
    }
}
