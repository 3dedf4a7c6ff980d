//! What it takes to be established, and what somebody who forges a client's packets can do.

use super::hostile::{client, stranger, vip};
use super::*;
use catena_packet::random::SplitMix64;

const ISN: u32 = 0xffff_ffff;

/// A TCP segment with numbers and so many bytes of data; nobody checks its sum.
fn segment(src: SocketAddr, dst: SocketAddr, flags: u8, seq: u32, ack: u32, data: usize) -> Vec<u8> {
    let mut upper = vec![0; 20 + data];
    let mut header = tcp::Packet::new_unchecked(&mut upper[..]);
    header.set_header_len(20);
    header.set_src_port(src.port());
    header.set_dst_port(dst.port());
    header.set_flags(flags);
    header.set_seq(seq);
    header.set_ack(ack);
    network(6, src.ip(), dst.ip(), &upper, |_| {})
}

impl Bench {
    /// Send a segment by a gate; returns where it comes from and goes to when it leaves, or why it is dropped.
    fn send(&mut self, gate: u16, frame: &[u8]) -> Result<(SocketAddr, SocketAddr), &'static str> {
        let mut packet = self.packet(frame);
        match self.run(gate, &mut packet) {
            Verdict::Drop(reason) => Err(reason.text(balancer::REASONS)),
            Verdict::Gate(_) => {
                let key = FlowKey::read(packet.data(), &packet.layers()).unwrap();
                Ok((key.src(), key.dst()))
            }
        }
    }

    /// Open a connection as client and server do, without data. Returns the server, or why not.
    fn handshake(&mut self, client: SocketAddr) -> Result<SocketAddr, &'static str> {
        let server = self.send(0, &segment(client, vip(), SYN, 1, 0, 0))?.1;
        let answer = self.send(1, &segment(server, client, SYN | ACK, ISN, 2, 0))?;
        assert_eq!(answer, (vip(), client), "the answer comes from the virtual address");
        assert_eq!(self.send(0, &segment(client, vip(), ACK, 2, ISN.wrapping_add(1), 0))?.1, server);
        Ok(server)
    }
}

#[test]
fn servers_that_answer_forged_packets_establish_nothing() {
    on_engines(1, || {
        // What comes after the forged SYN and the server's answer: of the forger, and of the server.
        let challenged = [(0, ACK, 1 << 30, 8, 10), (1, ACK, 100, 8, 0)];
        let guessed = [(0, ACK, 8, 77, 10), (0, ACK, 8, 78, 10)];
        for rest in [challenged, guessed] {
            let backends = "10.0.0.1 10.0.0.2 10.0.0.3";
            let mut bench = Bench::new(&args("192.0.2.10:80", backends).with("max_connections", Value::Integer(2000)));
            let before: Vec<_> = (0..100).map(|i| bench.handshake(client(i)).unwrap()).collect();
            let mut random = SplitMix64::new(7);
            for _ in 0..20_000 {
                let from = stranger(&mut random);
                bench.now += 1000;
                let server = bench.send(0, &segment(from, vip(), SYN, 7, 0, 0)).expect("there is room").1;
                bench.send(1, &segment(server, from, SYN | ACK, 99, 8, 0)).unwrap();
                for (gate, flags, seq, ack, data) in rest {
                    let (src, dst) = if gate == 0 { (from, vip()) } else { (server, from) };
                    bench.send(gate, &segment(src, dst, flags, seq, ack, data)).unwrap();
                }
            }
            assert_eq!((100..750).filter(|&i| bench.handshake(client(i)).is_ok()).count(), 650);
            let opened = bench.gauge("opened");
            for (i, server) in (0..).zip(before) {
                let data = segment(client(i), vip(), ACK, 2, 3, 10);
                assert_eq!(bench.send(0, &data).unwrap().1, server, "an open connection keeps its server");
            }
            assert_eq!(bench.gauge("opened"), opened, "open connections are still known");
        }
    });
}

/// How long a connection is known, in s, after these packets: gate, flags, sequence, acknowledgement, data.
fn known_for(packets: &[(u16, u8, u32, u32, usize)]) -> u64 {
    let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1"));
    let server = "10.0.0.1:80".parse().unwrap();
    for &(gate, flags, seq, ack, data) in packets {
        let (src, dst) = if gate == 0 { (client(1), vip()) } else { (server, client(1)) };
        bench.send(gate, &segment(src, dst, flags, seq, ack, data)).unwrap();
    }
    let start = bench.now;
    while bench.gauge("connections") > 0 {
        bench.wait(10);
    }
    (bench.now - start) / SECOND
}

