//! TCP sessions, followed by a small state checker that knows only RFC 9293.

use std::collections::HashMap;

use catena_packet::wire::tcp::{self, flag};
use catena_packet::wire::{FlowKey, Net, ipv4, ipv6, parse};

use super::tests::{check, each};

/// What one side has said.
#[derive(Default)]
struct Side {
    /// The next sequence number, once there was a SYN.
    next: Option<u32>,
    /// How much of the other side it has acknowledged.
    acked: Option<u32>,
    fin: bool,
    data: u64,
}

#[derive(Default)]
struct Watched {
    /// The one that opened, the other.
    sides: [Side; 2],
}

#[derive(Default)]
struct Checker {
    open: HashMap<FlowKey, Watched>,
    /// Data segments of sessions that came to their end.
    closed: Vec<u64>,
    segments: HashMap<FlowKey, u64>,
    client_only: bool,
}

impl Checker {
    fn see(&mut self, frame: &[u8]) {
        check(frame);
        let layers = parse(frame).unwrap();
        let key = FlowKey::read(frame, &layers).unwrap();
        let payload = &frame[usize::from(layers.l3)..];
        let upper = match layers.net {
            Net::Ipv4 => ipv4::Packet::new_checked(payload).unwrap().payload().to_vec(),
            _ => ipv6::Packet::new_checked(payload).unwrap().payload().to_vec(),
        };
        let segment = tcp::Packet::new_checked(&upper[..]).unwrap();
        let flags = segment.flags();
        let length = segment.payload().len() as u32;
        let taken = length + u32::from(flags & (flag::SYN | flag::FIN) != 0);
        if flags == flag::SYN {
            assert!(!self.open.contains_key(&key) && !self.open.contains_key(&key.reverse()), "{key:?} opens twice");
            let opener = Side { next: Some(segment.seq().wrapping_add(1)), ..Side::default() };
            assert_eq!((length, segment.ack()), (0, 0));
            self.open.insert(key, Watched { sides: [opener, Side::default()] });
            return;
        }
        assert_ne!(flags & flag::ACK, 0, "only the first segment acknowledges nothing");
        assert_eq!(flags & flag::RST, 0);
        let (key, from) = if self.open.contains_key(&key) { (key, 0) } else { (key.reverse(), 1) };
        let watched = self.open.get_mut(&key).expect("a segment of an open session");
        let [first, second] = &mut watched.sides;
        let (ours, theirs) = if from == 0 { (first, second) } else { (second, first) };
        match ours.next {
            None => assert_eq!(flags, flag::SYN | flag::ACK, "the answer to a SYN"),
            Some(next) => {
                assert_eq!(flags & flag::SYN, 0);
                assert_eq!(segment.seq(), next, "in order, without gap or overlap");
            }
        }
        assert!(!ours.fin || length == 0, "data after the end");
        if length > 0 {
            assert!(ours.acked.is_some(), "data before the handshake was over");
            *self.segments.entry(key).or_default() += 1;
        }
        if self.client_only {
            // The other side is seen only in what is acknowledged, which never goes back.
            assert_eq!(from, 0);
            assert!(ours.acked.is_none_or(|acked| segment.ack().wrapping_sub(acked) < 1 << 16));
        } else {
            assert_eq!(Some(segment.ack()), theirs.next, "all that was said is acknowledged");
        }
        ours.acked = Some(segment.ack());
        ours.next = Some(segment.seq().wrapping_add(taken));
        ours.data += length as u64;
        let last = ours.fin && (theirs.fin || self.client_only) && flags == flag::ACK;
        ours.fin |= flags & flag::FIN != 0;
        if last {
            assert!(self.client_only || theirs.acked == ours.next, "the last FIN was acknowledged");
            self.open.remove(&key);
            self.closed.push(self.segments.remove(&key).unwrap_or(0));
        }
    }
}

#[test]
fn sessions_follow_the_protocol() {
    for text in [
        "gen:flows=50,proto=tcp,tcp=sessions,dist=fixed(7)",
        "gen:flows=50,proto=tcp,tcp=sessions,dist=fixed(1),ipv6=50%,size=imix",
        "gen:flows=50,proto=tcp,tcp=sessions,dist=geometric(9),order=random,size=60..1514",
        "gen:flows=50,proto=tcp,tcp=sessions,dist=pareto(1.3,2),new=40k/s,rate=1Mpps",
        "gen:flows=50,proto=tcp,tcp=sessions,new=20k/s,rate=1Mpps,size=1514",
        "gen:flows=3,proto=tcp,tcp=sessions,dist=fixed(2),src=10.0.0.1,sport=1-4,dst=10.0.0.2",
    ] {
        let mut checker = Checker::default();
        each(text, 50_000, |packet| checker.see(packet.data()));
        assert!(checker.closed.len() > 500, "{text}: {} sessions", checker.closed.len());
        assert!(checker.open.len() <= 50, "{text}: {} open", checker.open.len());
    }
}

#[test]
fn sessions_are_as_long_as_asked() {
    let mut checker = Checker::default();
    each("gen:flows=10,proto=tcp,tcp=sessions,dist=fixed(7)", 20_000, |packet| checker.see(packet.data()));
    assert!(checker.closed.iter().all(|segments| *segments == 7));
}

#[test]
fn a_client_alone_speaks_as_if_it_was_answered() {
    let mut checker = Checker { client_only: true, ..Checker::default() };
    each("gen:flows=50,proto=tcp,tcp=client,dist=fixed(9),ipv6=50%", 50_000, |packet| checker.see(packet.data()));
    // Of nine segments with data (one request, two answers, three times over) three are the client's.
    assert!(checker.closed.len() > 500 && checker.closed.iter().all(|segments| *segments == 3));
}
