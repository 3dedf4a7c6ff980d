//! What is said of wrong arguments, and where.

use super::*;

fn file(text: &str) -> Args {
    Args::default().with("routes", Value::File { path: "edge.routes".into(), text: text.into() })
}

fn list(routes: &[&str]) -> Args {
    let routes = routes.iter().map(|route| Value::Text((*route).into())).collect();
    Args::default().with("routes", Value::List(routes))
}

fn says(args: &Args) -> String {
    match Table::new(args, &["2".to_owned()]) {
        Ok(_) => "nothing".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_say_where_and_what() {
    assert_eq!(says(&Args::default()), "`routes`: is required");
    assert_eq!(
        says(&file("10.0.0.0/8 1.2.3.4\n\n10.9/8 7")),
        "edge.routes:3: `routes`: column 1: expected a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`, \
         found `10.9/8`"
    );
    assert_eq!(
        says(&list(&["10.0.0.0/8 1.2.3.4", "10.1.2.3/8 1.2.3.4"])),
        "`routes`: route 2: column 1: bits are set behind the prefix length; perhaps 10.0.0.0/8?"
    );
    assert_eq!(
        says(&file("10.0.0.0/8 2\n# to nowhere\n::/0 gate 3")),
        "edge.routes:3: `routes`: the route leads to gate 3, which no edge of the chain leaves by (lead it on with \
         `NAME[3] -> ...`, where NAME is this function's)"
    );
    assert_eq!(says(&list(&["::/0 8"])), "`routes`: route 1: expected a gate from 0 to 7, found `8`");
    let nothing = "`routes`: expected at least one route: without any, every packet is dropped";
    assert_eq!((says(&file("# none\n")), says(&list(&[]))), (nothing.into(), nothing.into()));
    assert_eq!(says(&list(&["10.0.0.0/8 1.2.3.4\n::/0 0"])), "`routes`: route 1: expected one route as a string");
    assert_eq!(
        says(&Args::default().with("routes", Value::Integer(3))),
        "`routes`: route 1: expected one route as a string"
    );
    let neighbour = |address: &str, mac: &str| {
        says(&list(&["::/0 0"]).with("neighbours", Value::Record(vec![(address.into(), Value::Text(mac.into()))])))
    };
    assert_eq!(
        neighbour("eth0", "02:00:00:00:00:01"),
        "`neighbours`: expected the address of a next hop, found `eth0` (for example {\"192.0.2.1\": \"02:00:00:00:00:01\"})"
    );
    assert_eq!(
        neighbour("192.0.2.1", "ff:ff:ff:ff:ff:ff"),
        "`neighbours`: expected the address of one station such as 02:00:00:00:00:01, found `ff:ff:ff:ff:ff:ff`"
    );
    assert_eq!(
        says(&list(&["::/0 0"]).with("mac", Value::Text("me".into()))),
        "`mac`: expected the address of one station such as 02:00:00:00:00:01, found `me`"
    );
}

#[test]
fn a_station_in_the_route_comes_first() {
    let neighbours = vec![("192.0.2.1".to_owned(), Value::Text("02:00:00:00:00:01".into()))];
    let args = list(&["10.0.0.0/8 192.0.2.1", "11.0.0.0/8 192.0.2.1 gate 2 mac 02:00:00:00:00:02", "12.0.0.0/8 0"]);
    let table = Table::new(&args.with("neighbours", Value::Record(neighbours)), &["2".to_owned()]).unwrap();
    let forward = |gate, last: Option<u8>| {
        Some(Action::Forward { gate, macs: last.map(|last| (Mac([2, 0, 0, 0, 0, last]), None)) })
    };
    let action = |addr: u32| table.action(table.ipv4.lookup(addr << 24)).copied();
    assert_eq!(
        [action(10), action(11), action(12), action(13)],
        [forward(0, Some(1)), forward(4, Some(2)), forward(0, None), None]
    );
}
