//! Clients of protocols in which an answer proves nothing: a server answers pings and questions whoever seems to send
//! them, so that a false sender gets an answer too.

use super::hostile::{TCP, UDP, client, vip};
use super::*;
use crate::testing::craft;

const SCTP: u8 = 132;
const MOST: i64 = 1000;

// Chunks of SCTP (RFC 9260 §3.2).
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const HEARTBEAT_ACK: u8 = 5;
const ABORT: u8 = 6;
const ERROR: u8 = 9;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;

/// False senders, none of them twice.
struct Strangers(u32);

impl Strangers {
    fn next(&mut self) -> SocketAddr {
        self.0 += 1;
        let [_, b, c, d] = self.0.to_be_bytes();
        SocketAddr::new([11, b, c, d].into(), 4000)
    }
}

/// Every protocol to one address.
fn bench() -> Bench {
    let most = Value::Integer(MOST);
    Bench::new(&args("192.0.2.10", "10.0.0.1 10.0.0.2 10.0.0.3").with("max_connections", most))
}

/// An SCTP packet of one chunk.
fn sctp(src: SocketAddr, dst: SocketAddr, chunk: u8) -> Vec<u8> {
    let ports = [src.port().to_be_bytes(), dst.port().to_be_bytes()].concat();
    let upper = [&ports[..], &[0; 8], &[chunk, 0, 0, 8, 0, 0, 0, 9]].concat();
    network(SCTP, src.ip(), dst.ip(), &upper, |_| {})
}

fn ping(src: SocketAddr, dst: SocketAddr, kind: &str) -> Vec<u8> {
    craft(&format!("icmp {} > {} {kind} {}", src.ip(), dst.ip(), src.port().max(dst.port())))
}

impl Bench {
    /// Send a packet to the VIP. Returns the server that it goes to, or why it is dropped.
    fn forward(&mut self, frame: &[u8]) -> Result<SocketAddr, &'static str> {
        let mut packet = self.packet(frame);
        match self.run(0, &mut packet) {
            Verdict::Drop(reason) => Err(reason.text(balancer::REASONS)),
            Verdict::Gate(_) => {
                let address = ipv4::Packet::new_checked(&packet.data()[14..]).unwrap().dst();
                Ok(SocketAddr::new(address.into(), vip().port()))
            }
        }
    }

    fn back(&mut self, frame: &[u8]) {
        let mut packet = self.packet(frame);
        assert_eq!(self.run(1, &mut packet), Verdict::Gate(1));
        let source = ipv4::Packet::new_checked(&packet.data()[14..]).unwrap().src();
        assert_eq!(IpAddr::from(source), vip().ip(), "the answer comes from the virtual address");
    }

    /// Associate as client and server do (RFC 9260 §5.1).
    fn associate(&mut self, client: SocketAddr) -> Result<SocketAddr, &'static str> {
        let server = self.forward(&sctp(client, vip(), INIT))?;
        self.back(&sctp(server, client, INIT_ACK));
        assert_eq!(self.forward(&sctp(client, vip(), COOKIE_ECHO)), Ok(server));
        self.back(&sctp(server, client, COOKIE_ACK));
        Ok(server)
    }

    /// Send so many packets from false sources, each of which the server answers 100 packets later.
    fn flood(&mut self, strangers: &mut Strangers, count: usize, kind: &str) {
        let mut due = std::collections::VecDeque::new();
        for _ in 0..count {
            self.now += 1000;
            let from = strangers.next();
            let question = match kind {
                "ping" => ping(from, vip(), "echo"),
                "udp" => frame(UDP, from, vip(), 0),
                _ => sctp(from, vip(), INIT),
            };
            due.push_back((from, self.forward(&question).expect("there is room")));
            if due.len() > 100 {
                let (to, server) = due.pop_front().unwrap();
                self.back(&match kind {
                    "ping" => ping(server, to, "reply"),
                    "udp" => frame(UDP, server, to, 0),
                    "sctp refused" => sctp(server, to, ABORT),
                    _ => sctp(server, to, INIT_ACK),
                });
            }
        }
    }
}

