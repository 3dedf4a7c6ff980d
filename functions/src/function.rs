//! How a stateful function is written: once, in two steps, for every state engine.
//!
//! In *prepare* it reads the packet and says which operations it wants; in *finish* it uses their results
//! and decides. [`Runner`] is the module that carries a function through a batch: it prepares all packets, so that the
//! cache misses of their tickets overlap, then finishes one after the other, so that each sees what those before it did.
//! On an engine that makes packets wait, those that wait are parked (`parking.rs`).

mod holding;
mod instance;
#[cfg(test)]
mod lost_tests;
#[cfg(test)]
mod order_tests;
mod parking;
mod presence;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;
use std::path::PathBuf;

use catena_dataplane::module::{self, Times, Verdict};
use catena_dataplane::pipeline::Time;
use catena_dataplane::{Context, Module};
use catena_packet::clock::{Clock, Root};
use catena_packet::{BATCH, Batch, Packet, SlotSet};
use catena_state::{Engine, Mover, Parcel, Tx};

pub use holding::{Held, Holding, Try};
use instance::{Instance, event};
use parking::Parking;

/// What *finish* decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The packet's fate.
    Done(Verdict),
    /// More operations are wanted first, and the plan now holds their tickets; *finish* is called again when
    /// their results are there.
    Again,
}

/// Return how many entries whose end may have come are looked at in one [`Function::tidy`], of each map: more than a batch may have made,
/// so that they go faster than they come.
pub fn most_over(idle: bool) -> usize {
    if idle { 1024 } else { BATCH + BATCH / 4 }
}

