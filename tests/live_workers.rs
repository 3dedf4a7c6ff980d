//! Several workers on an interface: what one of them knows the others need, and what goes from one to another.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::captures::clocks::commented;
use crate::captures::notation::craft;
use crate::captures::packets::{Packet, read, write};
use crate::interfaces::Namespace;
use crate::native::compile_c;

/// When the first packet comes, in ns since 1970.
const START: u64 = 1_600_000_000_000_000_000;

fn packets(lines: impl Iterator<Item = String>) -> Vec<Packet> {
    (0..).zip(lines).map(|(at, line)| Packet { time: START + at * 1000, frame: craft(&line), missing: 0 }).collect()
}

fn json(output: &std::process::Output) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {err}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {err}"))
}

fn number(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} of {report}"))
}

/// Each host has one of 64 ports, and one of them sends to all of these.
#[test]
fn a_hairpin_reaches_hosts_of_all_workers() {
    const HOSTS: u64 = 40;
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "chain c { in <-> Monitor() <-> NAT(pool = 198.51.100.1, ports = 1024-1087, block = 1) <-> out }\n";
    let hosts = (1..=HOSTS).map(|host| format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53"));
    // All workers have come so far when the hairpins come: more than a queue holds comes between.
    let others = (0..40_000).map(|n| format!("udp 10.0.0.{}:4000 > 192.0.2.9:53", n % HOSTS + 1));
    let hairpins = (1024..1088).map(|port| format!("udp 10.0.0.7:4000 > 198.51.100.1:{port}"));
    write(&folder.path().join("in.pcap"), &packets(hosts.chain(others).chain(hairpins)));
    for workers in ["1", "2", "3"] {
        let ports = ["--in", "in.pcap", "--out", "q1", "--back-out", "back.pcap"];
        let (ran, _) =
            namespace.run(&folder, chain, &[&ports[..], &["--seed", "5", "--workers", workers, "--json"]].concat());
        let report = json(&ran);
        let back = read(Path::new(&folder.path().join("back.pcap")));
        let mut reached: Vec<u8> = back.iter().map(|packet| packet.frame[33]).collect();
        reached.sort_unstable();
        assert_eq!(reached, (1..=HOSTS as u8).collect::<Vec<_>>(), "with {workers} workers: {report}");
        // All come from the one external endpoint of who has sent them.
        assert!(back.iter().all(|packet| {
            packet.frame[26..36]
                == back[0].frame[26..30]
                    .iter()
                    .chain(&packet.frame[30..34])
                    .chain(&back[0].frame[34..36])
                    .copied()
                    .collect::<Vec<u8>>()[..]
        }));
        assert_eq!(number(&report, "/dropped"), 64 - HOSTS, "with {workers} workers: {report}");
    }
}

/// Five hosts of two workers cannot be loads of one size: slots go to the worker that has less to do, no packet is lost, and each
/// flow has one record, wherever it has been.
#[test]
fn slots_go_to_the_idle_worker_and_no_packet_is_lost() {
    const FLOWS: u64 = 5;
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "chain c { in <-> Monitor(export = \"m.csv\") <-> NAT(pool = 198.51.100.1) <-> PortScan() <-> out }\n";
    let traffic = format!("gen:count=200000,rate=100kpps,time=wall,flows={FLOWS},src=10.0.0.0/24,proto=udp");
    let ports = ["--in", &traffic, "--out", "q1", "--workers", "2", "--rebalance", "--json"];
    let mut moved = 0;
    for seed in 1..=3 {
        let (ran, _) = namespace.run(&folder, chain, &[&ports[..], &["--seed", &seed.to_string()]].concat());
        let report = json(&ran);
        let [came, left] = ["/input/packets", "/output/packets"].map(|pointer| number(&report, pointer));
        assert_eq!((came, left, number(&report, "/dropped")), (200_000, 200_000, 0), "{report}");
        moved += number(&report, "/rebalanced/moves");
        let records = ["m.csv", "m.csv.1"].map(|name| std::fs::read_to_string(folder.path().join(name)));
        let records: String = records.into_iter().map(|text| text.expect("records")).collect();
        assert_eq!(records.lines().filter(|line| line.contains("id.orig_h")).count() as u64, FLOWS, "{report}");
    }
    assert!(moved > 0, "nothing was moved in three runs");
}

/// Clocks tell who came first.
#[test]
fn no_packet_overtakes_another_of_its_flow_while_slots_move() {
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "chain c { in <-> Monitor() <-> NAT(pool = 198.51.100.1) <-> PortScan() <-> out }\n";
    let traffic = "gen:count=200000,rate=100kpps,time=wall,flows=5,src=10.0.0.0/24,proto=udp";
    let ports = ["--in", traffic, "--out", "out.pcapng,clocks", "--workers", "2", "--rebalance", "--json"];
    let mut moved = 0;
    for seed in 1..=3 {
        let (ran, _) = namespace.run(&folder, chain, &[&ports[..], &["--seed", &seed.to_string()]].concat());
        let report = json(&ran);
        moved += number(&report, "/rebalanced/moves");
        let mut latest: HashMap<Vec<u8>, u64> = HashMap::new();
        let packets = commented(&folder.path().join("out.pcapng"));
        assert_eq!(packets.len(), 200_000, "{report}");
        for (frame, clock) in packets {
            let clock = clock.split_once(':').and_then(|(_, count)| count.parse().ok()).expect("a clock");
            let before = latest.insert(frame[26..38].to_vec(), clock).unwrap_or(0);
            assert!(before < clock, "{before} leaves before {clock}: {report}");
        }
        assert_eq!(latest.len(), 5, "each flow has one external endpoint: {report}");
    }
    assert!(moved > 0, "nothing was moved in three runs");
}

/// A function whose second worker stands still for a while, once, as one does whose core is taken away; meanwhile the first one's packets
/// are counted.
const STANDS_STILL: &str = r#"#include <catena/nf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
static atomic_int stands;
static atomic_long meanwhile, came;
static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    char name[16] = "";
    struct timespec time = { 1, 500000000 };
    (void)self, (void)cx, (void)packets;
    prctl(PR_GET_NAME, name);
    if (strcmp(name, "worker 1") != 0) {
        if (atomic_load(&stands))
            atomic_fetch_add(&meanwhile, count);
        return;
    }
    long before = atomic_fetch_add(&came, count);
    if (before < 2000 && before + count >= 2000) {
        atomic_store(&stands, 1);
        nanosleep(&time, NULL);
        atomic_store(&stands, 0);
    }
}
static int finish(void *self, struct catena_context *cx)
{
    FILE *file = fopen("meanwhile", "w");
    (void)self, (void)cx;
    if (file != NULL) {
        fprintf(file, "%ld", atomic_load(&meanwhile));
        fclose(file);
    }
    return 0;
}
CATENA_NF(catena_nf, .name = "still", .summary = "stands still once", .process = process, .finish = finish);
"#;

