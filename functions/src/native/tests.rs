//! Small libraries are built by the C compiler of the machine, loaded, and given packets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use catena_dataplane::{Context, Graph, Inlet, Module, NodeId};
use catena_packet::{Batch, Clock, Depot, DepotHandle, Meta};
use catena_state::{Declaration, Delayed, Object, Scope, Share};

use super::batches::Batches;
use super::{DESCRIPTOR, Native};
use crate::config::{ArgError, Args, Value};
use crate::function::Runner;
use crate::testing::build_taking;
use crate::testing::engines::{Late, delays, tests};

/// All of them on engines that are late.
pub const LATE: Late = Late {
    source: include_str!("tests.rs"),
    quick: tests![
        verdicts_lead_out_or_drop,
        a_lying_verdict_drops_the_packet,
        packets_grow_and_shrink_within_their_room,
        state_is_kept_bounded_and_swept,
        mistakes_are_refused_and_counted,
        randomness_repeats,
        finish_tells_what_failed,
        init_refuses_in_its_own_words,
    ],
    slow: tests![what_was_built_with_an_earlier_header_is_loaded],
    apart: &[
        // No state.
        "what_is_no_function_is_named",
        "what_is_no_library_is_named",
        "the_header_is_clean",
        // Looks into the module of local state.
        "what_workers_would_have_apart_is_refused_with_several",
        // Packets that wait belong to one build: refused, as `late_tests` says.
        "a_new_build_goes_on_with_the_state_of_the_old_one",
    ],
};

/// A library that was built for a test, and the folder that goes with it. Once loaded it needs no file.
pub struct Library {
    /// Where it is.
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

/// Build one of the C files beside this one, once a test; `None`, with a message, where there is no C compiler.
pub fn library(name: &str) -> Option<Rc<Library>> {
    thread_local! {
        // Tests have a thread each.
        static BUILT: RefCell<HashMap<String, Rc<Library>>> = RefCell::default();
    }
    if let Some(built) = BUILT.with_borrow(|built| built.get(name).cloned()) {
        return Some(built);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{name}.so"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = here.join("src/native/test").join(format!("{name}.c"));
    let example = here.join("../examples/native").join(format!("{name}.c"));
    let source = if beside.exists() { beside } else { example };
    compile("cc", &["-std=c11"], &source, &path).then(|| {
        let library = Rc::new(Library { path, _folder: folder });
        BUILT.with_borrow_mut(|built| built.insert(name.to_owned(), library.clone()));
        library
    })
}

fn compile(compiler: &str, flags: &[&str], source: &Path, to: &Path) -> bool {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    let out = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I"])
        .arg(include)
        .args(flags)
        .arg("-o")
        .args([to, source])
        .output();
    match out {
        Ok(out) => {
            assert!(out.status.success(), "{compiler}: {}", String::from_utf8_lossy(&out.stderr));
            true
        }
        Err(_) => {
            catena_testing::skip(&format!("there is no `{compiler}`"), &format!("install {compiler}"));
            false
        }
    }
}

pub type Built = Result<Box<dyn Module>, ArgError>;

pub fn build(lib: &Path, fields: &[(&str, Value)], more: &[(&str, &str)], share: Share) -> Built {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let mut args =
        Args::default().with("lib", Value::Text(lib.to_str().unwrap().to_owned())).with("args", Value::Record(fields));
    for (name, value) in more {
        args = args.with(name, Value::Text((*value).to_owned()));
    }
    build_taking(&["1"], &DESCRIPTOR, &args, share)
}

pub fn refusal(lib: &Path, fields: &[(&str, Value)], more: &[(&str, &str)]) -> String {
    build(lib, fields, more, Share::WHOLE).err().expect("it must be refused").to_string()
}

/// Keeps what comes out: clock, metadata, bytes.
#[derive(Default)]
struct Exit(Vec<(u64, Meta, Vec<u8>)>);

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.0.extend(batch.iter().map(|packet| (packet.meta().clock.bits(), *packet.meta(), packet.data().to_vec())));
        cx.pool().put_batch(batch);
    }
}

