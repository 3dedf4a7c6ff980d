//! Fragments through an ACL and together again (RFC 1858, RFC 3128, RFC 7112): hosts get no datagram that its rules
//! deny, and honest senders' datagrams come through.

mod property;
pub(crate) mod reassembly;

use crate::testing::{Fate, Harness};
use crate::{Args, Value, acl};
use catena_packet::wire::Seed;
use reassembly::{Fragment, Overlap, Reassembly};
use std::sync::Arc;

fn acl_of(rules: &[&str]) -> Harness {
    let rules = rules.iter().map(|rule| Value::Text((*rule).to_owned())).collect();
    Harness::of(&acl::DESCRIPTOR, &Args::default().with("rules", Value::List(rules)))
}

#[test]
fn what_passes_makes_no_datagram_that_is_denied_whole() {
    const ATTACKS: u64 = 30_000;
    let seed = Seed::from_number(13);
    let (mut datagrams, mut forbidden) = ([0; 3], [0; 3]);
    let mut harness = acl_of(&["permit any"]);
    for attack in 0..ATTACKS {
        let bytes: Vec<u8> = (0..32).flat_map(|word| seed.hash2([attack, word]).to_le_bytes()).collect();
        let came = property::no_denied_datagram_comes_out(&bytes, |rules, default, frames| {
            harness.module::<acl::Filter>().replace(Arc::new(acl::List::new(rules, default).unwrap()));
            let frames: Vec<(u64, Vec<u8>)> = frames.iter().map(|frame| (1, frame.clone())).collect();
            harness.send(0, &frames).into_iter().map(|(index, _, _)| index).collect()
        });
        for host in 0..3 {
            datagrams[host] += came.datagrams[host];
            forbidden[host] += came.forbidden[host];
        }
    }
    harness.end();
    // The attacks are worth the name: many datagrams come out, and many would that must not.
    assert!(datagrams.iter().all(|&count| count > ATTACKS as usize / 100), "{datagrams:?} datagrams came out");
    assert!(forbidden.iter().all(|&count| count > ATTACKS as usize / 10), "{forbidden:?} were to be stopped");
}

/// A SYN to port 22 in 16 bytes, ports and flags among them, and 4: Linux put them together and answered.
#[test]
fn a_short_first_fragment_is_dropped_by_name() {
    let mut harness = acl_of(&["deny tcp to any port 22", "deny sctp to any port 22", "permit any"]);
    let mut syn = vec![0x10, 0, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0];
    let short = "first fragment without its whole transport header";
    let mut fate = |v6, next, offset, more, data: &[u8]| {
        let fragment = Fragment { offset, more, next, data: data.to_vec() };
        harness.send_one(0, 1, &property::frame(v6, &fragment))
    };
    for v6 in [false, true] {
        assert_eq!(fate(v6, 6, 0, true, &syn), Fate::Dropped(short));
        assert_eq!(fate(v6, 6, 0, true, &syn[..8]), Fate::Dropped(short));
        assert_eq!(fate(v6, 132, 0, true, &syn[..8]), Fate::Dropped(short));
        assert_eq!(fate(v6, 17, 0, true, &[]), Fate::Dropped(short));
    }
    // What is whole is judged by its ports, in a fragment and out of one.
    syn.extend([0; 8]);
    assert_eq!(fate(false, 6, 0, true, &syn), Fate::Dropped("denied by a rule"));
    assert_eq!(fate(true, 6, 0, true, &syn), Fate::Dropped("denied by a rule"));
    assert_eq!(fate(true, 6, 0, false, &syn), Fate::Dropped("denied by a rule"), "an atomic fragment");
    assert_eq!(fate(true, 6, 0, false, &syn[..16]), Fate::Dropped("truncated TCP header"));
    assert_eq!(fate(false, 6, 8, false, &syn[..8]), Fate::Dropped("later fragment could overwrite a transport header"));
    harness.end();
}

/// Honest senders fill what the path carries.
#[test]
fn honest_fragments_pass() {
    let mut harness = acl_of(&["deny tcp to any port 22", "permit any"]);
    let mut udp = vec![0x10, 0, 0, 22, 0x0f, 0xa0, 0, 0];
    udp.resize(4000, 0x5a);
    for (v6, mtu) in [(false, 68), (false, 296), (false, 576), (false, 1500), (true, 1280), (true, 1500)] {
        let room = (mtu - if v6 { 48 } else { 20 }) / 8 * 8;
        let fragments: Vec<Fragment> = (0..udp.len())
            .step_by(room)
            .map(|offset| {
                let end = udp.len().min(offset + room);
                Fragment { offset, more: end < udp.len(), next: 17, data: udp[offset..end].to_vec() }
            })
            .collect();
        let frames: Vec<(u64, Vec<u8>)> = fragments.iter().map(|f| (1, property::frame(v6, f))).collect();
        let passed = harness.send(0, &frames);
        for overlap in Overlap::ALL {
            let mut reassembly = Reassembly::new(overlap);
            let came: Vec<_> = passed.iter().filter_map(|(index, _, _)| reassembly.take(&fragments[*index])).collect();
            assert_eq!(came, [(17, udp.clone())], "packets of {mtu} bytes");
        }
    }
    assert_eq!(harness.drops(), [].into());
    harness.end();
}
