//! An engine that is late finds what a function must not do.

use catena_dataplane::Module as _;
use catena_dataplane::module::{Reason, Verdict};
use catena_dataplane::pipeline::Time;
use catena_packet::Packet;
use catena_packet::wire::{FlowKey, Seed, parse};
use catena_state::value::{Add, Counts, Get};
use catena_state::{
    Access, Declaration, Delayed, Engine, FlowMap, Intent, Mover, Outlet, Scope, Share, Shared, Sink, Tx,
};

use super::{Function, Runner, Step};
use crate::config::{ArgError, Args};
use crate::descriptor::{Descriptor, Recipe};
use crate::testing::agreement::{agrees, traffic};
use crate::testing::engines::on_delayed;
use crate::testing::{Harness, build};

/// What a function does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    /// It uses a ticket in the step that asked for it.
    AtOnce,
    /// It uses a ticket in the step after the next.
    Late,
    /// It changes the packet, and then asks for more.
    Rewrites,
    /// It marks the packet, and then asks for more.
    Marks,
    /// It gives the packet an attribute, and then asks for more.
    Tags,
    /// It counts packets in *prepare*, in a field of its own.
    Counts,
    /// It adds to a counter in *prepare*.
    Adds,
    /// It puts a record out in *prepare*.
    Puts,
    /// It asks for room for one in *prepare*.
    AsksForRoom,
    /// It looks at an entry in *prepare*.
    Looks,
    /// It sweeps a map in *prepare*.
    Sweeps,
    /// It uses the ticket of the packet before.
    Keeps,
    /// It asks for the entry of a number that it counts in *prepare*.
    Wanders,
    /// It asks for another entry, every second time.
    AsksLess,
    /// It asks for as many entries as it was asked.
    AsksMore,
    /// It looks at a shared object in a step.
    Peeps,
    /// It does not show its map to a mover.
    Hides,
}

const LENGTHS: Declaration =
    Declaration::flow_map("lengths", "packets of each length", Scope::Connection, Access::ReadWrite)
        .scoped(Scope::Configured);
const HITS: Declaration = Declaration::shared("hits", "steps", Scope::Global, Access::WriteMostly);
const TIMES: Declaration = Declaration::outlet("times", "times of packets");

/// Where times go.
#[derive(Default)]
struct Times(Vec<u64>);

impl Sink for Times {
    type Record = u64;

    fn has_room(&mut self) -> bool {
        true
    }

    fn put(&mut self, time: u64) {
        self.0.push(time);
    }
}

/// Counts the packets of each length, and drops every third one that it has counted.
struct Careless<E: Engine> {
    lengths: E::FlowMap<u64, u64>,
    hits: E::Shared<Counts>,
    times: E::Outlet<Times>,
    wrong: Wrong,
    kept: Option<Ticket<E>>,
    prepared: u64,
    tidied: u64,
    /// Packets that were earlier than the last time given to *tidy*.
    overtaken: u64,
}

type Ticket<E> = <<E as Engine>::FlowMap<u64, u64> as FlowMap<u64, u64>>::Ticket;

impl<E: Engine> Careless<E> {
    fn new(engine: &mut E, wrong: Wrong) -> Self {
        let lengths = engine.flow_map(&LENGTHS, 1024).unwrap();
        let hits = engine.shared(&HITS, Counts::new(1));
        let times = engine.outlet(&TIMES, Times::default());
        Careless { lengths, hits, times, wrong, kept: None, prepared: 0, tidied: 0, overtaken: 0 }
    }

    fn count(&mut self, tx: &mut Tx, ticket: &Ticket<E>) -> u64 {
        if let Some(mut count) = self.lengths.get(tx, ticket) {
            *count += 1;
            return *count;
        }
        *self.lengths.insert(tx, ticket, 1, catena_state::FOREVER).unwrap()
    }
}

