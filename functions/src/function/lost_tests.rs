//! A function that keeps something beside its objects, or tells the world by itself, is found when its instance is lost.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::Seed;
use catena_state::value::{Add, Counts, Get};
use catena_state::{Access, Crashes, Declaration, Delayed, Engine, FOREVER, FlowMap, Intent, Scope, Share, Shared, Tx};

use super::{Function, Runner, Step};
use crate::testing::Harness;
use crate::testing::agreement::traffic;
use crate::testing::engines::on_losing;

/// What a function does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    /// It counts packets in a field, and drops by that.
    Field,
    /// It counts packets in a static, and drops by that.
    Static,
    /// It writes the system's time into an entry.
    Clock,
    /// It tells the world of a packet before its operations are done.
    Tells,
    /// It changes several entries in the order of a map that is hashed with something new each time.
    Order,
    /// It counts once more for each length that it has not seen before.
    Skips,
    /// It does one operation more where the system's time is odd.
    Hurries,
    /// It notes in *tidy* how often it was called.
    Tidies,
}

const LENGTHS: Declaration =
    Declaration::flow_map("lengths", "packets of each length", Scope::Connection, Access::ReadWrite)
        .scoped(Scope::Configured);
const HITS: Declaration = Declaration::shared("hits", "packets; what tidy says", Scope::Global, Access::WriteMostly);

fn nanos() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Who has told the world of which packet: by its clock.
type Told = Arc<Mutex<Vec<u64>>>;

struct Forgetful<E: Engine> {
    lengths: E::FlowMap<u64, u64>,
    hits: E::Shared<Counts>,
    told: Told,
    wrong: Wrong,
    counted: u64,
    tidied: i64,
    seen: HashSet<usize>,
}

impl<E: Engine> Forgetful<E> {
    fn new(engine: &mut E, wrong: Wrong, told: Told) -> Self {
        let lengths = engine.flow_map(&LENGTHS, 1024).unwrap();
        let hits = engine.shared(&HITS, Counts::new(2));
        Forgetful { lengths, hits, told, wrong, counted: 0, tidied: 0, seen: HashSet::new() }
    }
}

impl<E: Engine> Function<E> for Forgetful<E> {
    /// The entries of the packet's length and of two more numbers.
    type Plan = [<E::FlowMap<u64, u64> as FlowMap<u64, u64>>::Ticket; 3];

    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Self::Plan {
        [packet.len() as u64, 1, 2].map(|key| self.lengths.want(tx, key, Intent::Create))
    }

    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Self::Plan) -> Step {
        if self.wrong == Wrong::Tells {
            self.told.lock().unwrap().push(tx.clock());
        }
        let mut order: Vec<usize> = (0..3).collect();
        if self.wrong == Wrong::Order {
            order = order.into_iter().collect::<HashSet<_>>().into_iter().collect();
        }
        if self.wrong == Wrong::Skips && self.seen.insert(packet.len()) {
            self.hits.send(tx, Add::to(0, 1));
        }
        if self.wrong == Wrong::Hurries && nanos() % 2 == 1 {
            self.hits.send(tx, Add::to(0, 1));
        }
        for which in order {
            let ticket = plan[which];
            let more = match self.wrong {
                Wrong::Clock => nanos(),
                _ => 1,
            };
            if let Some(mut count) = self.lengths.get(tx, &ticket) {
                *count = count.wrapping_add(more);
                continue;
            }
            self.lengths.insert(tx, &ticket, more, FOREVER).unwrap();
        }
        let number = match self.wrong {
            Wrong::Static => COUNTED.fetch_add(1, Ordering::Relaxed) + 1,
            Wrong::Field => self.counted + 1,
            _ => tx.clock(),
        };
        self.counted += 1;
        self.hits.send(tx, Add::to(0, 1));
        Step::Done(if number.is_multiple_of(3) { Verdict::Drop(Reason(0)) } else { Verdict::Gate(tx.gate) })
    }

    fn tidy(&mut self, tx: &mut Tx, _idle: bool) {
        self.tidied += 1;
        let says = if self.wrong == Wrong::Tidies { self.tidied } else { 1 };
        self.hits.send(tx, Add::to(1, says));
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["every third"]
    }
}

/// What came of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    left: Vec<usize>,
    hits: i64,
    told: usize,
}

/// Play some packets on an engine that loses instances.
fn play(wrong: Wrong, crashes: Crashes, seed: u64) -> Outcome {
    let told = Told::default();
    let others = Arc::clone(&told);
    COUNTED.store(0, Ordering::Relaxed);
    let engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed).slow(0).crashing(crashes);
    let make = move |engine: &mut Delayed| {
        engine.make_for("it");
        Ok::<_, String>(Forgetful::new(engine, wrong, Arc::clone(&others)))
    };
    let mut harness = Harness::new(Box::new(Runner::that_goes_on(engine, make).unwrap()), 2);
    let packets = &traffic(seed)[0].1;
    let left = on_losing(seed, (crashes, 0), || {
        packets.chunks(8).flat_map(|packets| harness.send_in_order(0, packets)).collect()
    });
    let function = harness.module::<Runner<Delayed, Forgetful<Delayed>>>().function();
    let hits = function.hits.look(Get::at(0)) * 1000 + function.hits.look(Get::at(1));
    let told = told.lock().unwrap().len();
    Outcome { left, hits, told }
}

/// Return how it is found out: what a panic says, or what is another outcome than that without losses.
fn found(wrong: Wrong, crashes: Crashes) -> Option<String> {
    (0..10).find_map(|seed| {
        let expected = play(wrong, Crashes::Never, seed);
        match std::panic::catch_unwind(|| play(wrong, crashes, seed)) {
            Ok(came) => (came != expected).then(|| format!("{came:?} and not {expected:?}")),
            Err(panic) => Some(panic.downcast_ref::<String>().unwrap().clone()),
        }
    })
}

#[test]
fn what_is_kept_or_told_beside_the_objects_is_found() {
    for crashes in [Crashes::AtEach, Crashes::OneIn(7)] {
        assert_eq!(found(Wrong::Nothing, crashes), None);
        for wrong in [Wrong::Field, Wrong::Static, Wrong::Tells] {
            assert!(found(wrong, crashes).is_some_and(|found| found.contains("and not")), "{wrong:?} with {crashes:?}");
        }
        let expected = "something else is done when a packet is processed again";
        // Here it depends on when the instance was lost last.
        for wrong in [Wrong::Skips, Wrong::Hurries, Wrong::Tidies] {
            let found = found(wrong, crashes).unwrap_or_else(|| panic!("{wrong:?} with {crashes:?}"));
            assert!(found.contains(expected) || found.contains("and not"), "{wrong:?} with {crashes:?}: {found}");
        }
        for wrong in [Wrong::Clock, Wrong::Order] {
            let found = found(wrong, crashes).unwrap_or_else(|| panic!("{wrong:?} with {crashes:?}"));
            let place = format!("{expected}, at ");
            assert!(found.contains(&place) && found.contains("lost_tests.rs"), "{wrong:?} with {crashes:?}: {found}");
        }
    }
}
