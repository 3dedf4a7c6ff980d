//! Real traffic, where it is there: `CATENA_TRACES` names the folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packets::{Packet, read, read_ethernet, write};
use super::trip::{drops, there_and_back};
use super::{number, repository};

/// An access list, a monitor and a NAT for what comes from private addresses; the rest passes.
const CHAIN: &str = r#"
class inside = "src net 192.168.0.0/16 or src net 10.0.0.0/8 or src net 172.16.0.0/12" back "dst net 198.51.100.0/24"
chain homes for inside {
    acl = ACL(rules = ["deny tcp from any to any port 23", "permit any"])
    mon = Monitor()
    nat = NAT(pool = 198.51.100.0/24)
    in <-> acl <-> mon <-> nat <-> out
}
chain rest { in -> Monitor() -> out }
"#;

/// Return a file of the traces, or say that it is not there.
pub fn trace(name: &str) -> Option<PathBuf> {
    let traces = std::env::var_os("CATENA_TRACES").map_or(repository().join("../shared/traces"), PathBuf::from);
    let file = traces.join(name);
    if !file.exists() {
        catena_testing::skip_extra(&format!("{} is not there; CATENA_TRACES names the folder", file.display()));
        return None;
    }
    Some(file)
}

#[test]
fn real_traffic_comes_out_no_worse_than_it_went_in() {
    let Some(mix) = trace("mix.pcap.zst") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("edge.catena");
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let input = read(&mix);
    assert!(input.len() > 200_000);
    let trip = there_and_back(folder.path(), &chain, &mix, &input);
    println!("{:?}", drops(&trip.report));
    trip.hold();
    assert!(trip.there.changed > 50_000 && trip.back.changed > trip.answers * 9 / 10, "{}", trip.back.changed);
    assert_eq!(number(&trip.report, "/dropped"), (trip.there.dropped + trip.back.dropped) as u64);
}

/// Return all files of a folder and of those in it, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

#[test]
fn captures_of_all_kinds_come_out_no_worse_than_they_went_in() {
    const SECOND: u64 = 1_000_000_000;
    let Some(archive) = trace("captures.tar.gz") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [chain, capture, single] = ["edge.catena", "in.pcapng", "single"].map(|name| folder.path().join(name));
    // Days pass between the captures. A mapping that is over may be over earlier in a run with answers, and what comes
    // after it gets other ports than those that were answered.
    let lasting = "/24, udp_timeout = 2400h, icmp_timeout = 2400h, tcp_timeout = 2400h, tcp_transitory = 2400h)";
    std::fs::write(&chain, CHAIN.replace("/24)", lasting)).expect("a chain file");
    std::fs::create_dir(&single).expect("a folder");
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&single).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "{} is unpacked", archive.display());
    // One capture after the other: a run has one clock, and so do all of them then.
    let (mut input, mut end) = (Vec::new(), 1_600_000_000 * SECOND);
    for file in files(&single) {
        let packets = read_ethernet(&file);
        let first = packets.iter().map(|packet| packet.time).min().unwrap_or(0);
        let begin = end + SECOND;
        for packet in packets {
            let time = begin + (packet.time - first).min(3600 * SECOND);
            end = end.max(time);
            input.push(Packet { time, ..packet });
        }
    }
    write(&capture, &input);
    let trip = there_and_back(folder.path(), &chain, &capture, &input);
    println!("{:?}", drops(&trip.report));
    trip.hold();
    assert!(trip.there.changed > 50_000 && trip.back.changed > trip.answers * 9 / 10, "{}", trip.back.changed);
}
