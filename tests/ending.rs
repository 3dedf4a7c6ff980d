//! How a run ends: by signals and by `--duration`, also while its source or its output waits for someone else.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use catena_packet::pcap::{Error, Format, LinkType, Reader, Record, Writer};
use catena_testing::default_signals;

/// The longest that an end may take, on a machine that is busy.
const SOON: Duration = Duration::from_secs(60);

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("c.catena"), "chain c { m = Monitor() in <-> m <-> out }\n")
            .expect("a chain");
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let text = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the name ends with a zero byte and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
        path
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.current_dir(self.folder.path()).args(["run", "c.catena"]).args(args);
        default_signals(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("catena starts")
    }
}

/// A capture of three packets.
fn capture(format: Format) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, format, LinkType::ETHERNET).expect("a writer");
    for time in 1..=3 {
        writer.write(&Record::new(time * 1_000_000_000, LinkType::ETHERNET, &[7; 60])).expect("a record");
    }
    writer.finish().expect("a whole file");
    file
}

/// Count the records of a capture that is whole.
fn records(path: &Path) -> Result<u64, Error> {
    let mut reader = Reader::open(path)?;
    while reader.next()?.is_some() {}
    Ok(reader.records())
}

fn interrupt(child: &Child) {
    // SAFETY: the child is ours and not waited for yet, so the number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
}