#[test]
fn answered_floods_from_false_sources_refuse_nobody() {
    on_engines(1, || {
        for kind in ["ping", "udp", "sctp refused", "sctp invited"] {
            let (mut bench, mut strangers) = (bench(), Strangers(0));
            let first = bench.associate(client(0)).unwrap();
            for i in 1..100 {
                bench.flood(&mut strangers, 500, kind);
                assert!(bench.associate(client(i)).is_ok(), "{kind}: SCTP, client {i}");
                let from = client(1000 + i);
                let server = bench.ask(TCP, from, SYN).unwrap_or_else(|why| panic!("{kind}: TCP, client {i}: {why}"));
                let server = SocketAddr::new([10, 0, 0, server as u8].into(), 80);
                // As long as that from SYN to proof, with as much of the flood between.
                bench.flood(&mut strangers, 500, kind);
                bench.back(&frame(TCP, server, from, ACK));
            }
            assert_eq!(bench.gauge("connections"), MOST as u64);
            let opened = bench.gauge("opened");
            assert_eq!(bench.forward(&sctp(client(0), vip(), DATA)), Ok(first), "{kind}");
            for i in 1..100 {
                assert!(bench.forward(&sctp(client(i), vip(), DATA)).is_ok());
                assert!(bench.ask(TCP, client(1000 + i), ACK).is_ok());
            }
            assert_eq!(bench.gauge("opened"), opened, "{kind}: who has shown himself is still known");
        }
    });
}

/// Whether an SCTP connection keeps its place in a table of one, after these chunks: by whom, and which.
fn is_settled(chunks: &[(u16, u8)]) -> bool {
    let most = Value::Integer(1);
    let mut bench = Bench::new(&args("192.0.2.10", "10.0.0.1").with("max_connections", most));
    let server = SocketAddr::new([10, 0, 0, 1].into(), 80);
    for &(gate, chunk) in chunks {
        match gate {
            0 => _ = bench.forward(&sctp(client(1), vip(), chunk)).unwrap(),
            _ => bench.back(&sctp(server, client(1), chunk)),
        }
    }
    bench.forward(&sctp(client(2), vip(), INIT)) == Err("connection table full")
}

#[test]
fn only_what_a_server_sends_in_an_association_settles_sctp() {
    on_engines(FEW, || {
        let invited = [(0, INIT), (1, INIT_ACK)];
        for (name, rest, expected) in [
            ("the server's INIT ACK", &[][..], false),
            ("a forged cookie", &[(0, COOKIE_ECHO)], false),
            ("a forged cookie, and what the server says of it", &[(0, COOKIE_ECHO), (1, ERROR)], false),
            ("an ABORT of the true owner of the address", &[(0, ABORT), (1, ABORT)], false),
            ("forged data", &[(0, DATA), (1, ABORT), (0, DATA)], false),
            ("a cookie that the server takes", &[(0, COOKIE_ECHO), (1, COOKIE_ACK)], true),
        ] {
            assert_eq!(is_settled(&[&invited[..], rest].concat()), expected, "{name}");
        }
        for chunk in [DATA, SACK, HEARTBEAT_ACK] {
            assert!(is_settled(&[(0, DATA), (1, chunk)]), "older than the balancer: chunk {chunk}");
        }
    });
}

/// In a full table those go first that no server has answered for longest.
#[test]
fn an_answer_sends_to_the_end_of_the_line() {
    on_engines(FEW, || {
        let (mut bench, mut strangers) = (bench(), Strangers(0));
        let servers: Vec<SocketAddr> =
            (0..500).map(|i| bench.forward(&frame(UDP, client(i), vip(), 0)).unwrap()).collect();
        let flood = |bench: &mut Bench, strangers: &mut Strangers, count: usize| {
            (0..count).for_each(|_| _ = bench.forward(&frame(UDP, strangers.next(), vip(), 0)).unwrap());
        };
        flood(&mut bench, &mut strangers, 500);
        // The table is full. Those answered have 500 others before them in the line, whoever was first.
        for (i, server) in (0..250).zip(&servers) {
            bench.back(&frame(UDP, *server, client(i), 0));
        }
        flood(&mut bench, &mut strangers, 750);
        let opened = bench.gauge("opened");
        (0..250).for_each(|i| _ = bench.forward(&frame(UDP, client(i), vip(), 0)).unwrap());
        assert_eq!(bench.gauge("opened"), opened, "those answered are known");
        (250..500).for_each(|i| _ = bench.forward(&frame(UDP, client(i), vip(), 0)).unwrap());
        assert_eq!(bench.gauge("opened"), opened + 250, "the others are not");
    });
}
