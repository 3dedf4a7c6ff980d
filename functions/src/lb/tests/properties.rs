//! What must hold under any traffic.

use super::*;

/// A connection as the model knows it.
#[derive(Clone, Copy, Debug)]
struct Live {
    server: u16,
    /// FIN was seen on the way out, and back.
    fins: [bool; 2],
    settled: bool,
}

/// What the balancer should know, kept the plain way, by client port and whether IPv6 and TCP.
#[derive(Default)]
struct Model {
    live: HashMap<(u16, bool, bool), Live>,
    /// Those that the client has reset: only the server knows whether it was the client.
    cut: HashMap<(u16, bool, bool), Live>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_must_hold_under_any_traffic(
        steps in prop::collection::vec((1u16..40, any::<bool>(), any::<bool>(), 0u8..12, 0u16..6), 1..400),
        hash: bool,
        late: Option<u64>,
    ) {
        let method = if hash { "consistent_hash" } else { "least_connections" };
        let backends = "10.0.0.1:81 10.0.0.2 10.0.0.3:81 [fd00::1]:81 [fd00::2]:81 fd00::3";
        let args = args("192.0.2.10:80 [2001:db8::10]:80", backends);
        let args = args.with("method", Value::Word(method.to_owned()));
        let mut bench = on(late, || Bench::new(&args));
        let mut model = Model::default();
        let mut up = [true; 6];
        let (ips, plain) = (["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2", "fd00::3"], [2, 6]);
        for (port, v6, is_tcp, action, backend) in steps {
            let key = (port, v6, is_tcp);
            let (client, vip): (IpAddr, IpAddr) = if v6 {
                ("2001:db8::7".parse().unwrap(), "2001:db8::10".parse().unwrap())
            } else {
                ("7.0.0.1".parse().unwrap(), "192.0.2.10".parse().unwrap())
            };
            let (client, vip) = (SocketAddr::new(client, port), SocketAddr::new(vip, 80));
            let proto = if is_tcp { 6 } else { 17 };
            let address = |number: u16| {
                let port = if plain.contains(&number) { 80 } else { 81 };
                SocketAddr::new(ips[usize::from(number) - 1].parse().unwrap(), port)
            };
            let live = model.live.get(&key).copied();
            match action {
                // A packet out: data, or with FIN or RST.
                0..=6 => {
                    let flags = match action { 4 => FIN | ACK, 5 => RST, 6 => SYN, _ => ACK };
                    let flags = if is_tcp { flags } else { 0 };
                    let mut packet = bench.packet(&frame(proto, client, vip, flags));
                    let known = live.filter(|_| flags != 0 || !is_tcp);
                    let before = bench.loads();
                    let verdict = bench.run(0, &mut packet);
                    match (verdict, known) {
                        (Verdict::Gate(gate), known) => {
                            prop_assert_eq!(gate, 0);
                            check_sums(packet.data());
                            let number = bench.slot.get(&packet);
                            let layers = packet.layers();
                            let dst = FlowKey::read(packet.data(), &layers).unwrap().dst();
                            prop_assert_eq!(dst, address(number));
                            match known {
                                Some(Live { server, .. }) => prop_assert_eq!(number, server, "affinity"),
                                None => {
                                    // A closed connection's last packets still go where it went, and open nothing.
                                    let opens = bench.loads().iter().sum::<i64>() > before.iter().sum::<i64>();
                                    let cut = model.cut.get(&key).copied();
                                    let is_kept = cut.filter(|cut| up[usize::from(cut.server) - 1] || flags & SYN == 0);
                                    if let Some(cut) = is_kept {
                                        prop_assert_eq!(number, cut.server, "affinity after a reset");
                                        prop_assert!(!opens || !cut.settled && flags & SYN != 0, "its server must say so");
                                    }
                                    if opens {
                                        prop_assert!(up[usize::from(number) - 1], "a new connection to a server that is down");
                                        if !hash && is_kept.is_none() {
                                            let family = if v6 { 3..6 } else { 0..3 };
                                            let least = family.filter(|&i| up[i]).map(|i| before[i]).min().unwrap();
                                            prop_assert_eq!(before[usize::from(number) - 1], least);
                                        }
                                        model.cut.remove(&key);
                                        model.live.insert(key, Live { server: number, fins: [false; 2], settled: false });
                                    }
                                }
                            }
                        }
                        (Verdict::Drop(reason), known) => {
                            prop_assert!(known.is_none() && (reason == NO_BACKEND || reason == NO_CONNECTION));
                            let family = if v6 { 3..6 } else { 0..3 };
                            prop_assert!(reason != NO_BACKEND || up[family] == [false; 3], "no backend is up");
                            prop_assert!(reason != TABLE_FULL);
                        }
                    }
                    if let Some(cut) = model.cut.get_mut(&key) {
                        cut.fins[0] |= flags & FIN != 0;
                        if cut.fins == [true; 2] { model.cut.remove(&key); }
                    }
                    if let Some(state) = model.live.get_mut(&key) {
                        state.fins[0] |= flags & FIN != 0;
                        if flags & RST != 0 { model.cut.insert(key, *state); }
                        if flags & RST != 0 || state.fins == [true; 2] { model.live.remove(&key); }
                    }
                }
                // A packet back from the server it has.
                7..=9 => {
                    let Some(Live { server, .. }) = live.or(model.cut.get(&key).copied()) else { continue };
                    let flags = match action { 8 => FIN | ACK, 9 => SYN | ACK, _ => ACK };
                    let flags = if is_tcp { flags } else { 0 };
                    let mut packet = bench.packet(&frame(proto, address(server), client, flags));
                    prop_assert_eq!(bench.run(1, &mut packet), Verdict::Gate(1));
                    check_sums(packet.data());
                    let layers = packet.layers();
                    let words = FlowKey::read(packet.data(), &layers).unwrap();
                    prop_assert_eq!((words.src(), words.dst()), (vip, client), "the way back restores the address");
                    // What the server sends after a reset shows that the connection lives, or that there is another.
                    if let Some(cut) = model.cut.remove(&key) {
                        let anew = Live { fins: [false; 2], settled: false, ..cut };
                        model.live.insert(key, if flags & SYN != 0 { anew } else { cut });
                    }
                    let state = model.live.get_mut(&key).unwrap();
                    state.settled |= flags & SYN == 0;
                    state.fins[1] |= flags & FIN != 0;
                    if state.fins == [true; 2] { model.live.remove(&key); }
                }
                10 => {
                    let is_up = up[usize::from(backend)];
                    up[usize::from(backend)] = !is_up;
                    prop_assert!(bench.balancer.set_backend(backend + 1, !is_up));
                }
                _ if port < 4 => {
                    bench.wait(10_000);
                    model.live.clear();
                    model.cut.clear();
                }
                _ => bench.wait(1),
            }
            let mut counts = vec![0i64; 6];
            model.live.values().for_each(|live| counts[usize::from(live.server) - 1] += 1);
            prop_assert_eq!(bench.loads(), counts, "loads are the live connections");
        }
    }

    /// Whatever arrives, by whatever gate: no panic.
    #[test]
    fn any_bytes_are_survived(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40), kinds: [u8; 40], late: Option<u64>) {
        let mut bench = on(late, || Bench::new(&args("192.0.2.10 2001:db8::10", "10.0.0.1 fd00::1")));
        for (mut bytes, kind) in frames.into_iter().zip(kinds) {
            let good = frame(if kind & 1 == 0 { 6 } else { 17 },
                if kind & 2 == 0 { "7.0.0.1:1" } else { "[2001:db8::7]:1" }.parse().unwrap(),
                if kind & 2 == 0 { "192.0.2.10:80" } else { "[2001:db8::10]:80" }.parse().unwrap(), kind);
            let keep = bytes.len().min(good.len());
            for (i, byte) in bytes.iter_mut().take(keep).enumerate() {
                if *byte > 16 || i < 14 { *byte = good[i]; }
            }
            bytes.extend(&good[keep..]);
            let mut packet = bench.packet(&bytes);
            if packet.parse().is_ok() {
                bench.run(u16::from(kind >> 7), &mut packet);
            }
        }
    }
}
