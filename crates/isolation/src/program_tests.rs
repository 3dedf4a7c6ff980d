//! The BPF program itself, built as an ordinary one and told what happens line by line (`bpf/host/host.c`): in every order, without a
//! kernel and privileges.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proptest::prelude::*;

use crate::charge::tests::softirqs;
use crate::charge::{Account, Charge, Softirq, Totals};

/// What stands in place of the kernel's helpers, by their numbers there.
const HELPERS: [(u32, &str); 7] =
    [(1, "lookup"), (2, "update"), (3, "erase"), (5, "clock"), (14, "task"), (80, "cgroup"), (113, "read")];

/// Build it, once for all tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
        for source in std::fs::read_dir(sources).expect("the program's sources").flatten() {
            let (path, name) = (source.path(), source.file_name());
            if !path.is_file() {
                continue;
            }
            let mut text = std::fs::read_to_string(path).expect("a source");
            if name == "kernel.h" {
                for (number, here) in HELPERS {
                    let there = format!("= (void *){number};");
                    assert!(text.contains(&there), "helper {number} is used");
                    text = text.replace(&there, &format!("= host_{here};"));
                }
                assert!(!text.contains("= (void *)"), "every helper is one of {HELPERS:?}");
            }
            std::fs::write(folder.path().join(name), text).expect("a copy");
        }
        let program = folder.path().join("host");
        let mut compiler = Command::new("cc");
        // `raise` and others are names of C's library, too, which nothing here calls.
        compiler.args(["-std=gnu11", "-O1", "-fno-builtin", "-w", "-I"]).arg(folder.path());
        let output = compiler.arg("-o").arg(&program).arg(sources.join("host/host.c")).output().expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (folder, program)
    });
    program
}

/// What was charged and measured when it was to be shown.
#[derive(Debug, Default)]
struct Shown {
    charges: BTreeMap<Account, Charge>,
    totals: Totals,
    /// How often the clock was read.
    readings: u64,
}

impl Shown {
    fn measured(&self) -> u64 {
        self.totals.receive_ns + self.totals.transmit_ns + self.totals.interrupt_ns
    }

    fn sum(&self, of: impl Fn(&Charge) -> u64) -> u64 {
        self.charges.values().map(of).sum()
    }

    fn of(&self, account: Account) -> (u64, u64) {
        self.charges.get(&account).map_or((0, 0), |charge| (charge.ns, charge.packets))
    }
}

