//! What the balancer does with packets, step by step.

use super::*;

#[test]
fn connections_go_to_the_server_with_the_fewest() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1:8080 10.0.0.2:8080"));
        golden(
            &mut bench,
            "out: tcp 7.0.0.1:1000 > 192.0.2.10:80 S    => tcp 7.0.0.1:1000 > 10.0.0.1:8080 S #1
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 S    => tcp 7.0.0.1:1001 > 10.0.0.2:8080 S #2
         back: tcp 10.0.0.1:8080 > 7.0.0.1:1000 SA  => tcp 192.0.2.10:80 > 7.0.0.1:1000 SA #1
         back: tcp 10.0.0.2:8080 > 7.0.0.1:1001 SA  => tcp 192.0.2.10:80 > 7.0.0.1:1001 SA #2
         out: tcp 7.0.0.1:1000 > 192.0.2.10:80 A    => tcp 7.0.0.1:1000 > 10.0.0.1:8080 A #1
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 FA   => tcp 7.0.0.1:1001 > 10.0.0.2:8080 FA #2
         back: tcp 10.0.0.2:8080 > 7.0.0.1:1001 FA  => tcp 192.0.2.10:80 > 7.0.0.1:1001 FA #2
         out: tcp 7.0.0.1:1001 > 192.0.2.10:80 A    => tcp 7.0.0.1:1001 > 10.0.0.2:8080 A #2
         out: tcp 7.0.0.1:1002 > 192.0.2.10:80 S    => tcp 7.0.0.1:1002 > 10.0.0.2:8080 S #2
         out: udp 7.0.0.1:1000 > 192.0.2.10:80      => udp 7.0.0.1:1000 > 10.0.0.1:8080 #1
         out: tcp 7.0.0.1:1000 > 192.0.2.10:443 S   => tcp 7.0.0.1:1000 > 192.0.2.10:443 S
         out: tcp 7.0.0.1:1000 > 9.9.9.9:80 S       => tcp 7.0.0.1:1000 > 9.9.9.9:80 S
         back: tcp 10.0.0.1:22 > 7.0.0.1:1000 SA    => tcp 10.0.0.1:22 > 7.0.0.1:1000 SA
         out: tcp 7.0.0.1:1009 > 192.0.2.10:80 R    => dropped: segment of no connection",
        );
        assert_eq!(bench.loads(), [2, 1]);
        assert!(bench.balancer.backends().all(|b| b.bytes > 100));
    });
}

#[test]
fn both_ip_versions_behind_addresses_without_a_port() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10 2001:db8::10", "10.0.0.1 fd00::1 [fd00::2]:53"));
        golden(
            &mut bench,
            "out: udp 7.0.0.1:1000 > 192.0.2.10:53              => udp 7.0.0.1:1000 > 10.0.0.1:53 #1
         out: udp [2001:db8::7]:5 > [2001:db8::10]:99       => udp [2001:db8::7]:5 > [fd00::1]:99 #2
         out: tcp [2001:db8::7]:6 > [2001:db8::10]:99 S     => tcp [2001:db8::7]:6 > [fd00::2]:53 S #3
         back: udp [fd00::1]:99 > [2001:db8::7]:5           => udp [2001:db8::10]:99 > [2001:db8::7]:5 #2
         back: tcp [fd00::2]:53 > [2001:db8::7]:6 SA        => tcp [2001:db8::10]:99 > [2001:db8::7]:6 SA #3
         back: tcp [fd00::2]:53 > [2001:db8::7]:7 SA        => tcp [fd00::2]:53 > [2001:db8::7]:7 SA",
        );
    });
}

