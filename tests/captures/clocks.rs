//! Logical clocks in a run: each source is a root, and a packet has one clock, whoever works on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::notation::craft;
use super::packets::{Packet, write};
use super::{accounted, run};

const START: u64 = 1_800_000_000_000_000_000;
const PACKETS: u64 = 3000;

/// The packets of a capture by their bytes, with their comments.
type Comments = BTreeMap<Vec<u8>, String>;

/// Read a plain pcapng as this program writes it, where each packet differs from all others.
fn comments(path: &Path) -> Comments {
    let packets = commented(path);
    let count = packets.len();
    let comments = Comments::from_iter(packets);
    assert_eq!(comments.len(), count, "two packets are the same");
    comments
}

/// Read the packets of a plain pcapng as this program writes it, with their comments; packets without one have an empty one.
pub fn commented(path: &Path) -> Vec<(Vec<u8>, String)> {
    const ENHANCED_PACKET: usize = 6;
    let file = std::fs::read(path).expect("the capture was written");
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let length = number(at + 4);
        if number(at) == ENHANCED_PACKET {
            let data = at + 28..at + 28 + number(at + 20);
            let option = data.end.next_multiple_of(4);
            // Code 1 and the comment's length, 16 bits each; or the block's length at once.
            let comment = if option + 4 == at + length {
                &[]
            } else {
                assert_eq!(number(option) & 0xffff, 1, "the option is a comment");
                &file[option + 4..option + 4 + (number(option) >> 16)]
            };
            packets.push((file[data].to_vec(), String::from_utf8(comment.to_vec()).expect("a comment is text")));
        }
        at += length;
    }
    packets
}

/// A packet from or to one of many clients, which differs from all others.
fn packet(number: u64, is_reply: bool) -> Packet {
    let client = format!("10.1.{}.{}:2000", number % 3, number % 200 + 1);
    let server = "192.0.2.10:53";
    let (from, to) = if is_reply { (server, &*client) } else { (&*client, server) };
    let mut frame = craft(&format!("udp {from} > {to} nosum len 8"));
    frame[42..50].copy_from_slice(&number.to_be_bytes());
    Packet { time: START + number * 10_000 + u64::from(is_reply) * 3_000, frame, missing: 0 }
}