/// Tell it what happens, and read what it shows.
fn told(what: &str) -> Vec<Shown> {
    let mut command = Command::new(program());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let mut input = child.stdin.take().expect("its input");
    let what = what.to_owned();
    let told = std::thread::spawn(move || input.write_all(what.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    told.join().expect("no panic").expect("it reads on");
    assert!(output.status.success(), "{}", output.status);
    let (mut all, mut shown) = (Vec::new(), Shown::default());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split(' ');
        let kind = words.next();
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
        match (kind, &numbers[..]) {
            (Some("charge"), &[account, ns, packets, sent, drops, hosted]) => {
                let charge = Charge { ns, packets, sent, drops, hosted };
                if charge != Charge::default() {
                    shown.charges.insert(Account::from_key(account), charge);
                }
            }
            (Some("totals"), &[receive_ns, transmit_ns, interrupt_ns, readings]) => {
                shown.readings = readings;
                shown.totals = Totals { receive_ns, transmit_ns, softirqs: 0, interrupt_ns };
                all.push(std::mem::take(&mut shown));
            }
            _ => panic!("{line}"),
        }
    }
    all
}

fn one(what: &str) -> Shown {
    let mut all = told(&format!("{what}show\n"));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn softirqs_are_settled_as_they_are_here(softirqs in prop::collection::vec(softirqs(), 50)) {
        let mut what = String::new();
        for Softirq { slots, fixed, owed, pending, unclaimed } in &softirqs {
            what.push_str("begin\n");
            for slot in slots {
                writeln!(what, "slot {} {} {} 0 0", slot.account.key(), slot.ns, slot.packets).unwrap();
            }
            // Only transmit softirqs pay for such before them that sent nothing.
            writeln!(what, "settle 2 {fixed} {pending} {unclaimed} {owed}\nshow").unwrap();
        }
        for (softirq, shown) in softirqs.iter().zip(told(&what)) {
            let charged = shown.charges.iter().map(|(account, charge)| (*account, charge.ns)).filter(|(_, ns)| *ns > 0);
            let wanted = softirq.settle().into_iter().filter(|(_, ns)| *ns > 0);
            prop_assert_eq!(charged.collect::<BTreeMap<_, _>>(), wanted.collect::<BTreeMap<_, _>>());
        }
    }
}

/// A CPU in some order of events that a kernel may have.
#[derive(Default)]
struct Cpu {
    softirq: Option<u64>,
    interrupt: bool,
    /// Packets of the softirq under way that nobody claimed.
    open: Vec<u64>,
    /// Whether the last event was that the newest of them came.
    came: bool,
}

/// A kernel that does what a seed says.
struct Kernel {
    random: u64,
    what: String,
    cpus: [Cpu; 2],
    /// Where packets are, and which of them wait for a process.
    free: Vec<u64>,
    backlog: Vec<u64>,
    received: u64,
}

/// Each of a cgroup, of the second half of which there is no room in the map where it is small.
const SOCKETS: u64 = 40;

impl Kernel {
    fn new(seed: u64) -> Kernel {
        let mut kernel = Kernel {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            what: "begin\n".into(),
            cpus: Default::default(),
            free: (1..60).collect(),
            backlog: Vec::new(),
            received: 0,
        };
        for socket in 1..=SOCKETS {
            // Some have no cgroup, or wait for nobody any more.
            let state = if socket % 10 == 0 { 6 } else { 1 };
            kernel.say(&format!("socket {socket} {} {state}", if socket % 9 == 0 { 0 } else { socket }));
        }
        kernel
    }

    fn say(&mut self, line: &str) {
        self.what.push_str(line);
        self.what.push('\n');
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// Something happens on a CPU.
    fn step(&mut self) {
        let at = self.draw(2) as usize;
        let (ns, socket, process) = (1 + self.draw(3_000), 1 + self.draw(SOCKETS), self.draw(SOCKETS));
        self.say(&format!("cpu {at}\nafter {ns}"));
        let came = std::mem::take(&mut self.cpus[at].came);
        if self.cpus[at].interrupt {
            match self.draw(2) {
                0 => self.say("raise 3"),
                _ => {
                    self.say("return");
                    self.cpus[at].interrupt = false;
                }
            }
            return;
        }
        let Some(vector) = self.cpus[at].softirq else {
            match self.draw(3) {
                0 => self.interrupt(at),
                1 => {
                    let vector = 2 + self.draw(2);
                    self.say(&format!("process {process}\nsoftirq {vector}"));
                    self.cpus[at].softirq = Some(vector);
                }
                _ => {
                    let Some(packet) = self.backlog.pop() else { return };
                    self.say(&format!("segment {packet} {socket}"));
                    self.free.push(packet);
                }
            }
            return;
        };
        match self.draw(16) {
            0..2 => {
                self.say(&format!("end {vector}"));
                self.cpus[at].softirq = None;
                // Some are waited for, others never were.
                for packet in std::mem::take(&mut self.cpus[at].open) {
                    let to = if self.draw(2) == 0 { &mut self.backlog } else { &mut self.free };
                    to.push(packet);
                }
            }
            2 => self.interrupt(at),
            3 if self.draw(2) == 0 => self.say("poll"),
            3 => self.say("driver"),
            4..7 if vector == 2 => {
                let Some(packet) = self.free.first().copied() else { return };
                self.say(&format!("send {packet} {}", if socket > 30 { 0 } else { socket }));
            }
            4 if came => {
                // Without its outer headers.
                let packet = self.cpus[at].open.last().expect("it came");
                let line = format!("receive {packet}");
                self.say(&line);
            }
            4..9 => {
                let Some(packet) = (!self.free.is_empty()).then(|| self.free.remove(0)) else { return };
                self.say(&format!("receive {packet}"));
                self.cpus[at].open.push(packet);
                (self.received, self.cpus[at].came) = (self.received + 1, true);
            }
            _ => {
                if self.cpus[at].open.is_empty() {
                    return;
                }
                let packet = self.cpus[at].open.remove(0);
                match self.draw(4) {
                    0 => self.say(&format!("ready {socket}")),
                    1 => self.say(&format!("drop {packet} {} 2", if socket > 20 { socket } else { 0 })),
                    _ => self.say(&format!("segment {packet} {socket}")),
                }
                self.free.push(packet);
            }
        }
    }

    fn interrupt(&mut self, at: usize) {
        self.say("interrupt");
        self.cpus[at].interrupt = true;
    }

    /// All softirqs end, and one of each kind and CPU takes what is left of interrupts and of those that sent nothing.
    fn end(&mut self) {
        for at in 0..2 {
            self.say(&format!("cpu {at}"));
            if self.cpus[at].interrupt {
                self.say("return");
            }
            if let Some(vector) = self.cpus[at].softirq {
                self.say(&format!("end {vector}"));
            }
            self.say("softirq 3\nafter 5\nend 3\nafter 20000000\nsoftirq 2\nafter 5\nend 2");
            self.say("after 20000000\nsoftirq 2\nafter 5\nsend 1 1\nafter 5\nend 2");
        }
        self.say("show");
    }
}

#[test]
fn in_whatever_order_things_happen_all_time_is_charged_once() {
    let mut full = 0;
    for seed in 0..300 {
        let mut kernel = Kernel::new(seed);
        let room = if seed % 3 == 0 { 12 } else { 1_000 };
        kernel.say(&format!("room {room}"));
        (0..400).for_each(|_| kernel.step());
        kernel.end();
        let mut shown = told(&kernel.what);
        let shown = shown.remove(0);
        let about = |what: &str| format!("seed {seed}: {what}: {shown:#?}");
        let negative = shown
            .charges
            .values()
            .any(|c| [c.ns, c.packets, c.sent, c.drops, c.hosted].map(u64::cast_signed).iter().any(|n| *n < 0));
        assert!(!negative, "{}", about("below zero"));
        assert_eq!(shown.sum(|charge| charge.ns), shown.measured(), "{}", about("charged and measured"));
        assert_eq!(shown.sum(|charge| charge.packets), kernel.received, "{}", about("packets"));
        assert!(shown.sum(|charge| charge.hosted) <= shown.measured(), "{}", about("hosted"));
        if shown.of(Account::NoRoom).0 > 0 {
            full += 1;
        }
    }
    assert!(full > 20, "{full} of 100 had more accounts than room");
}

#[test]
fn what_has_no_room_in_the_map_is_on_one_account() {
    let mut what = "room 4\n".to_owned();
    for cgroup in 1..=6 {
        writeln!(what, "socket {cgroup} {cgroup} 1\nsoftirq 3\nafter 10\nreceive {cgroup}\nafter 100").unwrap();
        writeln!(what, "ready {cgroup}\nafter 5\nend 3").unwrap();
    }
    let shown = one(&what);
    // One entry is its own.
    let each = (115, 1);
    let wanted = [Account::Cgroup(1), Account::Cgroup(2), Account::Cgroup(3)].map(|account| (account, each));
    let of: Vec<_> = shown.charges.keys().map(|account| (*account, shown.of(*account))).collect();
    assert_eq!(of, [&wanted[..], &[(Account::NoRoom, (345, 3))]].concat());
}

#[test]
fn a_socket_that_has_ended_is_none() {
    // TIME_WAIT and NEW_SYN_RECV are of other structures, which have no cgroup.
    for (state, account) in [(1, Account::Cgroup(7)), (6, Account::NoSocket), (12, Account::NoSocket)] {
        let shown = one(&format!(
            "socket 1 7 {state}\nsoftirq 3\nafter 10\nreceive 5\nafter 100\nsegment 5 1\nafter 5\nend 3\n"
        ));
        assert_eq!(shown.of(account), (115, 1), "state {state}: {shown:?}");
    }
}

#[test]
fn transmit_softirqs_that_sent_nothing_are_of_who_sends_soon_after() {
    let sends = |after_ns: u64| {
        one(&format!(
            "socket 1 7 1\nsoftirq 2\nafter 400\nend 2\nafter {after_ns}\nsoftirq 2\nafter 50\nsend 5 1\nafter 50\nend 2\n"
        ))
    };
    let soon = sends(9_000_000);
    assert_eq!((soon.of(Account::Cgroup(7)).0, soon.of(Account::NoPacket).0), (500, 0));
    let late = sends(11_000_000);
    assert_eq!((late.of(Account::Cgroup(7)).0, late.of(Account::NoPacket).0), (100, 400));
}

#[test]
fn a_packet_that_its_process_takes_up_is_that_process_s() {
    let came = "socket 1 7 1\nprocess 9\nafter 5000\nsoftirq 3\nafter 10\nreceive 5\nafter 100\nend 3\n";
    let before = one(came);
    assert_eq!((before.of(Account::NoSocket), before.of(Account::Cgroup(7))), ((110, 1), (0, 0)));
    let after = one(&format!("{came}after 1000\nsegment 5 1\n"));
    assert_eq!((after.of(Account::NoSocket), after.of(Account::Cgroup(7))), ((0, 0), (110, 1)));
    // What a packet shares with others stays nobody's.
    let two = "socket 1 7 1\nafter 5000\nsoftirq 3\nafter 10\nreceive 5\nafter 100\nreceive 6\nafter 60\nsegment 6 1\n";
    let shared = one(&format!("{two}after 1\ndriver\nafter 8\nend 3\nafter 1000\nsegment 5 1\n"));
    assert_eq!((shared.of(Account::NoSocket), shared.of(Account::Cgroup(7))), ((4, 0), (175, 2)));
    // So long after it is of another packet.
    let late = one(&format!("{came}after 2000000000\nsegment 5 1\n"));
    assert_eq!((late.of(Account::NoSocket), late.of(Account::Cgroup(7))), ((110, 1), (0, 0)));
}

/// Sixteen accounts have a place in a softirq; when another comes, those before are settled, and the packet at hand is not nobody's.
#[test]
fn a_softirq_for_many_cgroups_charges_each_its_packet() {
    let mut what: String = (1..=40).map(|cgroup| format!("socket {cgroup} {cgroup} 1\n")).collect();
    // After one of several packets softirqs are divided.
    what.push_str("softirq 3\nreceive 41\nreceive 42\nend 3\nsoftirq 3\n");
    for cgroup in 1..=40 {
        writeln!(what, "after 100\nreceive {cgroup}\nafter 50\nready {cgroup}\ndriver").unwrap();
    }
    let mut shown = one(&format!("{what}end 3\n"));
    assert_eq!(shown.charges.remove(&Account::NoSocket).map(|charge| (charge.ns, charge.packets)), Some((0, 2)));
    assert_eq!(shown.charges.len(), 40, "{shown:?}");
    // What the driver did for one packet is shared by those before it, if these are settled then.
    let each = |(account, charge): (&Account, &Charge)| {
        assert!(
            matches!(account, Account::Cgroup(_)) && charge.packets == 1 && charge.ns.abs_diff(150) < 15,
            "{shown:?}"
        );
        charge.ns
    };
    assert_eq!(shown.charges.iter().map(each).sum::<u64>(), 40 * 150);
}

/// On another CPU, before the softirq is done with it.
#[test]
fn a_packet_that_is_taken_up_at_once_is_of_who_takes_it_up() {
    let shown = one(
        "socket 1 7 1\ncpu 0\nsoftirq 3\nafter 10\nreceive 5\nafter 100\ncpu 1\nsegment 5 1\nafter 20\ncpu 0\nend 3\n",
    );
    assert_eq!((shown.of(Account::Cgroup(7)), shown.of(Account::NoSocket)), ((130, 1), (0, 0)));
}

#[test]
fn a_packet_of_one_socket_is_all_its_and_two_share_what_there_was_before_the_second() {
    let begin = "socket 1 7 1\nsocket 2 8 1\nsoftirq 3\nreceive 5\nafter 100\nready 1\nafter 60\n";
    let one_socket = one(&format!("{begin}end 3\n"));
    assert_eq!(one_socket.of(Account::Cgroup(7)), (160, 1));
    // The next packet of the softirq is another one's alone.
    let two_packets = one(&format!("{begin}receive 6\nafter 30\nready 2\nafter 10\nend 3\n"));
    assert_eq!((two_packets.of(Account::Cgroup(7)), two_packets.of(Account::Cgroup(8))), ((160, 1), (40, 1)));
    let two_sockets = one(&format!("{begin}ready 2\nafter 10\nend 3\n"));
    assert_eq!((two_sockets.of(Account::Cgroup(7)), two_sockets.of(Account::Cgroup(8))), ((80, 1), (90, 0)));
    // The one after it is charged exactly: nobody has others pay for more than one in many.
    let next = "driver\nreceive 6\nafter 1000\nready 1\nafter 500\nready 2\nafter 1\ndriver\n";
    let two_packets = one(&format!("{begin}ready 2\nafter 10\n{next}end 3\n"));
    assert_eq!((two_packets.of(Account::Cgroup(7)), two_packets.of(Account::Cgroup(8))), ((1080, 2), (591, 0)));
}

/// A softirq for a packet: its begin, the packet, and the end of its poll.
const ALONE: &str = "softirq 3\nafter 10\nreceive 5\nafter 100\nready 1\nafter 20\npoll\nafter 6\nend 3\n";

#[test]
fn a_packet_alone_in_its_softirq_takes_two_readings_of_the_clock() {
    let alone = one(&format!("socket 1 7 1\n{ALONE}{ALONE}"));
    assert_eq!((alone.of(Account::Cgroup(7)), alone.readings), ((272, 2), 4), "{alone:?}");
}

#[test]
fn softirqs_with_several_packets_are_divided_after_the_first() {
    let begin = "softirq 3\nafter 10\nreceive 5\nafter 100\nready 1\nafter 20\n";
    let two = format!("{begin}receive 6\nafter 30\nready 2\nafter 10\npoll\nafter 6\nend 3\n");
    let sockets = "socket 1 7 1\nsocket 2 8 1\n";
    let first = one(&format!("{sockets}{two}"));
    assert_eq!((first.of(Account::Cgroup(7)), first.of(Account::Cgroup(8))), ((133, 1), (43, 1)));
    let both = one(&format!("{sockets}{two}{two}"));
    assert_eq!((both.of(Account::Cgroup(7)), both.of(Account::Cgroup(8))), ((133 + 128, 2), (43 + 48, 2)));
    // So is a softirq with two polls, whose packets may not be seen.
    let polls = one(&format!("{sockets}{begin}poll\nafter 500\npoll\nend 3\n{ALONE}"));
    assert_eq!((polls.of(Account::Cgroup(7)), polls.readings), ((630 + 136, 2), 3 + 4), "{polls:?}");
    // For a while.
    let softirqs = 1_024;
    let more = |count: usize| one(&format!("{sockets}{two}{}", ALONE.repeat(count))).readings;
    assert_eq!([more(softirqs + 1) - more(softirqs), more(softirqs) - more(softirqs - 1)], [2, 4]);
}

#[test]
fn an_interrupt_takes_outside_of_its_handler_what_one_of_its_kind_takes() {
    let of = |kind: u32| {
        let interrupt = format!("interrupt {kind}\nafter 10\nraise 3\nreturn {kind}\n");
        one(&format!("socket 1 7 1\noutside 3000 200\n{interrupt}softirq 3\nreceive 5\nafter 40\nready 1\nend 3\n"))
            .of(Account::Cgroup(7))
    };
    let [device, timer, call] = [0, 1, 2].map(of);
    assert_eq!([device, timer, call], [(250, 1), (3050, 1), (250, 1)]);
}