#[test]
fn a_server_that_is_down_gets_no_new_connections() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1 10.0.0.2"));
        golden(&mut bench, "out: tcp 7.0.0.1:1 > 192.0.2.10:80 S => tcp 7.0.0.1:1 > 10.0.0.1:80 S #1");
        let number = bench.balancer.backend("10.0.0.1".parse().unwrap(), None);
        assert_eq!(number, Some(1));
        assert!(bench.balancer.set_backend(1, false) && !bench.balancer.set_backend(3, false));
        golden(
            &mut bench,
            "out: tcp 7.0.0.1:2 > 192.0.2.10:80 S => tcp 7.0.0.1:2 > 10.0.0.2:80 S #2
         out: tcp 7.0.0.1:3 > 192.0.2.10:80 S => tcp 7.0.0.1:3 > 10.0.0.2:80 S #2
         out: tcp 7.0.0.1:1 > 192.0.2.10:80 A => tcp 7.0.0.1:1 > 10.0.0.1:80 A #1",
        );
        bench.balancer.set_backend(2, false);
        golden(&mut bench, "out: tcp 7.0.0.1:4 > 192.0.2.10:80 S => dropped: no backend up");
        assert_eq!(bench.loads(), [1, 2]);
    });
}

#[test]
fn without_draining_connections_move() {
    on_engines(FEW, || {
        for method in ["least_connections", "consistent_hash"] {
            let args = args("192.0.2.10:80", "10.0.0.1 10.0.0.2").with("drain", Value::Bool(false));
            let mut bench = Bench::new(&args.with("method", Value::Word(method.to_owned())));
            bench.balancer.set_backend(2, false);
            golden(
                &mut bench,
                "out: tcp 7.0.0.1:1 > 192.0.2.10:80 S  => tcp 7.0.0.1:1 > 10.0.0.1:80 S #1
             out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.1:80 A #1",
            );
            bench.balancer.set_backend(2, true);
            bench.balancer.set_backend(1, false);
            golden(
                &mut bench,
                "out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.2:80 A #2
             back: tcp 10.0.0.2:80 > 7.0.0.1:1 A   => tcp 192.0.2.10:80 > 7.0.0.1:1 A #2
             out: tcp 7.0.0.1:1 > 192.0.2.10:80 A  => tcp 7.0.0.1:1 > 10.0.0.2:80 A #2",
            );
            assert_eq!(bench.loads(), [0, 1]);
            bench.balancer.set_backend(2, false);
            golden(&mut bench, "out: tcp 7.0.0.1:1 > 192.0.2.10:80 A => dropped: no backend up");
            assert_eq!(bench.loads(), [0, 0]);
        }
    });
}

#[test]
fn the_table_has_an_end() {
    on_engines(FEW, || {
        let args = args("192.0.2.10:80", "10.0.0.1").with("max_connections", Value::Integer(2));
        let mut bench = Bench::new(&args);
        let script = "out: tcp 7.0.0.1:1 > 192.0.2.10:80 S => tcp 7.0.0.1:1 > 10.0.0.1:80 S #1
                  back: tcp 10.0.0.1:80 > 7.0.0.1:1 A => tcp 192.0.2.10:80 > 7.0.0.1:1 A #1
                  out: tcp 7.0.0.1:2 > 192.0.2.10:80 S => tcp 7.0.0.1:2 > 10.0.0.1:80 S #1
                  back: tcp 10.0.0.1:80 > 7.0.0.1:2 A => tcp 192.0.2.10:80 > 7.0.0.1:2 A #1
                  out: tcp 7.0.0.1:3 > 192.0.2.10:80 S => dropped: connection table full
                  out: tcp 7.0.0.1:1 > 192.0.2.10:80 A => tcp 7.0.0.1:1 > 10.0.0.1:80 A #1";
        golden(&mut bench, script);
        bench.wait(9301);
        assert_eq!(bench.loads(), [0], "forgotten after the time-out and a quarter");
        golden(&mut bench, script);
    });
}

#[test]
fn one_way_keeps_the_other_alive() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1"));
        bench.say(0, "udp 7.0.0.1:1 > 192.0.2.10:80");
        for _ in 0..30 {
            bench.wait(80);
            assert_eq!(bench.say(1, "udp 10.0.0.1:80 > 7.0.0.1:1"), "udp 192.0.2.10:80 > 7.0.0.1:1 #1");
        }
        assert_eq!(bench.loads(), [1]);
        for _ in 0..30 {
            bench.wait(80);
            bench.say(0, "udp 7.0.0.1:1 > 192.0.2.10:80");
        }
        assert_eq!(bench.say(1, "udp 10.0.0.1:80 > 7.0.0.1:1"), "udp 192.0.2.10:80 > 7.0.0.1:1 #1");
        bench.wait(376);
        assert_eq!(bench.loads(), [0]);
    });
}