/// A Native between gates 0 to 15.
pub struct Bench {
    graph: Graph,
    native: NodeId,
    exits: Vec<NodeId>,
    cx: Context,
    depot: DepotHandle,
    /// Packets so far: their clocks rise from 1, as those of a source do.
    clock: u64,
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    Out { gate: u16, mark: u32, bytes: Vec<u8> },
    Dropped(&'static str),
}

impl Bench {
    pub fn new(native: Box<dyn Module>) -> Self {
        let depot = Depot::map(256, 0).unwrap();
        let cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let native = graph.add("native", native);
        let exits = (0..16).map(|gate| {
            let exit = graph.add("exit", Box::<Exit>::default());
            graph.connect(native, gate, exit);
            exit
        });
        let exits = exits.collect();
        Bench { graph, native, exits, cx, depot, clock: 0 }
    }

    fn probe(fields: &[(&str, Value)]) -> Option<Self> {
        Some(Bench::new(build(&library("probe")?.path, fields, &[("log", "warning")], Share::WHOLE).unwrap()))
    }

    /// Send packets into a gate together; returns their fates in order.
    pub fn send(&mut self, gate: u16, frames: &[Vec<u8>]) -> Vec<Fate> {
        let mut fates: Vec<Option<Fate>> = frames.iter().map(|_| None).collect();
        let before = self.drops();
        let mut batch = Batch::new();
        let first = self.clock + 1;
        for frame in frames {
            self.clock += 1;
            let mut packet = self.cx.pool().take(frame.len()).unwrap();
            packet.fill(frame);
            packet.meta_mut().clock = Clock::from_bits(self.clock);
            batch.push(packet);
        }
        self.cx.set_now(1_000_000_000);
        self.graph.run(&mut self.cx, Inlet { node: self.native, gate }, &mut batch);
        self.collect(first, &mut fates);
        // Who is late comes within some polls; who does not was dropped.
        (0..if delays().is_some() { 64 } else { 0 }).for_each(|_| {
            self.graph.idle(&mut self.cx);
            self.collect(first, &mut fates);
        });
        let mut dropped = self.drops();
        for (reason, count) in &mut dropped {
            *count -= before.iter().find(|(r, _)| r == reason).map_or(0, |(_, c)| *c);
        }
        let reasons = dropped.iter().flat_map(|&(reason, count)| std::iter::repeat_n(reason, count as usize));
        let mut reasons: Vec<_> = reasons.collect();
        let fates = fates.into_iter().map(|fate| fate.unwrap_or_else(|| Fate::Dropped(reasons.pop().unwrap())));
        fates.collect()
    }

    fn collect(&mut self, first: u64, fates: &mut [Option<Fate>]) {
        for (&exit, gate) in self.exits.iter().zip(0..) {
            for (clock, meta, bytes) in self.graph.module_mut::<Exit>(exit).unwrap().0.drain(..) {
                fates[(clock - first) as usize] = Some(Fate::Out { gate, mark: meta.mark, bytes });
            }
        }
    }

    fn one(&mut self, gate: u16, what: u8) -> Fate {
        self.send(gate, &[packet(what, 1)]).pop().unwrap()
    }

    fn mark(&mut self, what: u8, source: u8) -> u32 {
        match self.send(0, &[packet(what, source)]).pop() {
            Some(Fate::Out { gate: 0, mark, .. }) => mark,
            other => panic!("{other:?}"),
        }
    }

    fn declared(&mut self) -> Vec<Declaration> {
        let (graph, native) = (&mut self.graph, self.native);
        match delays() {
            None => graph.module_mut::<Batches>(native).unwrap().native.state().to_vec(),
            Some(_) => {
                graph.module_mut::<Runner<Delayed, Native<Delayed>>>(native).unwrap().function().state().to_vec()
            }
        }
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        let nodes = self.graph.nodes();
        let (_, info) = nodes.into_iter().find(|(id, _)| *id == self.native).unwrap();
        info.counters.drops.iter().map(|(reason, count)| (reason.text(info.reasons), count)).collect()
    }

    pub fn gauge(&self, name: &str) -> Option<u64> {
        let mut found = None;
        self.graph.gauges(&mut |_, gauge| found = found.or((gauge.name == name).then_some(gauge.value)));
        found
    }