struct Place {
    folder: tempfile::TempDir,
    sides: [Vec<Packet>; 2],
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sides = [false, true].map(|is_reply| (0..PACKETS).map(|number| packet(number, is_reply)).collect());
        let place = Place { folder, sides };
        std::fs::write(place.path("c.catena"), "chain c { m = Monitor() in <-> m <-> out }").expect("a chain file");
        write(&place.path("in.pcapng"), &place.sides[0]);
        write(&place.path("back-in.pcapng"), &place.sides[1]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Run both sides' packets over these many workers; returns the comments of what leaves by `out` and by `in`.
    fn run(&self, workers: &str) -> [Comments; 2] {
        let [chain, input, back_in] = ["c.catena", "in.pcapng", "back-in.pcapng"].map(|name| self.text(name));
        let [out, back_out] = ["out.pcapng", "back,out.pcapng"].map(|name| self.text(name) + ",clocks");
        let report = run(&[
            &chain,
            "--in",
            &input,
            "--back-in",
            &back_in,
            "--out",
            &out,
            "--back-out",
            &back_out,
            "--workers",
            workers,
        ]);
        accounted(&report);
        let source = |name: &str, root: u8, last| serde_json::json!({ "name": name, "root": root, "count": last });
        assert_eq!(
            report["sources"],
            serde_json::json!([source("in", 1, 2 * PACKETS - 1), source("out", 2, 2 * PACKETS)])
        );
        ["out.pcapng", "back,out.pcapng"].map(|name| comments(&self.path(name)))
    }
}

/// The clocks that a side's packets must have, where so many sides take turns.
fn numbered(root: u8, side: &[Packet], sides: usize) -> Comments {
    let counts = (u64::from(root)..).step_by(sides);
    counts.zip(side).map(|(count, packet)| (packet.frame.clone(), format!("{root}:{count}"))).collect()
}

#[test]
fn each_source_is_a_root_and_workers_change_no_clock() {
    let place = Place::new();
    let expected = [numbered(1, &place.sides[0], 2), numbered(2, &place.sides[1], 2)];
    for workers in ["1", "2", "3"] {
        let came = place.run(workers);
        assert!(came == expected, "{workers} workers: {:?}", came.map(|side| side.into_values().next()));
    }
}

#[test]
fn queues_between_tasks_change_no_clock() {
    const CHAINS: &str = "class some = \"udp src portrange 2000-2000 and src net 10.1.1.0/24\"\nclass rest = \"udp\"\n\
        chain a for some { in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
        chain b for rest { in -> Monitor() -> out }\n\
        cpu a : b = 1 : 3\n";
    const RACK: &str = "name = \"one\"\npacket_bytes = 512\n\n[[server]]\nname = \"here\"\ncores = 1\nsteering_cores = 0\n\
        shared = true\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    let place = Place::new();
    let [chains, rack, plan, input, out] =
        ["two.catena", "rack.toml", "plan.json", "in.pcapng", "out.pcapng"].map(|name| place.text(name));
    std::fs::write(&chains, CHAINS).expect("a chain file");
    std::fs::write(&rack, RACK).expect("a rack");
    let planned = Command::new(env!("CARGO_BIN_EXE_catena"))
        .args(["plan", &chains, "--rack", &rack, "--profile", "none", "-o", &plan])
        .output();
    let planned = planned.expect("catena starts");
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
    let report = run(&[&chains, "--in", &input, "--out", &(out + ",clocks"), "--plan", &plan]);
    let queued = |module: &serde_json::Value| module["name"] == "queue a/acl" && module["packets"] == PACKETS / 3;
    assert!(report["modules"].as_array().is_some_and(|modules| modules.iter().any(queued)), "{report}");
    let (came, expected) = (comments(&place.path("out.pcapng")), numbered(1, &place.sides[0], 1));
    // A full queue may have lost some.
    assert!(came.len() > expected.len() / 2);
    assert!(came.iter().all(|(frame, clock)| expected.get(frame) == Some(clock)));
}

#[test]
fn wireshark_shows_clocks() {
    let place = Place::new();
    let [out, _] = place.run("2");
    let shown = Command::new("tshark")
        .args(["-n", "-r", &place.text("out.pcapng"), "-T", "fields", "-e", "udp.payload", "-e", "frame.comment"])
        .output();
    let Ok(shown) = shown else {
        return catena_testing::skip("tshark cannot be run", "install tshark");
    };
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let shown = String::from_utf8_lossy(&shown.stdout);
    let mut shown: Vec<&str> = shown.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let mut written: Vec<&str> = out.values().map(String::as_str).collect();
    shown.sort_unstable();
    written.sort_unstable();
    assert_eq!(written.len() as u64, PACKETS);
    assert_eq!(shown, written);
}

#[test]
fn clocks_are_refused_where_nothing_carries_them() {
    let place = Place::new();
    let [chain, input] = ["c.catena", "in.pcapng"].map(|name| place.text(name));
    for (option, name, says) in [
        ("--out", "out.pcap,clocks", "pcap has none; try FILE.pcapng,clocks"),
        ("--out", "out.cap.zst,clocks", "pcap has none; try FILE.pcapng,clocks"),
        ("--back-out", "out.pcap.gz,clocks", "pcap has none; try FILE.pcapng,clocks"),
        ("--out", "out.pcapng,clock", "`clock` is no option of a capture; there is `clocks`"),
        ("--out", "out.txt,clocks", "neither the name of a capture"),
        ("--back-out", "out.txt,clocks", "not the name of a capture"),
    ] {
        let name = place.text(name);
        let output =
            Command::new(env!("CARGO_BIN_EXE_catena")).args(["run", &chain, "--in", &input, option, &name]).output();
        let output = output.expect("catena starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && told.contains(&format!("{option} {name}: ")) && told.contains(says),
            "{told}"
        );
    }
    let made = std::fs::read_dir(place.folder.path()).expect("a folder").count();
    assert_eq!(made, 3, "nothing was written");
}