impl<E: Engine> Function<E> for Careless<E> {
    /// The ticket, and steps done.
    type Plan = (Ticket<E>, u32);

    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Self::Plan {
        let ticket = self.lengths.want(tx, packet.len() as u64, Intent::Create);
        match self.wrong {
            Wrong::Counts | Wrong::Wanders | Wrong::AsksLess | Wrong::AsksMore => self.prepared += 1,
            Wrong::Adds => self.hits.send(tx, Add::to(0, 1)),
            Wrong::Puts => self.times.put(tx, 0),
            Wrong::AsksForRoom => _ = self.times.has_room(tx),
            Wrong::Looks => _ = self.lengths.get(tx, &ticket),
            Wrong::Sweeps => _ = self.lengths.sweep(tx, 1, |_, _, _| false),
            _ => {}
        }
        let others = match self.wrong {
            Wrong::Wanders => self.prepared..self.prepared + 1,
            Wrong::AsksLess => 0..self.prepared % 2,
            Wrong::AsksMore => 0..self.prepared,
            _ => 0..0,
        };
        others.for_each(|key| _ = self.lengths.want(tx, key, Intent::Read));
        (ticket, 0)
    }

    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Self::Plan) -> Step {
        plan.1 += 1;
        self.hits.send(tx, Add::to(0, 1));
        if tx.now < self.tidied {
            self.overtaken += 1;
        }
        match (self.wrong, plan.1) {
            (Wrong::AtOnce, 1) => {
                let ticket = self.lengths.want(tx, packet.len() as u64, Intent::Create);
                self.count(tx, &ticket);
            }
            (Wrong::Late, 1) => return Step::Again,
            (Wrong::Peeps, _) => _ = self.hits.look(Get::at(0)),
            (Wrong::Rewrites | Wrong::Marks | Wrong::Tags, 1) => {
                match self.wrong {
                    Wrong::Rewrites => packet.data_mut()[0] ^= 1,
                    Wrong::Marks => packet.meta_mut().mark ^= 1,
                    _ => packet.meta_mut().attributes[0] ^= 1,
                }
                plan.0 = self.lengths.want(tx, packet.len() as u64, Intent::Create);
                return Step::Again;
            }
            _ => {}
        }
        let ticket = match self.wrong {
            Wrong::Keeps => self.kept.replace(plan.0).unwrap_or(plan.0),
            _ => plan.0,
        };
        let count = self.count(tx, &ticket) + self.prepared;
        let time = tx.now;
        self.times.put(tx, time);
        Step::Done(if count.is_multiple_of(3) { Verdict::Drop(Reason(0)) } else { Verdict::Gate(tx.gate) })
    }

    fn tidy(&mut self, tx: &mut Tx, _idle: bool) {
        let now = tx.now;
        self.lengths.sweep(tx, 1, |_, _, _| false);
        self.tidied = now;
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        if self.wrong != Wrong::Hides {
            mover.flows(tx, &mut self.lengths, |_, _, _| {});
        }
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["every third"]
    }
}

/// Makes it.
struct Make(Wrong);

impl Recipe for Make {
    type Function<E: Engine> = Careless<E>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Careless<E>, ArgError> {
        Ok(Careless::new(engine, self.0))
    }
}

const PROBE: Descriptor = Descriptor {
    name: "Probe",
    summary: "does something wrong",
    source: "",
    params: &[],
    state: &[LENGTHS, HITS, TIMES],
    build: |_, build| build.deploy(Make(Wrong::Nothing)),
    ..Descriptor::DEFAULTS
};

/// Play some packets on a delayed engine.
fn careless(wrong: Wrong, seed: u64) -> Vec<(usize, u16, Vec<u8>)> {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
    let function = Careless::new(&mut engine, wrong);
    let mut harness = Harness::new(Box::new(Runner::new(engine, function)), 2);
    let packets = &traffic(seed)[0].1;
    on_delayed(seed, || harness.send(0, packets))
}

/// Return what it has put out.
fn times(function: &Careless<Delayed>) -> Vec<u64> {
    function.times.with(|times| times.0.clone())
}

/// What a panic said.
fn said(wrong: Wrong) -> String {
    panic_of(|| (0..20).for_each(|seed| _ = careless(wrong, seed)))
}

fn panic_of(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(run).unwrap_err();
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap()
}

#[test]
fn what_a_function_must_not_do_is_found() {
    (0..20).for_each(|seed| _ = careless(Wrong::Nothing, seed));
    let here = file!().rsplit('/').next().unwrap();
    for (wrong, expected) in [
        (Wrong::AtOnce, "lengths: a ticket is used in the step that asked for it"),
        (Wrong::Late, "lengths: a ticket is used after its step"),
        (Wrong::Keeps, "lengths: a ticket is used for another packet"),
        (Wrong::Adds, "hits: changed in prepare, at "),
        (Wrong::Puts, "times: changed in prepare, at "),
        (Wrong::AsksForRoom, "times: changed in prepare, at "),
        (Wrong::Looks, "lengths: a ticket is used in prepare, at "),
        (Wrong::Sweeps, "lengths: changed in prepare, at "),
        (Wrong::Peeps, "hits: looked at for a packet's fate, at "),
    ] {
        let said = said(wrong);
        assert!(said.contains(expected) && said.contains(here), "{wrong:?}: {said}");
    }
    let expected = "lengths: prepare asks for something else when it is asked again";
    for (wrong, place) in [(Wrong::Wanders, here), (Wrong::AsksMore, here), (Wrong::AsksLess, "")] {
        let said = said(wrong);
        assert!(said.contains(expected) && said.contains(place), "{wrong:?}: {said}");
    }
    let expected = "a packet was changed before its verdict, in a step that returned Step::Again";
    for wrong in [Wrong::Rewrites, Wrong::Marks, Wrong::Tags] {
        let said = said(wrong);
        assert!(said.contains(expected), "{wrong:?}: {said}");
    }
    // What *prepare* changes in the function itself shows in what comes of packets.
    let differs = |seed| careless(Wrong::Counts, seed) != careless(Wrong::Nothing, seed);
    assert!((0..20).all(differs));
}

