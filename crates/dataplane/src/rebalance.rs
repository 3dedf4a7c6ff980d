//! Slots go from a busy worker to an idle one while packets flow: none is lost by it, and none overtakes another of its flow.
//!
//! The first worker, who spreads packets, *holds* the slots: theirs wait with it from then on. Their worker works off what came
//! before, lets go of what its functions know of the slots, and goes on. The other worker takes that in. Once what the first one
//! had sent to the ports has gone there, the other gets the packets that waited, then all others. Each step comes between two
//! batches of the worker that does it, and nobody else stops.
//!
//! What is moved is chosen by measurement: cycles of workers, packets of slots.

mod choose;

use std::sync::Arc;
use std::time::{Duration, Instant};

use catena_packet::SlotSet;

pub use choose::{Measured, choose};

use crate::module::{Context, Parcel};
use crate::pipeline::Pipeline;
use crate::queue::Room;
use crate::slots::{Loads, Slots};
use crate::task::TaskCounters;
use crate::worker::WorkerHandle;

/// How often loads are compared: long beside a move, short beside what people notice.
const EVERY: Duration = Duration::from_millis(250);
/// How long a worker may take to work off what it has; then its slots stay with it. Packets wait meanwhile.
const PATIENCE: Duration = Duration::from_millis(50);
/// After a move that failed nothing is moved for so many times [`EVERY`].
const PAUSE: u32 = 8;

/// What modules hand over, with their names.
type Parcels = Vec<(Arc<str>, Parcel)>;

/// What is known of a worker.
pub struct Member {
    /// The queue by which packets come to it; none of the worker that spreads them.
    pub entrance: Option<Room>,
    /// The queues by which packets leave it.
    pub exits: Vec<Room>,
    /// What its tasks counted.
    pub tasks: Vec<Arc<TaskCounters>>,
}

/// Moves slots among the workers of a run.
pub struct Rebalance {
    slots: Arc<Slots>,
    loads: Arc<Loads>,
    members: Vec<Member>,
    next: Instant,
    cycles: Vec<u64>,
    came: Vec<u64>,
    under_way: Option<Move>,
    done: Done,
}

/// Slots on their way from one worker to another.
struct Move {
    slots: SlotSet,
    to: u16,
    began: Instant,
    /// The queues to the ports, and how many packets were put in there before.
    before: Vec<(Room, usize)>,
}

impl Move {
    fn may_end(&self) -> bool {
        self.before.iter().all(|(room, written)| room.read() >= *written)
    }
}

/// What came of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How often slots went from one worker to another.
    pub moves: u64,
    /// How many slots did, one that went twice counted twice.
    pub slots: u64,
    /// How many moves were given up, as a worker did not come to an end with what it had.
    pub given_up: u64,
    /// The longest time that the packets of slots waited, in ns.
    pub longest_ns: u64,
    /// What was lost, in words, with the module's name.
    pub lost: Vec<(Arc<str>, String)>,
}

/// Why slots stayed where they were.
enum Stayed {
    /// The run is over.
    Over,
    /// A worker did not come to an end with what it had.
    Busy,
}

impl Rebalance {
    /// Watch the workers that have these slots, in their order.
    pub fn new(slots: &Arc<Slots>, loads: &Arc<Loads>, members: Vec<Member>) -> Self {
        let (cycles, came) = (vec![0; members.len()], loads.packets());
        let (slots, loads, next) = (Arc::clone(slots), Arc::clone(loads), Instant::now() + EVERY);
        Rebalance { slots, loads, members, next, cycles, came, under_way: None, done: Done::default() }
    }