#[test]
fn an_end_counts_once_and_a_new_beginning_counts_again() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:80", "10.0.0.1"));
        for (flags, back) in
            [("S", 0), ("SA", 1), ("A", 0), ("FA", 1), ("FA", 0), ("A", 1), ("FA", 0), ("R", 0), ("R", 1)]
        {
            let words = ["tcp 7.0.0.1:1 > 192.0.2.10:80", "tcp 10.0.0.1:80 > 7.0.0.1:1"][back];
            bench.say(back as u16, &format!("{words} {flags}"));
        }
        assert_eq!(bench.loads(), [0]);
        bench.say(0, "tcp 7.0.0.1:1 > 192.0.2.10:80 S");
        assert_eq!(bench.loads(), [1]);
        bench.say(1, "tcp 10.0.0.1:80 > 7.0.0.1:1 R");
        assert_eq!(bench.loads(), [0]);
        bench.wait(500);
        assert_eq!(bench.loads(), [0]);
        let mut gauges = HashMap::new();
        bench.balancer.gauges(&mut |name, value| _ = gauges.insert(name, value));
        assert_eq!((gauges["connections"], gauges["opened"], gauges["backends up"]), (0, 2, 1));
    });
}

#[test]
fn later_fragments_follow_the_first() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10:53", "10.0.0.1:5353 10.0.0.2:5353"));
        let (client, vip): (SocketAddr, SocketAddr) = ("7.0.0.1:9".parse().unwrap(), "192.0.2.10:53".parse().unwrap());
        let mut fragment = |id: u16, offset: u16, gate: u16, src: SocketAddr, dst: SocketAddr| {
            let mut upper = [0; 24];
            upper[..2].copy_from_slice(&src.port().to_be_bytes());
            upper[2..4].copy_from_slice(&dst.port().to_be_bytes());
            upper[5] = 44;
            let frame = network(17, src.ip(), dst.ip(), &upper, |ip| {
                ip.set_ident(id);
                ip.set_fragment(false, offset == 0, offset);
            });
            let mut packet = bench.packet(&frame);
            match bench.run(gate, &mut packet) {
                Verdict::Drop(reason) => Err(reason),
                Verdict::Gate(_) => {
                    assert!(checksum::verify_ipv4_checksum(&packet.data()[14..34]));
                    let layers = packet.layers();
                    let ip = ipv4::Packet::new_checked(&packet.data()[14..]).unwrap();
                    Ok((ip.src().to_string(), ip.dst().to_string(), ports(packet.data(), &layers)))
                }
            }
        };
        let ok = |src: &str, dst: &str, ports| Ok((src.to_owned(), dst.to_owned(), ports));
        assert_eq!(fragment(1, 24, 0, client, vip), Err(NO_FIRST));
        assert_eq!(fragment(1, 0, 0, client, vip), ok("7.0.0.1", "10.0.0.1", Some((9, 5353))));
        assert_eq!(fragment(1, 24, 0, client, vip), ok("7.0.0.1", "10.0.0.1", None));
        assert_eq!(fragment(2, 0, 0, client, vip), ok("7.0.0.1", "10.0.0.1", Some((9, 5353))));
        assert_eq!(fragment(2, 24, 0, client, vip), ok("7.0.0.1", "10.0.0.1", None));
        let server = "10.0.0.1:5353".parse().unwrap();
        assert_eq!(fragment(7, 24, 1, server, client), ok("10.0.0.1", "7.0.0.1", None), "unknown: passes");
        assert_eq!(fragment(7, 0, 1, server, client), ok("192.0.2.10", "7.0.0.1", Some((53, 9))));
        assert_eq!(fragment(7, 24, 1, server, client), ok("192.0.2.10", "7.0.0.1", None));
        bench.wait(60);
        assert_eq!(bench.loads(), [1, 0]);
    });
}

