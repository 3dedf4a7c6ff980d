//! The balancer under attack: what strangers who send from false addresses can do to those who really connect.

use super::*;
use crate::testing::craft;
use catena_packet::random::SplitMix64;

/// Return a sender that nobody owns: 11.0.0.0/8, any port.
pub(super) fn stranger(random: &mut SplitMix64) -> SocketAddr {
    let [_, b, c, d, e, f, ..] = random.bits().to_be_bytes();
    SocketAddr::new([11, b, c, d].into(), u16::from_be_bytes([e, f]).max(1))
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

pub(super) fn vip() -> SocketAddr {
    "192.0.2.10:80".parse().unwrap()
}

pub(super) fn client(number: u16) -> SocketAddr {
    SocketAddr::new([7, 0, (number >> 8) as u8, number as u8].into(), 4000)
}

fn server(number: u16) -> SocketAddr {
    SocketAddr::new([10, 0, 0, number as u8].into(), 8080)
}

pub(super) fn bench(most: i64) -> Bench {
    let backends = "10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080";
    Bench::new(&args("192.0.2.10:80", backends).with("max_connections", Value::Integer(most)))
}

impl Bench {
    /// Send a packet to the VIP; returns the number of the server it goes to, or why it is dropped.
    pub(super) fn ask(&mut self, proto: u8, from: SocketAddr, flags: u8) -> Result<u16, &'static str> {
        let mut packet = self.packet(&frame(proto, from, vip(), flags));
        match self.run(0, &mut packet) {
            Verdict::Gate(_) => Ok(self.slot.get(&packet)),
            Verdict::Drop(reason) => Err(reason.text(balancer::REASONS)),
        }
    }

    /// Send a server's packet back; returns whether it leaves with the VIP's address.
    pub(super) fn answer(&mut self, proto: u8, from: u16, to: SocketAddr, flags: u8) -> bool {
        let mut packet = self.packet(&frame(proto, server(from), to, flags));
        assert_eq!(self.run(1, &mut packet), Verdict::Gate(1));
        let layers = packet.layers();
        FlowKey::read(packet.data(), &layers).unwrap().src() == vip()
    }

    /// Open a connection as a client and a server do, up to the first data both ways.
    pub(super) fn connect(&mut self, from: SocketAddr) -> Result<u16, &'static str> {
        let number = self.ask(TCP, from, SYN)?;
        assert!(self.answer(TCP, number, from, SYN | ACK), "{from}: the server's answer is its own");
        for _ in 0..2 {
            assert_eq!(self.ask(TCP, from, ACK), Ok(number), "{from} is moved");
        }
        assert!(self.answer(TCP, number, from, ACK));
        Ok(number)
    }

    pub(super) fn gauge(&self, name: &str) -> u64 {
        let mut found = 0;
        self.balancer.gauges(&mut |gauge, value| found = if gauge == name { value } else { found });
        found
    }
}

/// Two million packets: on the local engine alone.
#[test]
fn false_acks_and_syns_refuse_nobody() {
    for flags in [ACK, SYN] {
        let mut bench = bench(1024);
        let mut random = SplitMix64::new(7);
        let early: Vec<_> = (0..300).map(|i| bench.connect(client(i)).expect("there is room")).collect();
        for i in 0..1_000_000 {
            bench.now += 1000;
            assert!(bench.ask(TCP, stranger(&mut random), flags).is_ok());
            if i % 32 == 0 {
                bench.balancer.tidy(bench.now, false);
            }
        }
        assert_eq!(bench.gauge("connections"), 1024);
        let late: Vec<_> = (300..950).map(|i| bench.connect(client(i))).collect();
        let served = late.iter().filter(|number| number.is_ok()).count();
        assert_eq!(served, 650, "{:?}", late.iter().find(|number| number.is_err()));
        for i in 0..100_000 {
            bench.now += 1000;
            _ = bench.ask(TCP, stranger(&mut random), flags);
            if i % 32 == 0 {
                bench.balancer.tidy(bench.now, false);
            }
        }
        for (i, number) in (0..).zip(early.into_iter().map(Ok).chain(late)) {
            assert_eq!(bench.ask(TCP, client(i), ACK), number, "connection {i} stays with its server");
            assert!(bench.answer(TCP, number.unwrap(), client(i), ACK));
        }
        assert_eq!(bench.loads().iter().sum::<i64>(), 1024, "who was evicted is off his server's count");
    }
}

