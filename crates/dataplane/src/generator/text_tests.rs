//! What can be written, and the messages for what cannot.

use proptest::prelude::*;

use super::*;

#[test]
fn the_whole_grammar() {
    let text = "gen:flows=1M,size=60..1514,order=random,dist=pareto(1.3,10),new=1.5k/s,proto=udp:3+tcp:6+icmp:1,\
                ipv6=20%,tcp=sessions,src=10.0.0.0/8,dst=192.0.2.1,src6=2001:db8::/48,dst6=2001:db8::1,sport=1-9,\
                dport=53,ttl=3,smac=02:0a:00:00:00:ff,dmac=ff:ff:ff:ff:ff:ff,rate=2.5Gbps,time=wall,count=7,\
                duration=1.5ms,seed=18446744073709551615";
    let spec = Spec {
        flows: 1_000_000,
        size: Size::Uniform(60, 1514),
        order: Order::Random,
        length: Length::Pareto(1.3, 10.0),
        new: Some(1500.0),
        mix: Mix { udp: 3.0, tcp: 6.0, icmp: 1.0 },
        ipv6: 0.2,
        tcp: Tcp::Sessions,
        src: Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 },
        dst: Prefix { address: Ipv4Addr::new(192, 0, 2, 1), length: 32 },
        src6: Prefix { address: "2001:db8::".parse().unwrap(), length: 48 },
        dst6: Prefix { address: "2001:db8::1".parse().unwrap(), length: 128 },
        sport: 1..=9,
        dport: 53..=53,
        ttl: 3,
        smac: Mac([2, 10, 0, 0, 0, 255]),
        dmac: Mac::BROADCAST,
        rate: Some(Rate::Bits(2.5e9)),
        time: Time::Wall,
        count: Some(7),
        duration: Some(1_500_000),
        seed: u64::MAX,
    };
    // 9 ports are enough for a million flows only because there are 2²⁴ sources.
    assert_eq!(text.parse(), Ok(spec));
    assert_eq!("gen:".parse(), Ok(Spec::default()));
    assert_eq!("".parse(), Ok(Spec::default()));
    let lengths =
        [("endless", Length::Endless), ("fixed(1k)", Length::Fixed(1000)), ("geometric(2.5)", Length::Geometric(2.5))];
    for (text, length) in lengths {
        assert_eq!(format!("dist={text}").parse::<Spec>().unwrap().length, length);
    }
    assert_eq!("size=imix,rate=unlimited".parse(), Ok(Spec { size: Size::Imix, ..Spec::default() }));
    assert_eq!("rate=1Mpps".parse::<Spec>().unwrap().rate, Some(Rate::Packets(1e6)));
}

#[test]
fn a_line_as_on_the_command_line() {
    let text = "gen:flows=10000,size=64,proto=udp,count=1000000,seed=1,new=1000/s,dist=pareto(1.3,10),ipv6=20%,\
                tcp=sessions,src=100.64.0.0/10,dst=203.0.113.0/24,rate=1Mpps";
    assert_eq!(text.parse::<Spec>().map(|spec| spec.count), Ok(Some(1_000_000)));
}

/// The messages, each below its specification.
const GOLDEN: &str = "\
the generator knows no `flow`
  gen:size=64,flow=10
              ^^^^ did you mean `flows`?

the generator knows no `colour`
  gen:colour=red
      ^^^^^^ expected one of flows, size, order, dist, new, proto, ipv6, tcp, src, dst, src6, dst6, sport, dport, ttl, \
smac, dmac, rate, time, count, duration, seed

`flows` needs a value
  gen:flows
      ^^^^^ expected a number of flows, like 10000 or 1M

`seed` is given twice
  gen:seed=1,seed=2
             ^^^^ remove one of them

something is missing
  gen:size=64,
              ^ expected a key and its value, like flows=10000

something is missing
  gen:count=
            ^ expected a number of packets, like 1000000 or 1M

`x` does not fit here
  gen:flows=12x
              ^ expected a number of flows, like 10000 or 1M

`0` does not fit here
  gen:flows=0
            ^ expected 1 to 67108864 flows

`IMIX` does not fit here
  gen:size=IMIX
           ^^^^ expected bytes (64), a range of them (64..1500), or imix; did you mean `imix`?

`20` does not fit here
  gen:size=20
           ^^ expected sizes between 60 and 9216 bytes, the smaller first

`tpc` does not fit here
  gen:proto=udp+tpc:2
                ^^^ expected udp, tcp or icmp, or several with weights, like udp:3+tcp:6+icmp:1; did you mean `tcp`?

`mpps` does not fit here
  gen:rate=1mpps
            ^^^^ expected packets or bits a second, like 1Mpps or 10Gbps, or unlimited; did you mean `Mpps`?

`paretto` does not fit here
  gen:dist=paretto(1.3,10)
           ^^^^^^^ expected endless, fixed(packets), geometric(mean) or pareto(shape,least); did you mean `pareto`?

`pareto(1.3)` does not fit here
  gen:dist=pareto(1.3)
           ^^^^^^^^^^^ expected endless, fixed(packets), geometric(mean) or pareto(shape,least)

`2001:db8::/32` does not fit here
  gen:src=2001:db8::/32
          ^^^^^^^^^^^^^ expected an IPv4 prefix, like 100.64.0.0/10; did you mean `src6`?

`10.0.0.0/33` does not fit here
  gen:src=10.0.0.0/33
          ^^^^^^^^^^^ expected a prefix of at most 32 bits

`02:00:00:00:00` does not fit here
  gen:smac=02:00:00:00:00
           ^^^^^^^^^^^^^^ expected a MAC address, like 02:00:00:00:00:01

`120%` does not fit here
  gen:ipv6=120%
           ^^^^ expected a share of 0% to 100%

1000000 flows need as many different addresses and ports; here are 129024
  gen:src=10.0.0.0/31,flows=1M,dst=10.0.0.1
          ^^^^^^^^^^^ give a shorter prefix, or a wider range of ports
";

#[test]
fn messages_point_at_the_word() {
    let specs = GOLDEN.lines().filter_map(|line| line.strip_prefix("  gen:")).map(|line| format!("gen:{line}"));
    let messages: Vec<String> = specs.map(|text| text.parse::<Spec>().unwrap_err().to_string()).collect();
    let all = messages.join("\n\n") + "\n";
    assert!(all == GOLDEN, "{all}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        let _ = text.parse::<Spec>().map_err(|error| error.to_string());
    }

    #[test]
    fn no_value_makes_it_panic(key in 0usize..22, value in "[-+.:,()%/a-zA-Z0-9µ é]{0,24}") {
        let name = KEYS.get(key).unwrap_or(&SEED).0;
        let text = format!("gen:{name}={value}");
        if let Err(error) = text.parse::<Spec>() {
            prop_assert!(text.get(error.at.clone()).is_some());
            prop_assert!(error.to_string().lines().count() == 3, "{error}");
        }
    }

    #[test]
    fn no_number_makes_it_panic(flows in 1u64..300, size: u16, rate in "[0-9.]{1,9}(p|Mp|Gb|b)ps", dist in "(fixed|geometric|pareto)\\([0-9.,]{1,8}\\)", sport: u16) {
        let text = format!("gen:flows={flows},size={size},rate={rate},dist={dist},sport={sport}");
        if let Ok(spec) = text.parse::<Spec>() {
            prop_assert!(super::super::Generator::new(&spec).is_ok());
        }
    }
}