    /// Let it finish; every buffer must be back.
    pub fn end(mut self) -> Vec<String> {
        self.graph.tick(&mut self.cx);
        let failed = self.graph.end(&mut self.cx).into_iter().map(|(_, why)| why).collect();
        let Bench { graph, cx, depot, .. } = self;
        drop((graph, cx));
        assert!(depot.all_home());
        failed
    }
}

/// A UDP packet from 10.0.0.`source` whose payload is `what` and three more bytes.
pub fn packet(what: u8, source: u8) -> Vec<u8> {
    let mut bytes = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0".to_vec();
    bytes.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 192, 0, 2, 1]);
    bytes.extend([0x12, 0x34, 0, 53, 0, 12, 0, 0]);
    bytes.extend([what, 1, 2, 3]);
    bytes
}

fn passed(gate: u16, mark: u32, what: u8) -> Fate {
    Fate::Out { gate, mark, bytes: packet(what, 1) }
}

#[test]
fn verdicts_lead_out_or_drop() {
    let Some(mut bench) = Bench::probe(&[("number", Value::Integer(5))]) else { return };
    assert_eq!(bench.one(0, b'-'), passed(0, 5, b'-'));
    assert_eq!(bench.one(1, b'-'), passed(1, 5, b'-'));
    assert_eq!(bench.one(0, b'd'), Fate::Dropped("asked for"));
    // Way 1 is led on by the chain, way 2 is not.
    assert_eq!(bench.one(0, b'w'), passed(2, 0, b'w'));
    assert_eq!(bench.one(1, b'w'), passed(3, 0, b'w'));
    assert_eq!(bench.one(0, b'W'), passed(0, 0, b'W'));
    assert_eq!(bench.one(1, b'W'), passed(1, 0, b'W'));
    // A batch of all kinds stays in order.
    let frames: Vec<_> = b"-d-w-d".iter().map(|what| packet(*what, 1)).collect();
    let fates = bench.send(0, &frames);
    let out = |fate: &Fate| matches!(fate, Fate::Out { .. });
    assert_eq!(fates.iter().map(out).collect::<Vec<_>>(), [true, false, true, true, true, false]);
    assert_eq!((bench.gauge("packets[0]"), bench.gauge("packets[1]")), (Some(10), Some(3)));
    assert!(bench.end().is_empty());
}

#[test]
fn a_lying_verdict_drops_the_packet() {
    let Some(mut bench) = Bench::probe(&[]) else { return };
    for what in [b'b', b'B', b'm'] {
        assert_eq!(bench.one(0, what), Fate::Dropped("function gave a bad verdict"), "{}", what as char);
    }
    for what in [b'l', b'p'] {
        assert_eq!(bench.one(0, what), Fate::Dropped("function gave a wrong length"), "{}", what as char);
    }
    assert_eq!(bench.one(0, b'-'), passed(0, 7, b'-'));
    assert!(bench.end().is_empty());
}

#[test]
fn packets_grow_and_shrink_within_their_room() {
    let Some(mut bench) = Bench::probe(&[]) else { return };
    let original = packet(b'f', 1);
    let mut tagged = original[..12].to_vec();
    tagged.extend([0x81, 0, 0, 5]);
    tagged.extend(&original[12..]);
    assert_eq!(bench.one(0, b'f'), Fate::Out { gate: 0, mark: 0, bytes: tagged });
    assert_eq!(bench.one(0, b'F'), passed(0, 1, b'F'));
    assert_eq!(bench.one(0, b'e'), passed(0, 1, b'e'));
    let bytes = packet(b's', 1)[4..].to_vec();
    assert_eq!(bench.one(0, b's'), Fate::Out { gate: 0, mark: 0, bytes });
    assert!(bench.end().is_empty());
}