#[test]
fn handshakes_in_the_middle_of_a_flood_come_through() {
    on_engines(1, || {
        // Each client waits for 200 packets of the flood between any two of its own.
        let mut bench = bench(3800);
        let mut random = SplitMix64::new(8);
        let mut servers = vec![0; 650];
        for step in 0..4 {
            for i in 0..650u16 {
                let number = &mut servers[usize::from(i)];
                match step {
                    0 => *number = bench.ask(TCP, client(i), SYN).expect("served"),
                    1 => assert!(bench.answer(TCP, *number, client(i), SYN | ACK)),
                    2 => assert_eq!(bench.ask(TCP, client(i), ACK), Ok(*number)),
                    _ => assert!(bench.answer(TCP, *number, client(i), ACK)),
                }
                if i % 13 == 0 {
                    (0..20).for_each(|_| _ = bench.ask(TCP, stranger(&mut random), SYN));
                }
            }
        }
        (0..100_000).for_each(|_| _ = bench.ask(TCP, stranger(&mut random), SYN));
        assert!((0..650).all(|i| bench.ask(TCP, client(i), ACK) == Ok(servers[usize::from(i)])));
    });
}

#[test]
fn one_way_udp_refuses_nobody() {
    on_engines(1, || {
        let mut bench = bench(64);
        let mut random = SplitMix64::new(9);
        let early = bench.connect(client(0)).expect("there is room");
        for _ in 0..100_000 {
            assert!(bench.ask(UDP, stranger(&mut random), 0).is_ok());
        }
        (1..64).for_each(|i| _ = bench.connect(client(i)).expect("served"));
        assert_eq!(bench.ask(TCP, client(0), ACK), Ok(early));
        // Only established connections are left: now the table is full.
        assert_eq!(bench.ask(UDP, stranger(&mut random), 0), Err("connection table full"));
        assert_eq!(bench.loads().iter().sum::<i64>(), 64);
    });
}

#[test]
fn a_flood_of_one_ip_version_refuses_nobody_of_the_other() {
    on_engines(FEW, || {
        let both =
            args("192.0.2.10:80 [2001:db8::10]:80", "10.0.0.1 fd00::1").with("max_connections", Value::Integer(64));
        let mut bench = Bench::new(&both);
        let mut random = SplitMix64::new(10);
        (0..1000).for_each(|_| assert!(bench.ask(TCP, stranger(&mut random), SYN).is_ok()));
        for round in 0..2 {
            for port in 1..=30 {
                let says = bench.say(0, &format!("tcp [2001:db8::7]:{port} > [2001:db8::10]:80 S"));
                assert_eq!(says, format!("tcp [2001:db8::7]:{port} > [fd00::1]:80 S #2"), "round {round}");
            }
        }
        assert_eq!((bench.gauge("connections"), bench.gauge("opened")), (64, 1030));
    });
}

#[test]
fn only_the_server_settles_a_connection() {
    on_engines(FEW, || {
        let mut bench = bench(100);
        // Whatever the client sends, after five quarters of 240 s it is forgotten; the answered one is not.
        let answered = bench.connect(client(0)).unwrap();
        for (i, flags) in (1..).zip([[SYN, ACK], [ACK, ACK], [SYN, SYN]]) {
            assert!(flags.iter().all(|flags| bench.ask(TCP, client(i), *flags).is_ok()));
        }
        // A SYN that is answered by a SYN alone may have a false source too.
        let number = bench.ask(TCP, client(9), SYN).unwrap();
        assert!(bench.answer(TCP, number, client(9), SYN | ACK));
        assert_eq!(bench.gauge("connections"), 5);
        bench.wait(301);
        bench.wait(1);
        assert_eq!(bench.gauge("connections"), 1);
        assert_eq!(bench.ask(TCP, client(0), ACK), Ok(answered));
    });
}

#[test]
fn without_a_return_direction_the_clients_packets_keep_a_connection() {
    on_engines(FEW, || {
        let mut bench = bench(100);
        let servers: Vec<_> = (0..100).map(|i| bench.ask(TCP, client(i), SYN).unwrap()).collect();
        for _ in 0..50 {
            bench.wait(200);
            for (i, number) in (0..).zip(&servers) {
                assert_eq!(bench.ask(TCP, client(i), ACK), Ok(*number));
            }
        }
        assert_eq!((bench.gauge("opened"), bench.gauge("evicted")), (100, 0));
    });
}

