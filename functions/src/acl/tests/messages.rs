//! What is said of mistakes, word by word.

use super::*;

#[track_caller]
fn says(args: &Args, message: &str) {
    let error = match build_with(&DESCRIPTOR, args, Share::WHOLE) {
        Ok(_) => panic!("{args:?} is accepted"),
        Err(error) => error,
    };
    assert_eq!(error.to_string(), message);
}

fn rules(value: Value) -> Args {
    Args::default().with("rules", value)
}

#[test]
fn a_wrong_line_of_a_file() {
    let source =
        "# the edge\npermit tcp from 10.0.0.0/8\npermit tpc from any to 192.0.2.1\npermit any\ndeny udp port 53\n";
    let args = rules(file("edge.acl", source));
    says(
        &args,
        "edge.acl:3: `rules`: column 8 of `permit tpc from any to 192.0.2.1`: expected `any`, a protocol (a name or 0 \
         to 255), `from` or `to`, found `tpc`; mistakes also in line 5 (did you mean `tcp`?)",
    );
    let error = build_with(&DESCRIPTOR, &args, Share::WHOLE).err().unwrap();
    assert_eq!(error.place, Some(("edge.acl".to_owned(), 3)));
}

#[test]
fn a_wrong_string() {
    says(
        &list(&["permit tcp", "deny from 10.0.0.0/33"]),
        "`rules`: number 2, column 11 of `deny from 10.0.0.0/33`: expected a prefix length of 0 to 32 behind `/`, \
         found `33`",
    );
}

#[test]
fn a_wrong_rule_of_iptables() {
    let source = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m conntrack --ctstate NEW -j DROP\nCOMMIT\n";
    let args = rules(file("saved", source));
    says(
        &args,
        "saved:3: `rules`: column 12 of `-A FORWARD -m conntrack --ctstate NEW -j DROP`: `conntrack` looks at more \
         than addresses, protocol and ports, which a list of rules cannot (`leave_out = [\"conntrack\"]` leaves out \
         the rules with it)",
    );
    says(
        &args.with("chain", text("FORWRD")).with("leave_out", text("conntrack")),
        "saved:1: `rules`: column 1 of `*filter`: the `filter` table has no built-in chain `FORWRD` (it has FORWARD)",
    );
}

/// 64 KiB of text stand for four billion rules: they are counted, not made.
#[test]
fn more_rules_than_a_list_holds() {
    let ports = |count: u32| (0..count).map(|port| port.to_string()).collect::<Vec<_>>().join(",");
    let rule = |count: u32| format!("permit tcp from any port {0} to any port {0}", ports(count));
    let begins = rule(2_100).chars().take(120).collect::<String>();
    says(
        &rules(Value::List(vec![text("permit any"), text(&rule(2_100))])),
        &format!(
            "`rules`: number 2, column 1 of `{begins} …`: 2100 x 2100 ports are 4410000 rules: a line makes at most \
             32768 (a range such as `1024-65535` is one rule, however many ports it has)"
        ),
    );
    says(
        &rules(file("edge.acl", &format!("permit any\n\n{}\n", rule(65_536)))),
        &format!(
            "edge.acl:3: `rules`: column 1 of `{begins} …`: 65536 x 65536 ports are 4294967296 rules: a line makes at \
             most 32768 (a range such as `1024-65535` is one rule, however many ports it has)"
        ),
    );
    let lines = vec![text(&rule(181)); 129];
    let error = build_with(&DESCRIPTOR, &rules(Value::List(lines)), Share::WHOLE).err().unwrap().to_string();
    assert!(
        error.contains("number 129") && error.contains("4226169 with those before: a list holds at most 4194304"),
        "{error}"
    );
}

/// The same of iptables, where each match multiplies what the ones before it select.
#[test]
fn more_rules_than_a_rule_of_iptables_may_be() {
    let list = (0..32_000).map(|port| (2 * port).to_string()).collect::<Vec<_>>().join(",");
    for matches in [format!("--sports {list} --dports {list}"), format!("! --ports {list}")] {
        let rule = format!("-A FORWARD -p tcp -m multiport {matches} -j DROP");
        let source = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rule}\nCOMMIT\n");
        let error = build_with(&DESCRIPTOR, &rules(file("saved", &source)), Share::WHOLE).err().unwrap();
        assert_eq!(error.place, Some(("saved".to_owned(), 3)));
        let said = "the matches up to here are more than 32768 rules (use ranges";
        assert!(error.to_string().contains(said));
    }
}

#[test]
fn a_wrong_record() {
    let record = |key: &str, value: Value| rules(Value::Record(vec![(key.to_owned(), value)]));
    says(&record("dst_ib", Value::Integer(1)), "`rules`: number 1: a rule has no `dst_ib` (did you mean `dst_ip`?)");
    says(
        &record("vlan", Value::Integer(1)),
        "`rules`: number 1: a rule has no `vlan` (it has src_ip, dst_ip, src_port, dst_port, ip_proto, drop)",
    );
    says(&record("dst_ip", text("10.0.0.0/99")), "`rules`: number 1, `dst_ip`: expected a prefix such as '10.0.0.0/8'");
    says(
        &record("src_port", Value::Integer(70_000)),
        "`rules`: number 1, `src_port`: expected a port or a range of ports",
    );
    says(&record("drop", Value::Integer(1)), "`rules`: number 1, `drop`: expected true or false");
    let mixed = vec![("src_ip".to_owned(), text("10.0.0.1")), ("dst_ip".to_owned(), text("::1"))];
    says(
        &rules(Value::Record(mixed)),
        "`rules`: number 1: no packet goes from IPv4 to IPv6 or back: this rule could never match",
    );
}

#[test]
fn arguments_that_do_not_fit_each_other() {
    says(&Args::default(), "`rules`: is required");
    says(
        &list(&["permit any"]).with("chain", text("INPUT")),
        "`chain`: speaks of rules of iptables-save, but `rules` has none (such a file begins with `# Generated by \
         iptables-save` or `*filter`)",
    );
}