    /// Return what came of it so far.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// Go on with a move that is under way, if one is. Else compare loads where it is time to, and move what would make the busiest
    /// worker less busy; not where the run `ends`. Returns whether a move is under way, so that somebody waits for the next look.
    pub fn look(&mut self, workers: &[WorkerHandle], ends: bool) -> bool {
        if let Some(moving) = self.under_way.take_if(|moving| moving.may_end() || workers[0].is_ended()) {
            // Where the first worker has ended it has sent on what it held.
            _ = self.set(workers, &moving.slots, Slots::give, moving.to);
            self.done.moves += 1;
            self.done.slots += moving.slots.len() as u64;
            self.done.longest_ns = self.done.longest_ns.max(moving.began.elapsed().as_nanos() as u64);
        }
        if ends || self.under_way.is_some() || Instant::now() < self.next || workers.len() < self.members.len() {
            return self.under_way.is_some();
        }
        self.next = Instant::now() + EVERY;
        let spent = |member: &Member| member.tasks.iter().map(|task| task.cycles.get()).sum::<u64>();
        let cycles: Vec<u64> = self.members.iter().map(spent).collect();
        let came = self.loads.packets();
        let since = |now: &[u64], before: &[u64]| -> Vec<u64> {
            now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        let measured = Measured { cycles: since(&cycles, &self.cycles), packets: since(&came, &self.came) };
        (self.cycles, self.came) = (cycles, came);
        if let Some((set, from, to)) = choose(&measured, &self.slots) {
            match self.begin(workers, set, from, to) {
                Ok(moving) => self.under_way = Some(moving),
                Err(Stayed::Busy) => {
                    self.done.given_up += 1;
                    self.next += EVERY * PAUSE;
                }
                Err(Stayed::Over) => {}
            }
        }
        self.under_way.is_some()
    }

    /// Let some slots leave one worker, and what belongs to them arrive at another.
    fn begin(&mut self, workers: &[WorkerHandle], slots: SlotSet, from: u16, to: u16) -> Result<Move, Stayed> {
        let began = Instant::now();
        let [leaves, arrives] = [from, to].map(|worker| &workers[usize::from(worker)]);
        self.set(workers, &slots, |table, slots, _| table.hold(slots), from)?;
        let leaving = Leaving::of(&self.members[usize::from(from)], &slots);
        let left = leaves.edit(move |pipeline, cx| leaving.leave(pipeline, cx));
        let Ok(Ok((parcels, before))) = left else {
            self.set(workers, &slots, Slots::give_back, from)?;
            return Err(if left.is_ok() { Stayed::Busy } else { Stayed::Over });
        };
        let arrived = arrives.edit(move |pipeline, cx| pipeline.graph.arrive(cx, parcels));
        self.done.lost.extend(arrived.unwrap_or_else(|_| vec![("slots".into(), "a worker had ended".to_owned())]));
        Ok(Move { slots, to, began, before })
    }

    /// Change the table where packets are spread, between two batches.
    fn set(
        &self,
        workers: &[WorkerHandle],
        set: &SlotSet,
        what: fn(&Slots, &SlotSet, u16),
        worker: u16,
    ) -> Result<(), Stayed> {
        let (table, set) = (Arc::clone(&self.slots), set.clone());
        workers[0].edit(move |_, _| what(&table, &set, worker)).map_err(|_| Stayed::Over)
    }
}

/// What a worker has to work off before slots leave it.
struct Leaving {
    slots: SlotSet,
    /// Where packets come from, and how many had been put in there when the slots were held.
    entrance: Option<(Room, usize)>,
    exits: Vec<Room>,
}

impl Leaving {
    fn of(member: &Member, slots: &SlotSet) -> Self {
        let entrance = member.entrance.as_ref().map(|room| (room.clone(), room.written()));
        Leaving { slots: slots.clone(), entrance, exits: member.exits.clone() }
    }

    /// Work it off, and let go of what belongs to the slots; returns that, and how many packets were ever put in each queue to the
    /// ports. The error says that it took too long, and nothing has left.
    fn leave(self, pipeline: &mut Pipeline, cx: &mut Context) -> Result<(Parcels, Vec<(Room, usize)>), ()> {
        let until = Instant::now() + PATIENCE;
        let is_ahead = || self.entrance.as_ref().is_some_and(|(room, written)| room.read() < *written);
        loop {
            if is_ahead() {
                pipeline.step(cx);
            } else {
                pipeline.drain(cx);
                if pipeline.graph.most_waiting() == 0 {
                    let parcels = pipeline.graph.leave(cx, &self.slots);
                    let before = self.exits.into_iter().map(|room| (room.clone(), room.written())).collect();
                    return Ok((parcels, before));
                }
            }
            pipeline.graph.poll(cx);
            if Instant::now() > until {
                return Err(());
            }
        }
    }
}