#[test]
fn what_has_expired_goes_before_anybody_is_refused() {
    on_engines(FEW, || {
        // Nobody swept between: the time jumps, and the packet comes at once.
        let mut bench = bench(64);
        (0..64).for_each(|i| _ = bench.connect(client(i)).unwrap());
        assert_eq!(bench.ask(UDP, client(64), 0), Err("connection table full"));
        bench.now += 9400 * SECOND;
        for i in 100..164 {
            assert!(bench.ask(UDP, client(i), 0).is_ok(), "client {i}");
        }
        assert_eq!(bench.gauge("evicted"), 0);
    });
}

#[test]
fn a_client_that_opens_again_and_again_fills_nothing() {
    on_engines(1, || {
        // Each SYN after a RST goes to another server: the ways back that it leaves must not add up.
        let backends: Vec<String> = (1..=200).map(|n| format!("10.0.1.{n}")).collect();
        let args = args("192.0.2.10:80", &backends.join(" ")).with("max_connections", Value::Integer(8));
        let mut bench = Bench::new(&args);
        for port in 1..=60 {
            for _ in 0..400 {
                let from = SocketAddr::new([7, 0, 0, 1].into(), port);
                assert!(bench.ask(TCP, from, SYN).is_ok());
                assert!(bench.ask(TCP, from, RST).is_ok());
            }
        }
        assert!(bench.ask(TCP, client(1), SYN).is_ok());
    });
}

/// A fragment of a datagram from a client: the first, or a later one.
fn fragment(from: SocketAddr, ident: u16, offset: u16) -> Vec<u8> {
    let mut upper = [0; 24];
    upper[..2].copy_from_slice(&from.port().to_be_bytes());
    upper[2..4].copy_from_slice(&80u16.to_be_bytes());
    upper[5] = 44;
    network(UDP, from.ip(), vip().ip(), &upper, |ip| {
        ip.set_ident(ident);
        ip.set_fragment(false, offset == 0, offset);
    })
}

#[test]
fn fragments_of_some_leave_room_for_others() {
    on_engines(1, || {
        let mut bench = bench(100_000);
        let mut random = SplitMix64::new(11);
        let served = |bench: &mut Bench, i: u16| {
            [0, 24].map(|offset| {
                let mut packet = bench.packet(&fragment(client(i), 5, offset));
                bench.run(0, &mut packet)
            }) == [Verdict::Gate(0); 2]
        };
        // One sender with many datagrams.
        for ident in 0..20_000 {
            let mut packet = bench.packet(&fragment(client(999), ident, 0));
            assert_eq!(bench.run(0, &mut packet), Verdict::Gate(0));
        }
        assert!((0..60).all(|i| served(&mut bench, i)));
        // Any number of false senders: those whom a server has answered keep half of the table.
        for i in 60..160 {
            let number = bench.ask(UDP, client(i), 0).unwrap();
            assert!(bench.answer(UDP, number, client(i), 0));
        }
        for _ in 0..20_000 {
            let mut packet = bench.packet(&fragment(stranger(&mut random), 1, 0));
            assert_eq!(bench.run(0, &mut packet), Verdict::Gate(0));
        }
        let lost: Vec<_> = (60..160).filter(|&i| !served(&mut bench, i)).collect();
        assert_eq!(lost, [0u16; 0]);
        // What is over makes room, whether or not somebody swept between.
        bench.now += 60 * SECOND;
        let lost: Vec<_> = (200..260).filter(|&i| !served(&mut bench, i)).collect();
        assert_eq!(lost, [0u16; 0]);
    });
}

#[test]
fn a_subnet_of_ipv6_has_the_part_of_one_client() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("2001:db8:5::1", "2001:db8:9::1"));
        let mut run = |i: u16, rest: &str| {
            let line = match rest {
                "first" => format!("udp [2001:db8:1::{i:x}]:4000 > [2001:db8:5::1]:80 len 120 id 5 first"),
                _ => format!("ip 2001:db8:1::{i:x} > 2001:db8:5::1 proto 17 len 8 id 5 later 128"),
            };
            let mut packet = bench.packet(&craft(&line));
            bench.run(0, &mut packet)
        };
        assert!((0..1000).all(|i| run(i, "first") == Verdict::Gate(0)));
        assert_eq!((0..1000).filter(|i| run(*i, "later") == Verdict::Gate(0)).count(), 128);
    });
}
