//! Hostile traffic against a plain model: who is established stays, and nobody is refused while others may go.

use super::hostile::{TCP, UDP, bench, client};
use super::*;

const MOST: i64 = 12;

/// What the model knows of a connection that LB opened last for this client.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    server: u16,
    settled: bool,
    fins: [bool; 2],
    reset_by: [bool; 2],
    last: u64,
}

impl Known {
    fn is_closed(&self) -> bool {
        self.reset_by != [false; 2] || self.fins == [true; 2]
    }

    fn timeout(&self, proto: u8) -> u64 {
        let is_open = self.settled && !self.is_closed() && self.fins == [false; 2];
        SECOND
            * if proto == UDP {
                300
            } else if is_open {
                7440
            } else {
                240
            }
    }

    /// Whether it must not give way to new connections: established, and not closed by its server or by FINs.
    /// Of UDP nothing is: a server's answer proves nothing.
    fn is_safe(&self, proto: u8) -> bool {
        proto == TCP
            && self.settled
            && (!self.is_closed() || self.first_reset_was_the_clients() && self.fins != [true; 2])
    }

    fn first_reset_was_the_clients(&self) -> bool {
        self.reset_by == [true, false]
    }

    fn must_be_there(&self, proto: u8, now: u64) -> bool {
        self.is_safe(proto) && now - self.last <= self.timeout(proto)
    }

    fn may_be_there(&self, proto: u8, now: u64) -> bool {
        self.is_safe(proto) && now - self.last <= self.timeout(proto) / 4 * 5 + 1
    }

    /// Take note of a packet; what comes after the end changes nothing.
    fn note(&mut self, back: usize, flags: u8, now: u64) {
        self.last = now;
        if back == 1 && self.first_reset_was_the_clients() {
            // The server ends it, too; or goes on, so the reset was false; or begins anew.
            self.reset_by = [flags & RST != 0; 2];
            if flags & SYN != 0 {
                (self.settled, self.fins) = (false, [false; 2]);
            }
        }
        self.settled |= back == 1 && flags & (SYN | RST) == 0;
        if !self.is_closed() || self.first_reset_was_the_clients() {
            self.fins[back] |= flags & FIN != 0;
        }
        if !self.is_closed() {
            self.reset_by[back] |= flags & RST != 0;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn who_is_established_stays(
        steps in prop::collection::vec((0u8..16, 0u16..20, any::<bool>(), 0usize..6, 1u64..1 << 40), 1..600),
        late: Option<u64>,
    ) {
        let mut bench = on(late, || bench(MOST));
        let mut model: HashMap<(u8, u16), Known> = HashMap::new();
        let (mut sent, mut passed, mut dropped, mut strangers) = (0, 0, 0, 1000);
        for (action, who, is_tcp, flags, time) in steps {
            // Time stands still for no packet, and jumps now and then.
            bench.now += 20_000 + match action { 0 => time * 8, 1 => time / 100, _ => 0 };
            let proto = if is_tcp { TCP } else { UDP };
            let flags = if is_tcp { [ACK, SYN, ACK, FIN | ACK, RST, ACK][flags] } else { 0 };
            let now = bench.now;
            match action {
                2 => {
                    bench.balancer.tidy(now, who & 1 == 0);
                    continue;
                }
                3..=7 => {
                    // The server's packets: its own choice of flags, and SYN with ACK.
                    let Some(known) = model.get_mut(&(proto, who)) else { continue };
                    let flags = if flags & SYN != 0 { SYN | ACK } else { flags };
                    let is_known = bench.answer(proto, known.server, client(who), flags);
                    prop_assert!(is_known || !known.must_be_there(proto, now), "{known:?} is gone");
                    if is_known {
                        known.note(1, flags, now);
                    } else {
                        model.remove(&(proto, who));
                    }
                    (sent, passed) = (sent + 1, passed + 1);
                    continue;
                }
                _ => {}
            }
            // A client's packet: one of its connections, or a false sender's, who is never seen again.
            let who = if action < 11 { strangers += 1; strangers } else { who };
            let opened = bench.gauge("opened");
            let fate = bench.ask(proto, client(who), flags);
            sent += 1;
            let known = model.get(&(proto, who)).copied().unwrap_or_default();
            let must_be_there = known.must_be_there(proto, now);
            match fate {
                Ok(server) if bench.gauge("opened") > opened => {
                    prop_assert!(!must_be_there || known.is_closed() && flags & SYN != 0, "{known:?} is moved");
                    model.insert((proto, who), Known { server, last: now, ..Known::default() });
                }
                Ok(server) => {
                    prop_assert_eq!(server, known.server);
                    model.get_mut(&(proto, who)).expect("it was opened").note(0, flags, now);
                }
                Err("connection table full") => {
                    let safe = model.iter().filter(|((proto, _), known)| known.may_be_there(*proto, now)).count();
                    prop_assert!(!must_be_there && safe as i64 >= MOST, "refused beside {safe} established ones");
                    model.remove(&(proto, who));
                }
                Err(reason) => {
                    prop_assert_eq!(reason, "segment of no connection");
                    prop_assert!(!must_be_there && flags & (FIN | RST) != 0);
                    model.remove(&(proto, who));
                }
            }
            if fate.is_ok() { passed += 1 } else { dropped += 1 }
            let connections = bench.gauge("connections") as i64;
            let loads = bench.loads();
            prop_assert!(connections <= MOST && loads.iter().all(|load| *load >= 0));
            prop_assert!(loads.iter().sum::<i64>() <= connections, "{loads:?} of {connections}");
        }
        prop_assert_eq!(sent, passed + dropped);
        // When all is over, nothing is left behind.
        bench.now += 20_000 * SECOND;
        bench.wait(1);
        prop_assert_eq!((bench.gauge("connections"), bench.loads().iter().sum::<i64>()), (0, 0));
    }
}

/// A connection that is over is another one when its client comes back, though nobody has forgotten it yet: of its two ways one
/// may be gone.
#[test]
fn what_is_over_does_not_live_again() {
    let mut bench = bench(MOST);
    let server = bench.ask(TCP, client(1), SYN).unwrap();
    assert!(bench.answer(TCP, server, client(1), SYN | ACK));
    assert!(bench.answer(TCP, server, client(1), ACK));
    for (waits, opens) in [(7_000, 0), (10_000, 1)] {
        bench.now += waits * SECOND;
        let opened = bench.gauge("opened");
        let server = bench.ask(TCP, client(1), ACK).unwrap();
        assert_eq!(bench.gauge("opened") - opened, opens, "after {waits} s");
        assert!(bench.answer(TCP, server, client(1), ACK), "after {waits} s");
    }
    assert_eq!(bench.gauge("connections"), 1);
}