#[test]
fn pings_are_balanced_and_icmp_errors_pass() {
    on_engines(FEW, || {
        let mut bench = Bench::new(&args("192.0.2.10", "10.0.0.1"));
        let mut icmp = |kind: u8, gate: u16, src: &str, dst: &str| {
            let mut upper = [kind, 0, 0, 0, 1, 2, 3, 4];
            let check = checksum::checksum(&upper);
            upper[2..4].copy_from_slice(&check.to_be_bytes());
            let mut packet = bench.packet(&network(1, src.parse().unwrap(), dst.parse().unwrap(), &upper, |_| {}));
            assert_eq!(bench.run(gate, &mut packet), Verdict::Gate(gate));
            check_sums(packet.data());
            words_of(packet.data())
        };
        assert_eq!(icmp(3, 0, "7.0.0.1", "192.0.2.10"), "icmp 7.0.0.1 > 192.0.2.10");
        assert_eq!(icmp(8, 0, "7.0.0.1", "192.0.2.10"), "icmp 7.0.0.1 > 10.0.0.1");
        assert_eq!(icmp(0, 1, "10.0.0.1", "7.0.0.1"), "icmp 192.0.2.10 > 7.0.0.1");
    });
}

#[test]
fn bad_arguments_are_named() {
    let record = |weight| {
        let fields = vec![("server".to_owned(), endpoint("10.0.0.2:1")), ("weight".to_owned(), Value::Integer(weight))];
        Args::default().with("vip", endpoint("1.1.1.1")).with("backends", Value::Record(fields))
    };
    let prefix = Args::default().with("vip", Value::Prefix("10.1.2.3".parse().unwrap(), 8));
    let cases = [
        (Args::default(), "`vip`: is required"),
        (args("1.1.1.1", "fd00::1"), "`backends`: none is IPv4, as 1.1.1.1 is"),
        (args("1.1.1.1", "1.1.1.1"), "`backends`: 1.1.1.1 is also a `vip`"),
        (args("1.1.1.1", "1.1.1.2 1.1.1.2"), "`backends`: 1.1.1.2 stands there twice"),
        (prefix.with("backends", list("10.1.0.1")), "`backends`: 10.1.0.1 is also a `vip`"),
        (args("1.1.1.1 1.1.1.1:80", "1.1.1.2"), "`vip`: 1.1.1.1 stands there with and without a port"),
        (record(0), "`backends`: `weight` must be a whole number from 1 to 256"),
    ];
    for (args, expected) in cases {
        let error = Settings::read(&args, Share::WHOLE).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(Settings::read(&record(256), Share::WHOLE).is_ok());
}

#[test]
fn a_prefix_is_many_addresses() {
    on_engines(FEW, || {
        let vips = Value::List(vec![
            Value::Prefix("192.0.2.77".parse().unwrap(), 26),
            Value::Prefix("2001:db8::".parse().unwrap(), 64),
        ]);
        let mut bench = Bench::new(&args("1.1.1.1", "10.0.0.1 fd00::1").with("vip", vips));
        golden(
            &mut bench,
            "out: udp 7.0.0.1:1 > 192.0.2.64:5             => udp 7.0.0.1:1 > 10.0.0.1:5 #1
         out: udp 7.0.0.1:2 > 192.0.2.127:5            => udp 7.0.0.1:2 > 10.0.0.1:5 #1
         back: udp 10.0.0.1:5 > 7.0.0.1:1              => udp 192.0.2.64:5 > 7.0.0.1:1 #1
         back: udp 10.0.0.1:5 > 7.0.0.1:2              => udp 192.0.2.127:5 > 7.0.0.1:2 #1
         out: udp 7.0.0.1:1 > 192.0.2.63:5             => udp 7.0.0.1:1 > 192.0.2.63:5
         out: udp 7.0.0.1:1 > 192.0.2.128:5            => udp 7.0.0.1:1 > 192.0.2.128:5
         out: udp [2001::1]:1 > [2001:db8::ffff:1]:5   => udp [2001::1]:1 > [fd00::1]:5 #2
         out: udp [2001::1]:1 > [2001:db8:0:1::]:5     => udp [2001::1]:1 > [2001:db8:0:1::]:5",
        );
    });
}

#[test]
fn many_addresses_are_told_apart() {
    on_engines(FEW, || {
        let prefix = |ip: &str, length| Value::Prefix(ip.parse().unwrap(), length);
        let vips = Value::List(vec![
            endpoint("9.0.0.9:80"),
            prefix("192.0.2.128", 26),
            endpoint("9.0.0.9:25"),
            prefix("192.0.2.0", 24),
            prefix("192.0.2.0", 25),
            endpoint("192.0.1.255:9"),
            endpoint("192.0.3.0"),
            endpoint("192.0.2.77"),
            endpoint("9.0.0.9:443"),
        ]);
        let mut bench = Bench::new(&args("1.1.1.1", "10.0.0.1").with("vip", vips));
        let served = [
            "9.0.0.9:25",
            "9.0.0.9:80",
            "9.0.0.9:443",
            "192.0.1.255:9",
            "192.0.2.0:1",
            "192.0.2.77:1",
            "192.0.2.191:1",
            "192.0.2.192:1",
            "192.0.2.255:9",
            "192.0.3.0:1",
        ];
        let not =
            ["9.0.0.9:24", "9.0.0.9:81", "9.0.0.9:444", "9.0.0.10:80", "9.0.0.8:80", "192.0.1.255:8", "192.0.3.1:1"];
        for (ends, is_served) in [(&served[..], true), (&not[..], false)] {
            for end in ends {
                let said = bench.say(0, &format!("udp 7.0.0.1:1 > {end}"));
                assert_eq!(said.ends_with("#1"), is_served, "{said}");
            }
        }
    });
}

#[test]
fn weights_share_connections() {
    on_engines(1, || {
        let server = |ip: &str, weight| {
            let fields = vec![("server".to_owned(), endpoint(ip)), ("weight".to_owned(), Value::Integer(weight))];
            Value::Record(fields)
        };
        let backends = Value::List(vec![server("10.0.0.1", 2), server("10.0.0.2", 6), endpoint("10.0.0.3")]);
        for method in ["least_connections", "consistent_hash"] {
            let args = Args::default().with("vip", endpoint("192.0.2.10")).with("backends", backends.clone());
            let mut bench = Bench::new(&args.with("method", Value::Word(method.to_owned())));
            for port in 1..=9000 {
                bench.say(0, &format!("udp 7.0.0.1:{port} > 192.0.2.10:80"));
            }
            for (load, expected) in bench.loads().iter().zip([2000i64, 6000, 1000]) {
                let off = if method == "least_connections" { 0 } else { 200 };
                assert!((load - expected).abs() <= off, "{method}: {:?}", bench.loads());
            }
        }
    });
}

#[test]
fn removing_a_server_moves_few_new_connections() {
    on_engines(1, || {
        let backends: Vec<String> = (1..=10).map(|n| format!("10.0.0.{n}")).collect();
        let args = args("192.0.2.10", &backends.join(" ")).with("method", Value::Word("consistent_hash".to_owned()));
        let servers = |down: Option<u16>| -> Vec<String> {
            let mut bench = Bench::new(&args);
            down.map(|number| bench.balancer.set_backend(number, false));
            (1..=5000).map(|port| bench.say(0, &format!("udp 7.0.0.1:{port} > 192.0.2.10:80"))).collect()
        };
        let before = servers(None);
        assert_eq!(before, servers(None), "another balancer chooses alike");
        let moved = servers(Some(4)).iter().zip(&before).filter(|(a, b)| a != b).count();
        assert!((400..=700).contains(&moved), "{moved} of 5,000 moved");
    });
}