/// A stateful function.
///
/// # Example
///
/// Passes the first `most` packets of each source endpoint, and drops the others: an entry for each, asked for in *prepare*,
/// used in *finish*.
///
/// ```
/// use catena_dataplane::module::{Reason, Verdict};
/// use catena_functions::function::{Function, Runner, Step};
/// use catena_packet::Packet;
/// use catena_packet::wire::{Seed, ports, source_address};
/// use catena_state::{Access, Declaration, Engine, FOREVER, FlowMap, Intent, Local, NoMemory, Scope, Share, Tx};
///
/// const SENDERS: Declaration =
///     Declaration::flow_map("senders", "packets of each", Scope::SourceEndpoint, Access::ReadWrite);
///
/// /// Address, port and protocol.
/// type Sender = [u64; 5];
/// type Senders<E> = <E as Engine>::FlowMap<Sender, u64>;
///
/// struct First<E: Engine> {
///     senders: Senders<E>,
///     most: u64,
/// }
///
/// impl<E: Engine> First<E> {
///     fn new(engine: &mut E, most: u64) -> Result<Self, NoMemory> {
///         Ok(First { senders: engine.flow_map(&SENDERS, 1 << 16)?, most })
///     }
/// }
///
/// impl<E: Engine> Function<E> for First<E> {
///     /// The ticket of the sender's entry; none of what has no ports.
///     type Plan = Option<<Senders<E> as FlowMap<Sender, u64>>::Ticket>;
///
///     fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Self::Plan {
///         let (frame, layers) = (packet.data(), packet.layers());
///         let [high, low] = source_address(frame, &layers)?;
///         let (port, _) = ports(frame, &layers)?;
///         Some(self.senders.want(tx, [high, low, port.into(), layers.proto.into(), 0], Intent::Create))
///     }
///
///     fn warm(&mut self, plan: &mut Self::Plan) {
///         if let Some(ticket) = plan {
///             self.senders.warm(ticket);
///         }
///     }
///
///     fn finish(&mut self, tx: &mut Tx, _packet: &mut Packet, plan: &mut Self::Plan) -> Step {
///         let Some(ticket) = plan else { return Step::Done(Verdict::Gate(tx.gate)) };
///         let seen = self.senders.get(tx, ticket).map(|mut seen| {
///             *seen += 1;
///             *seen
///         });
///         // With a full map, those without an entry pass.
///         let seen = seen.unwrap_or_else(|| self.senders.insert(tx, ticket, 1, FOREVER).map_or(0, |seen| *seen));
///         Step::Done(if seen > self.most { Verdict::Drop(Reason(0)) } else { Verdict::Gate(tx.gate) })
///     }
///
///     fn reasons(&self) -> &'static [&'static str] {
///         &["too many of its sender"]
///     }
/// }
///
/// let mut engine = Local::new(Seed::from_number(1), Share::WHOLE);
/// let function = First::new(&mut engine, 100)?;
/// let module = Runner::new(engine, function);
/// # Ok::<(), NoMemory>(())
/// ```
pub trait Function<E: Engine>: Send + 'static {
    /// What *prepare* hands to *finish*: tickets, and what was read from the packet.
    type Plan: Copy + Send;

    /// Read a packet, whose headers are parsed, and ask for state. Changes nothing: of objects it calls `want…` and `warm`.
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Self::Plan;

    /// Bring near what the plan's tickets point at. Only a hint.
    fn warm(&mut self, _plan: &mut Self::Plan) {}

    /// Use the results and decide. The plan stays where *prepare* put it: a copy of all tickets for each packet
    /// would cost more than most functions do.
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Self::Plan) -> Step;

    /// Do a little of what must be done some time, such as expiry: called after every batch, so it must be
    /// constant work, and about every millisecond (`idle` true), when it may be more. It is an event of its own, whose time is
    /// never later than that of a packet that waits, and whose operations nobody can wait for.
    fn tidy(&mut self, _tx: &mut Tx, _idle: bool) {}

    /// Return the names of files that the function uses while it runs: no output may be one of them.
    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Return the names of the files that [`Self::start`] creates or empties; `-` is the standard output.
    fn outputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Open what the function writes to, before the first packet.
    ///
    /// # Errors
    /// What could not be opened, in words for the user.
    fn start(&mut self, _time: Time) -> Result<(), String> {
        Ok(())
    }

    /// Show a mover each object whose entries or parts are of slots, always in the same order: they leave with their slots, and
    /// arrive with others' ([`Mover`]). An object that all instances see need not be shown.
    fn objects(&mut self, _tx: &mut Tx, _mover: &mut Mover) {}

    /// Hand over what is still held, once, after the last packet.
    ///
    /// # Errors
    /// What could not be done, in words for the user.
    fn end(&mut self, _tx: &mut Tx) -> Result<(), String> {
        Ok(())
    }

    /// Close what [`Self::start`] has opened, after all that was told has gone there.
    ///
    /// # Errors
    /// What could not be written, in words for the user.
    fn close(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Return the names of the drop reasons.
    fn reasons(&self) -> &'static [&'static str] {
        &[]
    }

    /// Tell figures worth a line in a table.
    fn gauges(&self, _tell: &mut dyn FnMut(&'static str, u64)) {}

    /// Return whether a gauge is the same in every instance: see [`Module::is_common`].
    fn is_common(&self, _gauge: &str) -> bool {
        false
    }
}

/// The module that runs a function on the state engine `E`.
pub struct Runner<E: Engine, F: Function<E>> {
    instance: Instance<E, F>,
    /// Empty where the engine makes nobody wait.
    parking: Parking<E, F>,
    /// Gives each tidying up, and the end, a clock.
    events: Root,
    has_ended: bool,
}

impl<E: Engine, F: Function<E>> Runner<E, F> {
    /// Make the module of a function whose state objects are of this engine.
    pub fn new(engine: E, function: F) -> Self {
        let events = Root::of_events(engine.share().index);
        let instance = Instance { engine, function, make: None, time: None };
        Runner { instance, parking: Parking::new(), events, has_ended: false }
    }

    /// Make the module of a function that may be lost, and is made anew by this.
    ///
    /// # Errors
    /// Why it cannot be made.
    #[cfg(test)]
    pub fn that_goes_on<X: std::fmt::Display>(
        mut engine: E,
        mut make: impl FnMut(&mut E) -> Result<F, X> + Send + 'static,
    ) -> Result<Self, X> {
        let function = make(&mut engine)?;
        let mut runner = Self::new(engine, function);
        let lost = crate::testing::engines::losses_of_this_thread();
        let made = move |engine: &mut E| {
            lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            make(engine).unwrap_or_else(|error| panic!("it was made before: {error}"))
        };
        runner.instance.make = Some(Box::new(made));
        Ok(runner)
    }

    /// Return the function.
    pub fn function(&self) -> &F {
        &self.instance.function
    }

    /// Return the function for changing, past its objects.
    #[cfg(test)]
    pub fn function_mut(&mut self) -> &mut F {
        &mut self.instance.function
    }

    /// Do something with the function, as an event of its own: the way of commands (a backend goes down) into a running one. It comes
    /// after all packets that came before it, which are waited for, and is done once more where the instance is lost meanwhile.
    pub fn command<R>(&mut self, now: u64, what: impl FnMut(&mut F, &mut Tx) -> R) -> R {
        self.parking.command(&mut self.instance, &mut self.events, now, what)
    }
}

impl<E: Engine, F: Function<E>> Module for Runner<E, F> {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        let Runner { instance, parking, events, .. } = self;
        if E::WAITS {
            parking.process(instance, events, cx, batch);
            return;
        }
        let Instance { engine, function, .. } = instance;
        // Nothing is counted where nobody waits: a packet's operations are begun again rather than kept beside its plan.
        let (times, gate) = (cx.times(), cx.gate());
        let mut plans = [const { MaybeUninit::<F::Plan>::uninit() }; BATCH];
        let count = batch.len();
        for (packet, plan) in batch.iter().zip(&mut plans) {
            let mut tx = engine.begin(of(packet, times, gate));
            plan.write(function.prepare(&mut tx, packet));
        }
        // SAFETY: the first `count` plans were just written.
        let plans = unsafe { std::slice::from_raw_parts_mut(plans.as_mut_ptr().cast::<F::Plan>(), count) };
        plans.iter_mut().for_each(|plan| function.warm(plan));
        let mut tx = engine.begin(Tx::new(0, cx.now(), gate));
        cx.decide(batch, |i, packet| {
            tx.goes_to(packet.meta().clock.bits(), time_of(packet, times), gate, packet.meta().way.slot());
            let plan = &mut plans[i];
            match function.finish(&mut tx, packet, plan) {
                Step::Done(verdict) => verdict,
                Step::Again => again(function, &mut tx, packet, plan),
            }
        });
        event(engine, function, events.stamp().bits(), cx.now(), |function, tx| function.tidy(tx, false));
    }

    fn tick(&mut self, cx: &mut Context) {
        if E::WAITS {
            self.instance.engine.has_come_to(cx.come_to().bits());
            self.parking.go_on(&mut self.instance, cx);
        }
        if self.instance.engine.is_gone() {
            return;
        }
        let now = self.parking.no_later(cx.now());
        self.parking.event(&mut self.instance, &mut self.events, now, |function, tx| function.tidy(tx, true));
        // What was told is on its way before others hear that this worker has come so far.
        self.instance.engine.flush();
    }

    fn idle(&mut self, cx: &mut Context) {
        if E::WAITS {
            self.parking.go_on(&mut self.instance, cx);
        }
    }

    fn is_polled(&self) -> bool {
        E::WAITS
    }

    fn poll(&mut self, cx: &mut Context) {
        if E::WAITS {
            self.parking.go_on(&mut self.instance, cx);
        }
    }

    fn waiting(&self) -> usize {
        self.parking.waiting() + usize::from(self.instance.engine.first_unsent().is_some())
    }

    fn first_waiting(&self) -> Option<Clock> {
        let unsent = self.instance.engine.first_unsent().map(Clock::from_bits);
        self.parking.first().into_iter().chain(unsent).min()
    }

    fn leave(&mut self, cx: &mut Context, slots: &SlotSet) -> Option<module::Parcel> {
        let Runner { instance, parking, events, .. } = self;
        let from = instance.engine.share().index;
        let mut mover = Mover::leaving(slots.clone(), from);
        let now = parking.no_later(cx.now());
        parking.event(instance, events, now, |function, tx| function.objects(tx, &mut mover));
        instance.engine.flush();
        let parcel = mover.into_parcel().filter(|parcel| !parcel.is_empty())?;
        Some(Box::new(parcel))
    }

    fn arrive(&mut self, cx: &mut Context, parcel: module::Parcel) -> Result<(), String> {
        let Ok(parcel) = parcel.downcast::<Parcel>() else { return Err("it is another function's".to_owned()) };
        let Runner { instance, parking, events, .. } = self;
        let mut mover = Mover::arriving(*parcel);
        let now = parking.no_later(cx.now());
        parking.event(instance, events, now, |function, tx| function.objects(tx, &mut mover));
        instance.engine.flush();
        match mover.refused() {
            _ if !mover.is_whole() => Err("it is of other objects than this function has".to_owned()),
            0 => Ok(()),
            refused => Err(format!("{refused} entries found no room")),
        }
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.instance.function.inputs()
    }

    fn outputs(&self) -> Vec<PathBuf> {
        self.instance.function.outputs()
    }

    fn start(&mut self, time: Time) -> Result<(), String> {
        if self.instance.engine.is_gone() {
            return self.instance.engine.close().and(Err("who holds its state is gone".to_owned()));
        }
        self.instance.time = Some(time);
        self.instance.function.start(time)
    }

    fn end(&mut self, cx: &mut Context) -> Result<(), String> {
        if E::WAITS {
            self.parking.empty(&mut self.instance, cx);
        }
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        let Runner { instance, parking, events, .. } = self;
        let ended = match instance.engine.is_gone() {
            true => Ok(()),
            false => parking.event(instance, events, cx.now(), |function, tx| function.end(tx)),
        };
        let settled = instance.engine.close();
        ended.and(instance.function.close()).and(settled)
    }

    fn reasons(&self) -> &'static [&'static str] {
        self.instance.function.reasons()
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        self.instance.function.gauges(tell);
    }

    fn is_common(&self, gauge: &str) -> bool {
        self.instance.function.is_common(gauge)
    }
}

/// Finish what the first *finish* did not; apart, so that the usual case stays short.
#[inline(never)]
fn again<E: Engine, F: Function<E>>(function: &mut F, tx: &mut Tx, packet: &mut Packet, plan: &mut F::Plan) -> Verdict {
    loop {
        if let Step::Done(verdict) = function.finish(tx, packet, plan) {
            return verdict;
        }
    }
}

/// Return the operations of a packet that came in by this gate.
#[inline(always)]
pub fn of(packet: &Packet, times: Times, gate: u16) -> Tx {
    Tx::new(packet.meta().clock.bits(), time_of(packet, times), gate).of(packet.meta().way.slot())
}

/// Return a packet's own time where it has one, else the worker's.
#[inline(always)]
fn time_of(packet: &Packet, times: Times) -> u64 {
    match packet.meta().arrival {
        0 => times.of(packet),
        arrival => arrival,
    }
}
