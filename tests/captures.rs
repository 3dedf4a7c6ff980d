//! Chains over captures, judged by Wireshark: what comes out is well formed, every packet is accounted for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Run the command; returns its report.
fn run(args: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_catena")).arg("run").args(args).arg("--json").output();
    let output = output.expect("catena starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn number(report: &serde_json::Value, path: &str) -> u64 {
    report.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("no {path} in {report}"))
}

/// Hold the report to its own sums: packets in = packets out + drops, and every drop has its reason.
fn accounted(report: &serde_json::Value) {
    let [input, output, dropped] = ["/input/packets", "/output/packets", "/dropped"].map(|path| number(report, path));
    assert_eq!(input, output + dropped, "packets in = packets out + drops: {report}");
    let reasons = report["modules"].as_array().into_iter().flatten().filter_map(|m| m["drops"].as_object());
    let by_reason: u64 = reasons.flat_map(|drops| drops.values()).filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(dropped, by_reason);
}

/// The protocols that are looked into.
const LAYERS: [&str; 14] = [
    "_ws.malformed",
    "_ws.expert",
    "frame",
    "eth",
    "ethertype",
    "vlan",
    "ieee8021ad",
    "arp",
    "ip",
    "ipv6",
    "tcp",
    "udp",
    "icmp",
    "icmpv6",
];

/// What Wireshark's dissectors up to layer 4 say of a capture.
#[derive(Debug, Default)]
struct Verdict {
    packets: u64,
    malformed: u64,
    bad_checksums: u64,
}

/// Ask tshark; `None`, with a message, where it is not installed.
fn tshark(capture: &Path) -> Option<Verdict> {
    // Ports are not what they were behind a NAT, and dissectors go by ports: those above layer 4 are off.
    let settings = tempfile::tempdir().expect("a folder");
    let list = match Command::new("tshark").args(["-G", "protocols"]).output() {
        Ok(list) => String::from_utf8_lossy(&list.stdout).into_owned(),
        Err(error) => {
            println!("skipped: tshark cannot be run: {error}");
            return None;
        }
    };
    let protocols = list.lines().filter_map(|line| line.split('\t').nth(2));
    let disabled: Vec<&str> = protocols.filter(|protocol| !LAYERS.contains(protocol)).collect();
    std::fs::write(settings.path().join("disabled_protos"), disabled.join("\n")).expect("a settings file");
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", settings.path()).args(["-n", "-r"]).arg(capture);
    for option in ["ip.check_checksum", "tcp.check_checksum", "udp.check_checksum"] {
        command.args(["-o", &format!("{option}:TRUE")]);
    }
    for option in ["ip.defragment", "ipv6.defragment", "tcp.desegment_tcp_streams", "tcp.analyze_sequence_numbers"] {
        command.args(["-o", &format!("{option}:FALSE")]);
    }
    command.args(["-T", "fields", "-E", "occurrence=f", "-e", "_ws.malformed", "-e", "ip.checksum.status"]);
    command.args(["-e", "tcp.checksum.status", "-e", "udp.checksum.status", "-e", "icmp.checksum.status"]);
    let output = command.output().expect("tshark ran a moment ago");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut verdict = Verdict::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split('\t');
        verdict.packets += 1;
        verdict.malformed += u64::from(fields.next().is_some_and(|field| !field.is_empty()));
        // 0 is bad, 1 is good, 2 was not looked at.
        verdict.bad_checksums += u64::from(fields.any(|field| field == "0" || field == "Bad"));
    }
    Some(verdict)
}

#[test]
fn the_example_passes_wireshark() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let example = repository().join("examples");
    let path = |name: &str| example.join(name).display().to_string();
    let report = run(&[&path("edge.catena"), "--in", &path("edge.pcap.gz"), "--out", &out.display().to_string()]);
    accounted(&report);
    assert!(number(&report, "/output/packets") > 1000, "{report}");
    let Some(verdict) = tshark(&out) else { return };
    assert_eq!(verdict.packets, number(&report, "/output/packets"));
    assert_eq!((verdict.malformed, verdict.bad_checksums), (0, 0), "{verdict:?}");
}

#[test]
fn several_workers_do_what_one_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("nat.catena");
    std::fs::write(&chain, "chain c { in -> NAT(pool = 198.51.100.0/28) -> out }\n").expect("a chain file");
    let (chain, one, two) = (chain, folder.path().join("one.pcap"), folder.path().join("two.pcap.zst"));
    let text = |path: &Path| path.display().to_string();
    let traffic = "gen:flows=500,count=20000,proto=udp+tcp,rate=1Mpps";
    let a = run(&[&text(&chain), "--in", traffic, "--out", &text(&one), "--seed", "1"]);
    let b = run(&[&text(&chain), "--in", traffic, "--out", &text(&two), "--seed", "1", "--workers", "2"]);
    accounted(&a);
    accounted(&b);
    assert_eq!((number(&a, "/output/packets"), number(&b, "/output/packets")), (20_000, 20_000));
    let Some(verdict) = tshark(&two) else { return };
    assert_eq!((verdict.packets, verdict.malformed, verdict.bad_checksums), (20_000, 0, 0));
}

#[test]
fn a_replay_gives_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = repository().join("examples");
    let outputs = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
    for out in &outputs {
        let path = |name: &str| example.join(name).display().to_string();
        run(&[&path("edge.catena"), "--in", &path("edge.pcap.gz"), "--out", &out.display().to_string(), "--seed", "9"]);
    }
    let bytes = outputs.map(|out| std::fs::read(out).expect("the capture was written"));
    assert!(bytes[0] == bytes[1], "two runs with one seed differ");
}

#[test]
fn real_traffic_comes_out_no_worse_than_it_went_in() {
    let traces = std::env::var_os("CATENA_TRACES").map_or(repository().join("../shared/traces"), PathBuf::from);
    let mix = traces.join("mix.pcap.zst");
    if !mix.exists() {
        println!("skipped: {} is not there; CATENA_TRACES names the folder", mix.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, plain, out) =
        (folder.path().join("edge.catena"), folder.path().join("plain.pcap"), folder.path().join("out.pcap"));
    std::fs::write(
        &chain,
        r#"
        class inside = "src net 192.168.0.0/16 or src net 10.0.0.0/8 or src net 172.16.0.0/12"
        chain homes for inside {
            acl = ACL(rules = ["deny tcp from any to any port 23", "permit any"])
            in -> acl -> Monitor() -> NAT(pool = 198.51.100.0/24) -> out
        }
        chain rest { in -> Monitor() -> out }
        "#,
    )
    .expect("a chain file");
    // The same packets without functions: what the capture itself is worth.
    let through = folder.path().join("through.catena");
    std::fs::write(&through, "chain all { in -> out }\n").expect("a chain file");
    let text = |path: &Path| path.display().to_string();
    accounted(&run(&[&text(&through), "--in", &text(&mix), "--out", &text(&plain)]));
    let report = run(&[&text(&chain), "--in", &text(&mix), "--out", &text(&out)]);
    accounted(&report);
    assert!(number(&report, "/input/packets") > 200_000);
    let (Some(before), Some(after)) = (tshark(&plain), tshark(&out)) else { return };
    println!("before {before:?}\nafter  {after:?}");
    assert_eq!(after.packets, number(&report, "/output/packets"));
    assert!(after.malformed <= before.malformed, "before {before:?}, after {after:?}");
    assert!(after.bad_checksums <= before.bad_checksums, "before {before:?}, after {after:?}");
}
