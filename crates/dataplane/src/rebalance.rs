//! Slots go from a busy worker to an idle one while packets flow: none is lost by it, and none overtakes another of its flow, but
//! for the hairpins of two hosts of which one moves.
//!
//! The first worker, who spreads packets, *holds* the slots: theirs wait with it from then on. Their worker works off what came
//! before, lets go of what its functions know of the slots, and goes on. The other worker takes that in. Once what the first one
//! had sent to the ports has gone there, the other gets the packets that waited, then all others. Each step comes between two
//! batches of the worker that does it, and nobody else stops.
//!
//! What is moved is chosen by measurement: cycles of workers, packets of slots.

mod choose;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catena_packet::SlotSet;

pub use choose::{Measured, choose};

use crate::module::{Context, Parcel};
use crate::pipeline::Pipeline;
use crate::queue::Room;
use crate::slots::{Loads, Slots};
use crate::task::TaskCounters;
use crate::worker::{Posted, WorkerHandle};

/// How often loads are compared: long beside a move, short beside what people notice.
const EVERY: Duration = Duration::from_millis(250);
/// How long a worker may take to work off what it has; then its slots stay with it. Packets wait meanwhile.
const PATIENCE: Duration = Duration::from_millis(50);
/// After a move none begins for so many times as long as it took: large tables take long.
const CALM: u32 = 20;
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
    /// Where packets of held slots wait.
    held: Vec<Room>,
    next: Instant,
    cycles: Vec<u64>,
    came: Vec<u64>,
    read: Vec<usize>,
    under_way: Option<Move>,
    done: Done,
}

/// What came of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How often slots went from one worker to another.
    pub moves: u64,
    /// How many slots did, one that went twice counted twice.
    pub slots: u64,
    /// How many moves were given up, as a worker was held up.
    pub given_up: u64,
    /// The longest time that the packets of slots waited, in ns.
    pub longest_ns: u64,
    /// What was lost, in words, with the module's name.
    pub lost: Vec<(Arc<str>, String)>,
}

/// Slots on their way from one worker to another.
struct Move {
    slots: SlotSet,
    from: u16,
    to: u16,
    began: Instant,
    /// When the step began that it is in.
    since: Instant,
    step: Step,
}

/// What belongs to slots, until somebody takes it in.
type Luggage = Arc<Mutex<Option<Parcels>>>;

/// How far a move is, and what is waited for.
enum Step {
    /// The first worker holds the slots.
    Hold(Posted<()>),
    /// Their worker works off what it has, and lets go of what belongs to them.
    Leave(Posted<Result<Left, ()>>),
    /// A worker takes that in. Afterwards the packets go there, once those that were sent to the ports before have gone.
    Arrive(Posted<Vec<(Arc<str>, String)>>, Luggage, Before),
    /// What was sent to the ports before goes there.
    Wait(Before),
    /// The first worker sends the packets on.
    Give(Posted<()>),
}

impl Step {
    fn number(&self) -> u8 {
        match self {
            Step::Hold(_) => 0,
            Step::Leave(_) => 1,
            Step::Arrive(..) => 2,
            Step::Wait(_) => 3,
            Step::Give(_) => 4,
        }
    }
}

/// What modules hand over, and what was sent to the ports before.
type Left = (Parcels, Before);
/// Queues to the ports, and how many packets were put in there before.
type Before = Vec<(Room, usize)>;

impl Rebalance {
    /// Watch the workers that have these slots, in their order; packets of slots that are held wait in these queues.
    pub fn new(slots: &Arc<Slots>, loads: &Arc<Loads>, members: Vec<Member>, held: Vec<Room>) -> Self {
        let count = members.len();
        Rebalance {
            slots: Arc::clone(slots),
            loads: Arc::clone(loads),
            members,
            held,
            next: Instant::now() + EVERY,
            cycles: vec![0; count],
            came: loads.packets(),
            read: vec![0; count],
            under_way: None,
            done: Done::default(),
        }
    }

    /// Return what came of it so far.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// Go on with a move that is under way, if one is. Else compare loads where it is time to, and move what would make the busiest
    /// worker less busy; not where the run `ends`. Waits for nobody. Returns whether a move is under way, so that packets wait for
    /// the next look.
    pub fn look(&mut self, workers: &[WorkerHandle], ends: bool) -> bool {
        if let Some(moving) = self.under_way.take() {
            self.under_way = self.go_on(workers, moving);
        }
        // Packets that waited have gone on before others do: else they would be overtaken.
        let are_waiting = self.slots.are_held() || self.held.iter().any(|room| !room.is_empty());
        if ends || are_waiting || self.under_way.is_some() || Instant::now() < self.next {
            return self.under_way.is_some();
        }
        self.next = Instant::now() + EVERY;
        let measured = self.measure();
        if let Some((slots, from, to)) = choose(&measured, &self.slots) {
            let step = Step::Hold(self.set(workers, &slots, |table, slots, _| table.hold(slots), from));
            let now = Instant::now();
            self.under_way = Some(Move { slots, from, to, began: now, since: now, step });
        }
        self.under_way.is_some()
    }