#[test]
fn state_is_kept_bounded_and_swept() {
    let Some(mut bench) = Bench::probe(&[]) else { return };
    assert_eq!((1..=3).map(|source| bench.mark(b'c', source)).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(bench.mark(b'c', 4), 99, "there is room for three");
    assert_eq!((bench.mark(b'c', 2), bench.mark(b'c', 2)), (2, 3));
    assert_eq!(bench.gauge("seen"), Some(3));
    // Three places looked at, three look-ups during the sweep refused, two entries left.
    assert_eq!(bench.mark(b'v', 1), 3 | 3 << 8 | 2 << 16);
    assert_eq!((bench.gauge("seen"), bench.gauge("mistakes")), (Some(2), Some(3)));
    assert_eq!(bench.mark(b'c', 2), 1);
    let declared: Vec<_> = bench.declared().iter().map(|d| (d.name, d.object, d.scope)).collect();
    assert_eq!(declared, [("seen", Object::FlowMap, Scope::Source), ("packets", Object::Shared, Scope::Global)]);
    assert!(bench.end().is_empty());
}

#[test]
fn mistakes_are_refused_and_counted() {
    let Some(mut bench) = Bench::probe(&[]) else { return };
    assert_eq!(bench.mark(b'x', 1), 8);
    assert_eq!(bench.gauge("mistakes"), Some(9));
    assert_eq!(bench.one(0, b'-'), passed(0, 7, b'-'));
    assert!(bench.end().is_empty());
}

#[test]
fn randomness_repeats() {
    let Some(mut bench) = Bench::probe(&[]) else { return };
    let Some(mut again) = Bench::probe(&[]) else { return };
    let draws: Vec<_> = (0..4).map(|_| bench.mark(b'r', 1)).collect();
    assert_eq!((0..4).map(|_| again.mark(b'r', 1)).collect::<Vec<_>>(), draws);
    assert!(draws[0] != draws[1]);
}

#[test]
fn finish_tells_what_failed() {
    let Some(mut bench) = Bench::probe(&[("finish", Value::Bool(true))]) else { return };
    bench.one(0, b'-');
    assert_eq!(bench.end(), ["nothing could be written after 1 packets"]);
}

#[test]
fn init_refuses_in_its_own_words() {
    let Some(lib) = library("probe") else { return };
    let text = |text: &str| Value::Text(text.to_owned());
    for (field, value, message) in [
        ("fail", text("read the rules"), "does not start: cannot read the rules"),
        ("fail", text(""), "does not start: it gave no message"),
        ("number", Value::Integer(0), "argument `number`: expected a whole number from 1 to 100, found `0`"),
        ("number", text("5x"), "expected a whole number from 1 to 100, found `5x`"),
        ("huge", Value::Bool(true), "`seen`: expected a capacity from 1 to 268435456, found 1099511627776"),
        ("twice", Value::Bool(true), "state object `seen`: the name is taken by another one"),
        ("nmber", Value::Integer(1), "has no argument `nmber` (it takes fail, number, finish, huge, twice)"),
    ] {
        let refusal = refusal(&lib.path, &[(field, value)], &[]);
        assert!(refusal.starts_with("`args`: function `probe` ") && refusal.contains(message), "{refusal}");
    }
}

#[test]
fn what_is_no_function_is_named() {
    let Some(lib) = library("probe") else { return };
    for (symbol, message) in [
        ("missing", "has no symbol `missing` (define the function with CATENA_NF(missing, ...), or say its symbol"),
        ("version", "`version` was built for ABI version 7, wanted is version 1 (build it again"),
        ("short_table", "the table `short_table` says it has 4 bytes, a table has 96"),
        ("later", "was built with a later header: a packet has 72 bytes there, 64 here"),
        ("no_table", "symbol `no_table` is not a function's table"),
        ("no_process", "the table `no_process` has a null pointer as its process"),
        ("no_name", "has a null pointer as its name"),
        ("empty_name", "has an empty name"),
        ("no_text", "has a text that is not UTF-8 as its name"),
        ("long_name", "has a text of more than 63 bytes as its name"),
        ("many_reasons", "has more than 100 drop reasons"),
    ] {
        let refusal = refusal(&lib.path, &[], &[("name", symbol)]);
        assert!(refusal.starts_with("`lib`: ") && refusal.contains(message), "{symbol}: {refusal}");
    }
    assert!(refusal(&lib.path, &[], &[("log", "loud")]).contains("expected one of error, warning, info, debug"));
}

#[test]
fn what_is_no_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = refusal(&folder.path().join("fw.so"), &[], &[]);
    assert!(missing.contains("there is no file") && missing.contains("working directory"), "{missing}");
    assert!(refusal(folder.path(), &[], &[]).contains("it is not a regular file"));
    let text = folder.path().join("fw.so");
    for content in ["", "\x7fELF but not really"] {
        std::fs::write(&text, content).unwrap();
        let refusal = refusal(&text, &[], &[]);
        assert!(refusal.contains("is not a shared object") && refusal.contains("cc -O2 -shared -fPIC"), "{refusal}");
    }
    if let Some(lib) = library("unresolved") {
        let refusal = refusal(&lib.path, &[], &[]);
        assert!(refusal.contains("undefined symbol: there_is_no_such_function"), "{refusal}");
    }
}