/// Wait for the end, at most [`SOON`].
fn end(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return status;
        }
        if start.elapsed() > SOON {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
            panic!("the run does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

fn hang_up(child: &Child) {
    // SAFETY: the child is ours and not waited for yet, so the number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGHUP) }, 0);
}

#[test]
fn a_closed_terminal_ends_a_run_in_order() {
    let place = Place::new();
    let mut child = place.start(&["--in", "gen:flows=100,rate=1Mpps", "--out", "out.pcap.gz", "--quiet"]);
    let out = place.path("out.pcap.gz");
    until("packets are written", || size(&out) > 100_000);
    hang_up(&child);
    let status = end(&mut child);
    assert!(status.success(), "{status}");
    assert!(records(&out).expect("a whole capture") > 1000);
    // As under `nohup`.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_catena"), "run", "c.catena", "--quiet"]);
    shell.args(["--in", "gen:rate=1kpps,time=wall", "--out", "long.pcap"]).current_dir(place.folder.path());
    let mut child = default_signals(&mut shell).stdout(Stdio::null()).spawn().expect("sh starts");
    until("it runs", || size(&place.path("long.pcap")) > 0);
    hang_up(&child);
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().expect("the child is ours").is_none(), "it outlives the terminal");
    interrupt(&child);
    assert!(end(&mut child).success());
}

#[test]
fn an_output_that_nobody_reads_does_not_hold_the_end() {
    let place = Place::new();
    let (out, flows) = (place.fifo("f.pcap"), place.fifo("flows"));
    std::fs::write(place.path("in.pcap"), capture(Format::PCAP)).expect("it can be written");
    std::fs::write(place.path("m.catena"), "chain c { m = Monitor(export = \"flows\") in -> m -> out }\n")
        .expect("a chain");
    let exported = ["run", "m.catena", "--in", "in.pcap", "--out", "made.pcap"];
    for args in [&["run", "c.catena", "--in", "in.pcap", "--out", "f.pcap"][..], &exported] {
        for by_duration in [true, false] {
            let more: &[&str] = if by_duration { &["--duration", "3s"] } else { &[] };
            let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
            command.args([args, more].concat()).current_dir(place.folder.path());
            default_signals(&mut command).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("catena starts");
            let mut err = child.stderr.take().expect("a pipe");
            let mut said = vec![0; "catena: waiting for somebody to read ".len()];
            err.read_exact(&mut said).expect("it says what it waits for");
            assert_eq!(String::from_utf8_lossy(&said), "catena: waiting for somebody to read ");
            if !by_duration {
                interrupt(&child);
            }
            assert_eq!(end(&mut child).code(), Some(1), "the output has nothing, and nothing was taken in");
            let mut rest = String::new();
            err.read_to_string(&mut rest).expect("text");
            assert!(rest.contains("nobody has opened this pipe to read it"), "{rest}");
            assert!(!place.path("made.pcap").exists());
        }
    }
    // A reader that comes late gets everything.
    let mut child = place.start(&["--in", "in.pcap", "--out", "f.pcap"]);
    std::thread::sleep(Duration::from_millis(300));
    let mut read = Reader::open(&out).expect("a capture");
    let mut came = 0;
    while read.next().expect("a record").is_some() {
        came += 1;
    }
    assert_eq!((came, end(&mut child).success()), (3, true));
    drop(flows);
}

#[test]
fn a_live_capture_can_be_read_along() {
    let place = Place::new();
    let wall = "gen:rate=10pps,time=wall,size=60";
    let many = ["--workers", "2"];
    for (input, more) in [(wall, &[][..]), (wall, &many), ("-", &[]), ("-", &many)] {
        let out = place.path("out.pcap");
        let _ = std::fs::remove_file(&out);
        let mut child = place.start(&[&["--in", input, "--out", "out.pcap", "--quiet"], more].concat());
        let mut pipe = child.stdin.take().expect("a pipe");
        if input == "-" {
            pipe.write_all(&capture(Format::PCAP)[..24]).expect("it is read");
        }
        until("the header is there", || size(&out) >= 24);
        if input == "-" {
            pipe.write_all(&capture(Format::PCAP)[24..]).expect("it is read");
        }
        let begun = Instant::now();
        until("packets are there", || size(&out) >= 24 + 3 * 76);
        assert!(begun.elapsed() < Duration::from_secs(4), "{input} {more:?}: {:?}", begun.elapsed());
        assert_eq!((size(&out) - 24) % 76, 0, "they are whole");
        interrupt(&child);
        assert!(end(&mut child).success());
    }
}

#[test]
fn two_signals_at_once_are_one() {
    for (trial, name) in
        ["a.pcap.gz", "b.pcapng.zst", "c.pcap", "d.pcap.gz", "e.pcap.gz", "f.pcap.gz"].iter().enumerate()
    {
        let place = Place::new();
        let workers = if trial % 2 == 0 { "1" } else { "2" };
        let mut child = place.start(&["--in", "gen:flows=100,rate=1Mpps", "--out", name, "--workers", workers]);
        let out = place.path(name);
        until("packets are written", || size(&out) > 100_000);
        interrupt(&child);
        // Signals that wait for a process are one; this one comes when the first has come.
        std::thread::sleep(Duration::from_millis(3));
        interrupt(&child);
        let status = end(&mut child);
        assert!(status.success(), "{name}: {status}");
        let records = records(&out).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(records > 1000, "{name}: {records} records");
    }
}

#[test]
fn timeout_ends_a_run_in_order() {
    let place = Place::new();
    let catena = env!("CARGO_BIN_EXE_catena");
    let args = ["-s", "INT", "3", catena, "run", "c.catena", "--in", "gen:", "--out", "out.pcap.gz", "--quiet"];
    let mut timeout = Command::new("timeout");
    default_signals(&mut timeout).args(args).current_dir(place.folder.path());
    let output = timeout.output().expect("timeout starts");
    assert_eq!(output.status.code(), Some(124), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(records(&place.path("out.pcap.gz")).expect("a whole capture") > 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("packets in ="), "no table");
}

#[test]
fn a_silent_pipe_does_not_hold_the_end() {
    let place = Place::new();
    let whole = capture(Format::PCAP);
    // Nothing at all, a part of the header, the header, a record and a half.
    for sent in [0, 10, 24, 24 + 76 + 40] {
        for by_duration in [true, false] {
            let more: &[&str] = if by_duration { &["--duration", "300ms"] } else { &[] };
            let mut child = place.start(&[&["--in", "-", "--out", "out.pcap.gz"], more].concat());
            let mut pipe = child.stdin.take().expect("a pipe");
            pipe.write_all(&whole[..sent]).expect("it is read");
            if !by_duration {
                until("the output is there", || place.path("out.pcap.gz").exists());
                std::thread::sleep(Duration::from_millis(300));
                interrupt(&child);
            }
            let status = end(&mut child);
            assert!(status.success(), "{sent} bytes: {status}");
            assert_eq!(records(&place.path("out.pcap.gz")).expect("a whole capture"), u64::from(sent > 100));
            std::fs::remove_file(place.path("out.pcap.gz")).expect("it was there");
        }
    }
}

#[test]
fn a_fifo_without_a_writer_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("in.pcap");
    place.fifo("back.pcap");
    let both =
        ["--in", "in.pcap", "--back-in", "back.pcap", "--out", "out.pcap", "--workers", "2", "--duration", "300ms"];
    for args in [&["--in", "in.pcap", "--out", "out.pcap", "--duration", "300ms"][..], &both] {
        let mut child = place.start(args);
        assert!(end(&mut child).success());
        assert_eq!(records(&place.path("out.pcap")).expect("a whole capture"), 0);
    }
    // One side waits, and so does the other one's packet behind it; it is not lost when that side comes.
    let mut child =
        place.start(&["--in", "in.pcap", "--back-in", "back.pcap", "--out", "out.pcap", "--back-out", "b.pcap"]);
    let mut pipe = OpenOptions::new().write(true).open(place.path("in.pcap")).expect("the FIFO is read");
    pipe.write_all(&capture(Format::PCAPNG)).expect("it is read");
    drop(pipe);
    let mut pipe = OpenOptions::new().write(true).open(place.path("back.pcap")).expect("the FIFO is read");
    pipe.write_all(&capture(Format::PCAP)).expect("it is read");
    drop(pipe);
    assert!(end(&mut child).success());
    let came = ["out.pcap", "b.pcap"].map(|name| records(&place.path(name)).expect("a whole capture"));
    assert_eq!(came, [3, 3]);
}

#[test]
fn what_was_read_ahead_is_not_taken_in() {
    let place = Place::new();
    std::fs::write(place.path("back.pcap"), capture(Format::PCAP)).expect("it can be written");
    let mut child = place.start(&["--in", "-", "--back-in", "back.pcap", "--duration", "500ms", "--json"]);
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(&capture(Format::PCAP)[..24]).expect("it is read");
    assert!(end(&mut child).success());
    let report: serde_json::Value =
        serde_json::from_reader(child.stdout.take().expect("a pipe")).expect("the report is JSON");
    assert_eq!(report["input"]["packets"], 0);
    for gauge in report["ports"].as_array().expect("the ports have gauges") {
        assert_eq!(gauge["value"], 0, "{gauge}: a packet may come that was sent before these");
    }
}

#[test]
fn a_stream_of_nothing_does_not_hold_the_end() {
    let place = Place::new();
    let mut child = place.start(&["--in", "-", "--out", "out.pcap", "--duration", "500ms"]);
    let mut pipe = child.stdin.take().expect("a pipe");
    // Stored blocks of no bytes (RFC 1951, §3.2.4), without an end.
    let writer = std::thread::spawn(move || {
        let blocks = [0, 0, 0, 0xff, 0xff].repeat(10_000);
        let _ = pipe.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        while pipe.write_all(&blocks).is_ok() {}
    });
    assert!(end(&mut child).success());
    writer.join().expect("the writer ends");
    assert_eq!(records(&place.path("out.pcap")).expect("a whole capture"), 0);
}

#[test]
fn a_reader_that_stopped_reading_holds_one_signal_not_two() {
    let place = Place::new();
    let mut child = place.start(&["--in", "gen:", "--out", "-", "--quiet"]);
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut [0; 1000]).expect("packets come");
    // By then the pipe is full.
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    let mut said = [0; 40];
    child.stderr.take().expect("a pipe").read_exact(&mut said).expect("it says what it waits for");
    assert_eq!(String::from_utf8_lossy(&said), "catena: waiting for an output to take wh");
    assert!(child.try_wait().expect("the child is ours").is_none(), "what is left is for the reader");
    interrupt(&child);
    assert_eq!(end(&mut child).code(), Some(130));
}

#[test]
fn a_generator_on_the_walls_clock_comes_to_its_end() {
    let place = Place::new();
    let mut child = place.start(&["--in", "gen:time=wall,rate=1kpps,count=200", "--out", "out.pcap"]);
    assert!(end(&mut child).success());
    assert_eq!(records(&place.path("out.pcap")).expect("a whole capture"), 200);
}