#[test]
fn nothing_starts_whose_objects_are_gone() {
    let start = |engine: Delayed| {
        let mut engine = engine;
        let function = Careless::new(&mut engine, Wrong::Nothing);
        Runner::new(engine, function).start(Time::Packets)
    };
    let engine = || Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
    assert_eq!(start(engine()), Ok(()));
    let expected = "who holds the shared objects is gone, and 0 operations on them are not done";
    assert_eq!(start(engine().gone_after(0)), Err(expected.to_owned()));
}

/// What is not shown would be forgotten when slots go to another worker.
#[test]
fn a_function_that_hides_a_map_is_not_built() {
    let hiding = Descriptor { build: |_, build| build.deploy(Make(Wrong::Hides)), ..PROBE };
    let error = build(&hiding, &Args::default(), Share::WHOLE).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("`it`: it has 1 maps, and shows 0 of them to a mover"), "{error}");
    assert!(build(&PROBE, &Args::default(), Share::WHOLE).is_ok());
}

/// Two engines that do not agree are told apart.
#[test]
fn agreement_says_which_engine_did_what() {
    let args = Args::default();
    let wrong = Descriptor { build: |_, build| build.deploy(Make(Wrong::Counts)), ..PROBE };
    assert!(agrees(&PROBE, &args)["every third"] > 0);
    let said = panic_of(|| _ = agrees(&wrong, &args));
    let run = || {
        let mut harness = Harness::of(&wrong, &args);
        traffic(0).iter().for_each(|(gate, packets)| _ = harness.send(*gate, packets));
        format!("{:?}", harness.drops())
    };
    let (late, local) = (on_delayed(0, run), run());
    let expected = format!("drops of Probe with seed 0: late {late}, local {local}; does *prepare* change something");
    assert!(said.starts_with(&expected), "{said}");
}

/// Who must wait where nobody more may is dropped and counted; the others come out, at the end of the run at the latest.
#[test]
fn what_finds_no_place_to_wait_is_counted() {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 3).slow(1_000);
    let function = Careless::new(&mut engine, Wrong::Nothing);
    let mut harness = Harness::new(Box::new(Runner::new(engine, function)), 2);
    let packets: Vec<_> = (0..20).flat_map(|seed| traffic(seed)[0].1.clone()).collect();
    let mut left = on_delayed(3, || harness.send(0, &packets));
    assert!(harness.drops()["too many wait for their state"] > 100);
    left.extend(harness.finish());
    let dropped: u64 = harness.drops().values().sum();
    assert_eq!(left.len() as u64 + dropped, packets.len() as u64);
    let function = harness.module::<Runner<Delayed, Careless<Delayed>>>().function();
    let (told, given_up) = (times(function).len() as u64, harness.drops()["too many wait for their state"]);
    assert_eq!(told + given_up, packets.len() as u64, "of each packet that was decided, once");
    harness.end();
}

/// Nobody overtakes its own flow, however late its state is: packets leave in the order in which they came.
#[test]
fn flows_keep_their_order() {
    for seed in 0..50 {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let function = Careless::new(&mut engine, Wrong::Nothing);
        let mut harness = Harness::new(Box::new(Runner::new(engine, function)), 2);
        let packets = &traffic(seed)[0].1;
        let flow = |number: usize| {
            let frame = &packets[number].1;
            FlowKey::read(frame, &parse(frame).unwrap()).unwrap().symmetric_hash(&Seed::from_number(1))
        };
        let mut last = std::collections::BTreeMap::new();
        let order = on_delayed(seed, || harness.send_in_order(0, packets));
        assert!(!order.is_sorted(), "some packets of other flows are overtaken");
        for number in order {
            let before = last.insert(flow(number), number);
            assert!(before < Some(number), "packet {number} has overtaken {before:?}");
        }
        harness.end();
    }
}

/// An entry that is over at some time may be one that an earlier packet waits for.
#[test]
fn tidy_is_given_no_later_time_than_that_of_a_packet_that_waits() {
    for seed in 0..50 {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let function = Careless::new(&mut engine, Wrong::Nothing);
        let mut harness = Harness::new(Box::new(Runner::new(engine, function)), 2);
        for packets in traffic(seed)[0].1.chunks(8) {
            // Nobody waits for those that are parked.
            harness.send(0, packets);
            harness.tick(packets[7].0);
        }
        harness.finish();
        let now = traffic(seed)[0].1[39].0;
        harness.tick(now);
        let function = harness.module::<Runner<Delayed, Careless<Delayed>>>().function();
        assert_eq!((function.overtaken, function.tidied), (0, now), "seed {seed}");
        harness.end();
    }
}