#[test]
fn what_workers_would_have_apart_is_refused_with_several() {
    let Some(lib) = library("hops") else { return };
    let built = |index, count| build(&lib.path, &[], &[("name", "hops")], Share { index, count }).err();
    assert_eq!(built(0, 1), None);
    let refused = built(1, 2).expect("a map for all packets").to_string();
    assert!(refused.contains("state object `links`: each of 2 workers would have its own"), "{refused}");
    // That of sources is shared out, and nothing is said of it.
    let Some(lib) = library("probe") else { return };
    let mut bench = Bench::new(build(&lib.path, &[], &[], Share { index: 1, count: 2 }).unwrap());
    let mut out = Vec::new();
    let native = &mut bench.graph.module_mut::<Batches>(bench.native).unwrap().native;
    native.instance.own().log.flush("probe", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "");
}

/// Put a build of the keeper in the place of another, as one who builds anew does.
fn put_build(number: u32, folder: &Path) -> Option<PathBuf> {
    let (fresh, path) = (folder.join("keeper.new"), folder.join("keeper.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/native/test/keeper.c");
    let built = compile("cc", &["-std=c11", &format!("-DBUILD={number}")], &source, &fresh);
    built.then(|| std::fs::rename(&fresh, &path).unwrap())?;
    Some(path)
}

#[test]
fn a_new_build_goes_on_with_the_state_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = put_build(1, folder.path()) else { return };
    let args = Args::default().with("lib", Value::Text(path.to_str().unwrap().to_owned()));
    let args = args.with("watch", Value::Bool(true)).with("log", Value::Text("error".to_owned()));
    let mut bench = Bench::new(crate::testing::build(&DESCRIPTOR, &args, Share::WHOLE).unwrap());
    let mut count = 0;
    // A packet is marked by the build in place, and both counts, of a byte each, go on whichever that is.
    let mut builds = |bench: &mut Bench, wanted: u32, most: u32| {
        for _ in 0..most {
            count += 1;
            let mark = bench.mark(b'-', 1);
            assert_eq!((mark >> 8 & 255, mark & 255), (count, count), "build {}", mark >> 16);
            if mark >> 16 == wanted {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        false
    };
    assert!(builds(&mut bench, 1, 1));
    put_build(2, folder.path()).unwrap();
    assert!(builds(&mut bench, 2, 600), "build 2 never takes over");
    // The next ones do not, or cannot, or are no library: the one in place stays.
    for number in [3, 4] {
        put_build(number, folder.path()).unwrap();
        assert!(!builds(&mut bench, number, 8));
    }
    std::fs::write(folder.path().join("keeper.new"), "no library").unwrap();
    std::fs::rename(folder.path().join("keeper.new"), &path).unwrap();
    assert!(!builds(&mut bench, 5, 4) && builds(&mut bench, 2, 1));
    assert!(bench.end().is_empty());
}

#[test]
fn what_was_built_with_an_earlier_header_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = put_build(1, folder.path()) else { return };
    let native = build(&path, &[], &[("name", "earlier")], Share::WHOLE).unwrap();
    let mut bench = Bench::new(native);
    let mark = bench.mark(b'-', 1);
    // What it reads of its counter may be old, on engines that are late.
    assert_eq!(mark >> 8, 1 << 8 | 1);
    assert!(mark & 255 <= 1, "{mark:x}");
    assert!(bench.end().is_empty());
}

/// The header is C11 and C++, without a warning, for both compilers where they are.
#[test]
fn the_header_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("x.so");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/native/test");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/native/synguard.c");
    for compiler in ["cc", "gcc", "clang"] {
        compile(compiler, &["-std=c11"], &tests.join("layout.c"), &to);
        compile(compiler, &["-std=c11", "-O2"], &example, &to);
    }
    for compiler in ["g++", "clang++"] {
        compile(compiler, &["-std=c++20"], &tests.join("pass.cc"), &to);
    }
}