#[test]
fn only_proof_settles_a_connection() {
    on_engines(FEW, || {
        let (short, long) = (240..=320, 7440..=9320);
        let right = ISN.wrapping_add(1);
        let (syn, synack, ack) = ((0, SYN, 1, 0, 0), (1, SYN | ACK, ISN, 2, 0), (0, ACK, 2, right, 0));
        let cases: &[(&str, &[_], _)] = &[
            ("a forged ACK", &[(0, ACK, 1, 1, 10)], &short),
            ("a SYN and a forged ACK", &[syn, (0, ACK, 2, 1, 10)], &short),
            ("a server's SYN", &[syn, synack], &short),
            ("a wrong number", &[syn, synack, (0, ACK, 2, 1, 10)], &short),
            ("a number before it is known", &[syn, (0, ACK, 2, right, 0), synack], &short),
            ("a bare ACK of the server", &[syn, synack, (0, ACK, 9, 9, 10), (1, ACK, right, 2, 0)], &short),
            ("the same, an ACK before the SYN", &[(0, ACK, 9, 9, 0), syn, synack, (1, ACK, right, 2, 0)], &short),
            ("a RST of the server", &[(0, ACK, 1, 1, 10), (1, RST, 1, 0, 0)], &short),
            ("a handshake", &[syn, synack, ack], &long),
            ("a handshake, all twice", &[syn, syn, synack, synack, ack, ack], &long),
            ("data that acknowledge", &[syn, synack, (0, ACK, 2, right, 50)], &long),
            ("data of the server", &[syn, synack, (1, ACK, right, 2, 50)], &long),
            ("older than the balancer", &[(0, ACK, 1, 1, 10), (1, ACK, 1, 2, 0)], &long),
            ("FIN of the client", &[syn, synack, ack, (0, FIN | ACK, 2, right, 0)], &short),
            ("reset by the server", &[syn, synack, ack, (1, RST, 1, 2, 0)], &short),
            ("reset by the client", &[syn, synack, ack, (0, RST, 2, 0, 0)], &short),
            ("a false reset", &[syn, synack, ack, (0, RST, 2, 0, 0), (1, ACK, right, 2, 0)], &long),
            ("reset and half-open again", &[syn, synack, ack, (0, RST, 2, 0, 0), syn, synack], &short),
            ("reset and open again", &[syn, synack, ack, (0, RST, 2, 0, 0), syn, synack, ack], &long),
        ];
        for (name, packets, expected) in cases {
            let seconds = known_for(packets);
            assert!(expected.contains(&seconds), "{name}: {seconds} s");
        }
    });
}

#[test]
fn a_false_reset_moves_nobody() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1 10.0.0.2"));
        let one = client(1);
        let server = bench.handshake(one).unwrap();
        for forged in [RST, SYN] {
            assert_eq!(bench.send(0, &segment(one, vip(), forged, 9, 9, 0)).unwrap().1, server, "{forged}");
        }
        assert_eq!(bench.send(0, &segment(one, vip(), ACK, 2, 3, 10)).unwrap().1, server);
        assert_eq!(bench.loads(), [0, 0]);
        // The server goes on, so the connection does: it counts again.
        bench.send(1, &segment(server, one, ACK, 4, 2, 10)).unwrap();
        assert_eq!((bench.loads(), bench.gauge("opened")), (vec![1, 0], 1));
        // After a true one the client comes again with the same ports.
        bench.send(0, &segment(one, vip(), RST, 9, 9, 0)).unwrap();
        assert_eq!(bench.handshake(one), Ok(server));
        assert_eq!((bench.loads(), bench.gauge("opened")), (vec![1, 0], 2));
        // What the server has reset is over: a SYN is a new connection, to the server with the fewest.
        let second = bench.handshake(client(2)).unwrap();
        assert_ne!(second, server);
        bench.send(1, &segment(server, one, RST, 4, 2, 0)).unwrap();
        bench.handshake(client(3)).unwrap();
        assert_eq!(bench.loads(), [1, 1]);
        assert_eq!(bench.handshake(one), Ok(server));
        assert_eq!((bench.loads(), bench.gauge("opened")), (vec![2, 1], 5));
        // Nobody goes back to a server that is down.
        bench.send(0, &segment(one, vip(), RST, 9, 9, 0)).unwrap();
        bench.balancer.set_backend(1, false);
        assert_eq!(bench.handshake(one), Ok(second));
    });
}

#[test]
fn an_old_connection_gives_way_until_its_server_sends_data() {
    on_engines(FEW, || {
        // The balancer has forgotten the forged SYN, the server has not: it answers what does not fit with a bare ACK.
        for (data, expected) in [(0, Ok(())), (10, Err("connection table full"))] {
            let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1").with("max_connections", Value::Integer(1)));
            let server = bench.send(0, &segment(client(1), vip(), ACK, 1 << 30, 8, 0)).unwrap().1;
            bench.send(1, &segment(server, client(1), ACK, 100, 8, data)).unwrap();
            assert_eq!(bench.handshake(client(2)).map(|_| ()), expected);
        }
    });
}

#[test]
fn a_closed_connection_gives_way_whatever_is_forged_after() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1").with("max_connections", Value::Integer(1)));
        let server = bench.handshake(client(1)).unwrap();
        assert_eq!(bench.handshake(client(2)), Err("connection table full"));
        bench.send(0, &segment(client(1), vip(), FIN | ACK, 2, 0, 0)).unwrap();
        bench.send(1, &segment(server, client(1), FIN | ACK, 3, 3, 0)).unwrap();
        bench.send(0, &segment(client(1), vip(), RST, 9, 9, 0)).unwrap();
        bench.send(1, &segment(server, client(1), ACK, 4, 3, 0)).unwrap();
        assert_eq!(bench.loads(), [0]);
        assert_eq!(bench.handshake(client(2)), Ok(server));
    });
}