    /// Return what was counted since the last time. A worker that has packets and took none since is not idle, but held up.
    fn measure(&mut self) -> Measured {
        let spent = |member: &Member| member.tasks.iter().map(|task| task.cycles.get()).sum::<u64>();
        let cycles: Vec<u64> = self.members.iter().map(spent).collect();
        let read: Vec<usize> = self.members.iter().map(|of| of.entrance.as_ref().map_or(0, Room::read)).collect();
        let came = self.loads.packets();
        let since = |now: &[u64], before: &[u64]| -> Vec<u64> {
            now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        let is_stuck = |(member, (now, before)): (&Member, (&usize, &usize))| {
            now == before && member.entrance.as_ref().is_some_and(|room| !room.is_empty())
        };
        let stuck = self.members.iter().zip(read.iter().zip(&self.read)).map(is_stuck).collect();
        let measured = Measured { cycles: since(&cycles, &self.cycles), packets: since(&came, &self.came), stuck };
        (self.cycles, self.came, self.read) = (cycles, came, read);
        measured
    }

    /// Take the next step of a move, if it is time to; returns the move, unless it is over.
    fn go_on(&mut self, workers: &[WorkerHandle], mut moving: Move) -> Option<Move> {
        let (is_late, number) = (moving.since.elapsed() > PATIENCE, moving.step.number());
        let next = match moving.step {
            Step::Hold(posted) => match posted.answer() {
                Some(Ok(())) => {
                    let leaving = Leaving::of(&self.members[usize::from(moving.from)], &moving.slots);
                    let worker = &workers[usize::from(moving.from)];
                    Step::Leave(worker.post(move |pipeline, cx| leaving.leave(pipeline, cx)))
                }
                None if !(is_late && posted.withdraw()) => Step::Hold(posted),
                Some(Err(_)) | None => return self.give_up(),
            },
            Step::Leave(posted) => match posted.answer() {
                Some(Ok(Ok((parcels, before)))) => {
                    let luggage = Arc::new(Mutex::new(Some(parcels)));
                    Step::Arrive(take_in(&workers[usize::from(moving.to)], &luggage), luggage, before)
                }
                None if !(is_late && posted.withdraw()) => Step::Leave(posted),
                // Nothing has left: the slots stay.
                Some(_) | None => {
                    _ = self.set(workers, &moving.slots, Slots::give_back, moving.from);
                    return self.give_up();
                }
            },
            Step::Arrive(posted, luggage, before) => match posted.answer() {
                Some(Ok(lost)) => {
                    self.done.lost.extend(lost);
                    Step::Wait(before)
                }
                Some(Err(_)) => {
                    self.done.lost.push(("slots".into(), "a worker ended before it took in what is theirs".to_owned()));
                    Step::Wait(before)
                }
                // Who is held up gets nothing: it goes back to where it came from.
                None if is_late && moving.to != moving.from && posted.withdraw() => {
                    moving.to = moving.from;
                    Step::Arrive(take_in(&workers[usize::from(moving.from)], &luggage), luggage, before)
                }
                None => Step::Arrive(posted, luggage, before),
            },
            // Nothing goes to the ports any more where who writes them has ended.
            Step::Wait(before)
                if before.iter().all(|(room, written)| room.read() >= *written)
                    || workers.last().is_some_and(WorkerHandle::is_ended) =>
            {
                let set = if moving.to == moving.from { Slots::give_back } else { Slots::give };
                Step::Give(self.set(workers, &moving.slots, set, moving.to))
            }
            Step::Wait(before) => Step::Wait(before),
            Step::Give(posted) if posted.answer().is_some() => {
                self.done.longest_ns = self.done.longest_ns.max(moving.began.elapsed().as_nanos() as u64);
                if moving.to == moving.from {
                    return self.give_up();
                }
                self.done.moves += 1;
                self.done.slots += moving.slots.len() as u64;
                // What is measured while a worker hands over says nothing of its load.
                self.next = Instant::now() + EVERY.max(moving.began.elapsed() * CALM);
                _ = self.measure();
                return None;
            }
            Step::Give(posted) => Step::Give(posted),
        };
        if next.number() != number {
            moving.since = Instant::now();
        }
        moving.step = next;
        Some(moving)
    }

    fn give_up(&mut self) -> Option<Move> {
        self.done.given_up += 1;
        self.next = Instant::now() + EVERY * PAUSE;
        None
    }

    /// Change the table where packets are spread, between two batches.
    fn set(&self, workers: &[WorkerHandle], set: &SlotSet, what: fn(&Slots, &SlotSet, u16), worker: u16) -> Posted<()> {
        let (table, set) = (Arc::clone(&self.slots), set.clone());
        workers[0].post(move |_, _| what(&table, &set, worker))
    }
}

/// Let a worker take in what belongs to slots, if nobody else has.
fn take_in(worker: &WorkerHandle, luggage: &Luggage) -> Posted<Vec<(Arc<str>, String)>> {
    let luggage = Arc::clone(luggage);
    worker.post(move |pipeline, cx| {
        let parcels = luggage.lock().unwrap_or_else(PoisonError::into_inner).take();
        pipeline.graph.arrive(cx, parcels.unwrap_or_default())
    })
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
    fn leave(self, pipeline: &mut Pipeline, cx: &mut Context) -> Result<Left, ()> {
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