/// A worker that does not come to its packets holds up those alone, and what finds no room in its queue is counted; also where
/// new connections go to servers that all workers use.
#[test]
fn a_worker_that_stands_still_holds_up_its_own_flows_alone() {
    let Some(namespace) = Namespace::new() else { return };
    let (folder, sender) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    compile_c(folder.path(), "still", STANDS_STILL);
    let chain = "chain c { in -> LB(vip = 192.0.2.10, backends = [10.9.0.1, 10.9.0.2, 10.9.0.3]) \
                 -> Native(lib = \"./still.so\") -> out }\n";
    let traffic = "gen:flows=50000,dst=192.0.2.10/32,proto=udp,rate=40kpps,count=120000,time=wall";
    let (ran, _) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            namespace.run(
                &folder,
                chain,
                &["--in", "q0", "--workers", "2", "--duration", "5s", "--seed", "5", "--json"],
            )
        });
        std::thread::sleep(std::time::Duration::from_millis(700));
        let (sent, _) =
            namespace.run(&sender, "chain c { in -> Monitor() -> out }\n", &["--in", traffic, "--out", "q1"]);
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        receiver.join().expect("it does not panic")
    });
    let report = json(&ran);
    let [came, left] = ["/input/packets", "/output/packets"].map(|pointer| number(&report, pointer));
    let modules = report["modules"].as_array().expect("rows");
    let to_it = modules.iter().find(|row| row["name"] == "to worker 1").unwrap_or_else(|| panic!("{report}"));
    let (to_it, full) = (number(to_it, "/packets"), number(to_it, "/drops/queue full"));
    // Some 30,000 come for it while it stands, and its queue holds 8,192.
    assert!(full > 1_000 && full < to_it, "{full} of {to_it}: {report}");
    assert_eq!((number(&report, "/dropped"), came - left), (full, full), "{report}");
    let meanwhile = std::fs::read_to_string(folder.path().join("meanwhile")).expect("it is written at the end");
    assert!(meanwhile.parse::<u64>().is_ok_and(|count| count > 10_000), "{meanwhile}: {report}");
}
