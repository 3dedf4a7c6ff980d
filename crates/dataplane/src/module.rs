//! What a module is, and what it sees of the world while it works.

use std::any::Any;
use std::path::PathBuf;

use catena_packet::random::Random;
use catena_packet::wire::Malformed;
use catena_packet::{BATCH, Batch, Clock, DepotHandle, Packet, Pool, SlotSet};

use crate::pipeline::Time;

/// Why a module dropped a packet: an index into its [`Module::reasons`], or one of those every module
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u8);

impl Reason {
    /// How many reasons there can be.
    pub const COUNT: usize = 256;
    /// Reasons from here on say what is wrong with the packet's headers.
    const MALFORMED: u8 = 128;
    /// The packet left by a gate that leads nowhere.
    pub const NO_GATE: Reason = Reason(255);
    /// The packet visited so many modules that the graph must be a loop.
    pub const LOOP: Reason = Reason(254);
    /// No packet buffer was left.
    pub const NO_BUFFER: Reason = Reason(253);
    /// The queue before the next task was full.
    pub const QUEUE_FULL: Reason = Reason(252);

    /// The packet would have had to wait for its state, and too many did.
    pub const NO_PARKING: Reason = Reason(251);

    /// Who holds the packet's state is gone for good.
    pub const NO_STATE: Reason = Reason(250);

    /// Return the reason for malformed headers.
    pub fn malformed(what: Malformed) -> Reason {
        Reason(Self::MALFORMED + what as u8)
    }

    /// Return the reason in words, given the module's own.
    pub fn text(self, own: &[&'static str]) -> &'static str {
        match self {
            Reason::NO_GATE => "gate leads nowhere",
            Reason::LOOP => "loop in the graph",
            Reason::NO_BUFFER => "no packet buffer left",
            Reason::QUEUE_FULL => "queue full",
            Reason::NO_PARKING => "too many wait for their state",
            Reason::NO_STATE => "its state is lost",
            Reason(code) if code >= Self::MALFORMED => {
                Malformed::ALL.iter().find(|m| **m as u8 == code - Self::MALFORMED).map_or("malformed", |m| m.reason())
            }
            Reason(code) => own.get(usize::from(code)).copied().unwrap_or("unnamed reason"),
        }
    }
}

/// One step of packet processing: takes a batch, hands packets to its output gates.
pub trait Module: Any + Send {
    /// Work on the packets of `batch`, which came in by gate [`Context::gate`].
    ///
    /// Packets left in the batch leave by the output gate of the same number, so that a module which does
    /// nothing passes both directions; others are handed to [`Context::emit`] or [`Context::drop`]. This runs for every batch: it does not allocate, lock, format or log.
    fn process(&mut self, cx: &mut Context, batch: &mut Batch);

    /// Do what is due from time to time (about every millisecond of the context's time): expire, export.
    fn tick(&mut self, _cx: &mut Context) {}

    /// Hand on what somebody may be waiting for; called now and then while the worker finds no packet, whatever the
    /// context's time. What comes of packets must not depend on it.
    fn idle(&mut self, _cx: &mut Context) {}

    /// Return whether [`Self::poll`] is to be called: the module waits for other workers, and they for it.
    fn is_polled(&self) -> bool {
        false
    }

    /// Do what other workers ask for, and go on with what they have answered: called again and again, with packets and without.
    fn poll(&mut self, _cx: &mut Context) {}

    /// Return how many packets wait in the module for other workers.
    fn waiting(&self) -> usize {
        0
    }

    /// Return whether the module holds packets back until it is told otherwise, or may have to: the run goes on until then.
    fn is_holding(&self) -> bool {
        false
    }

    /// Return the clock of the earliest packet that waits in the module for other workers.
    fn first_waiting(&self) -> Option<Clock> {
        None
    }

    /// Hand over what the module has of some slots, for its like on another worker; nothing where it keeps nothing by slots. No
    /// packet of these slots is in it, and none comes after.
    fn leave(&mut self, _cx: &mut Context, _slots: &SlotSet) -> Option<Parcel> {
        None
    }

    /// Take in what its like on another worker had of some slots, before any packet of theirs comes.
    ///
    /// # Errors
    /// What was lost, in words for the user.
    fn arrive(&mut self, _cx: &mut Context, _parcel: Parcel) -> Result<(), String> {
        Ok(())
    }

    /// Return the names of files that the module uses while it runs, other than a port's: no output may be one of them.
    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Return the names of the files that [`Self::start`] creates or empties, other than a port's; `-` is the standard
    /// output.
    fn outputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Open what the module writes to; called once, before the first packet, also for a module that joins a running
    /// pipeline. One that is taken out and added again is asked again, and leaves open what it has open. Making a
    /// module opens nothing, so that a pipeline can be made on trial.
    ///
    /// # Errors
    /// What could not be opened, in words for the user.
    fn start(&mut self, _time: Time) -> Result<(), String> {
        Ok(())
    }

    /// Write out what is still held; called once, after the last packet.
    ///
    /// # Errors
    /// What could not be written, in words for the user.
    fn end(&mut self, _cx: &mut Context) -> Result<(), String> {
        Ok(())
    }

    /// Return the names of this module's own drop reasons; [`Reason`] is an index into them.
    fn reasons(&self) -> &'static [&'static str] {
        &[]
    }

    /// Tell figures worth a line in a table, by name (`mappings`, 1234).
    fn gauges(&self, _tell: &mut dyn FnMut(&'static str, u64)) {}

    /// Return whether a gauge is the same in every instance, such as a number of rules: of several workers it is not
    /// summed.
    fn is_common(&self, _gauge: &str) -> bool {
        false
    }

    /// Return whether packets end their way here (latency is measured where they do).
    fn is_exit(&self) -> bool {
        false
    }
}

/// What a module hands over to its like: only they know what is in it.
pub type Parcel = Box<dyn Any + Send>;

/// What a source found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// There may be more at once.
    More,
    /// Nothing now; ask again later.
    Idle,
    /// Nothing ever again.
    Done,
}

/// Where packets come into a task: a port's receiving side, a generator, the far end of a queue.
pub trait Source: Any + Send {
    /// Add packets to the (empty) batch. A source of recorded traffic sets the context's time with
    /// [`Context::set_now`].
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled;

    /// Tell figures worth a line in a table, by name.
    fn gauges(&self, _tell: &mut dyn FnMut(&'static str, u64)) {}

    /// Return what went wrong for good, once [`Pulled::Done`] came early.
    fn error(&self) -> Option<String> {
        None
    }

    /// Return whether its packets are there as fast as they are asked for, so that nobody waits for one longer
    /// when it is held back until there are more.
    fn is_recorded(&self) -> bool {
        false
    }
}

/// Packets handed to one output gate beside the batch itself.
#[derive(Default)]
pub(crate) struct Emitted {
    pub(crate) batch: Batch,
    /// More than a batch; only modules that make packets get here.
    pub(crate) spill: Vec<Packet>,
}

/// What a module sees of the world: time, randomness, buffers, gates. One per worker.
pub struct Context {
    pub(crate) now: u64,
    is_replay: bool,
    is_by_wall: bool,
    come_to: Clock,
    pub(crate) gate: u16,
    pub(crate) sample: bool,
    pub(crate) emitted: Vec<Emitted>,
    /// Gates with something in `emitted`.
    pub(crate) touched: Vec<u16>,
    pub(crate) drops: [u32; Reason::COUNT],
    /// Reasons with something in `drops`.
    pub(crate) dropped: Vec<u8>,
    random: Random,
    pool: Pool,
}

impl Context {
    /// Make the context of one worker.
    ///
    /// `seed` makes everything random in it repeatable.
    pub fn new(depot: &DepotHandle, seed: u64) -> Self {
        Context {
            now: 0,
            is_replay: false,
            is_by_wall: false,
            come_to: Clock::NONE,
            gate: 0,
            sample: false,
            emitted: Vec::new(),
            touched: Vec::with_capacity(64),
            drops: [0; Reason::COUNT],
            dropped: Vec::with_capacity(64),
            random: Random::new(seed),
            pool: depot.pool(),
        }
    }

    /// Return the time in ns since 1970: of the packets when they were recorded, else of the wall. It
    /// never goes back.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Let each packet have the time at which it came, as a recorded one does, rather than that of its batch.
    pub fn tell_packets_apart(&mut self) {
        self.is_replay = true;
    }

    /// Note that the worker has no packet left up to this clock, of those of a replay that several share.
    pub(crate) fn has_come_to(&mut self, clock: Clock) {
        self.come_to = clock;
    }

    /// Return a clock up to which the worker has had all its packets: what it does without a packet comes after that.
    pub fn come_to(&self) -> Clock {
        self.come_to
    }

    /// Return what tells the times of packets.
    #[inline(always)]
    pub fn times(&self) -> Times {
        Times { now: self.now, is_replay: self.is_replay }
    }

    /// Set the time to that of recorded traffic, unless that would go back, or the time is that of the wall.
    #[inline(always)]
    pub fn set_now(&mut self, now: u64) {
        if !self.is_by_wall {
            self.now = self.now.max(now);
        }
    }

    /// Set the time to that of the wall: from now on no recorded packet changes it.
    #[inline(always)]
    pub(crate) fn set_wall(&mut self, now: u64) {
        self.is_by_wall = true;
        self.now = self.now.max(now);
    }

    /// Return whether the time is that of the wall.
    pub(crate) fn is_by_wall(&self) -> bool {
        self.is_by_wall
    }

    /// Return the input gate that the batch came in by.
    #[inline(always)]
    pub fn gate(&self) -> u16 {
        self.gate
    }

    /// Return the worker's source of randomness.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Return the worker's packet buffers.
    #[inline(always)]
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Hand a packet to an output gate.
    #[inline]
    pub fn emit(&mut self, gate: u16, packet: Packet) {
        let index = usize::from(gate);
        if index >= self.emitted.len() {
            self.grow(index);
        }
        let emitted = &mut self.emitted[index];
        if emitted.batch.is_empty() {
            self.touched.push(gate);
        }
        if emitted.batch.is_full() {
            emitted.spill.push(packet);
        } else {
            emitted.batch.push(packet);
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.emitted.resize_with(index + 1, Emitted::default);
        self.touched.reserve(self.emitted.len());
    }

    /// Drop a packet and count why.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        let count = &mut self.drops[usize::from(reason.0)];
        if *count == 0 {
            self.dropped.push(reason.0);
        }
        *count += 1;
        self.pool.put(packet);
    }

    /// Count packets as dropped that are no longer there.
    #[cold]
    pub(crate) fn count_drops(&mut self, reason: Reason, packets: u64) {
        let count = &mut self.drops[usize::from(reason.0)];
        if packets > 0 && *count == 0 {
            self.dropped.push(reason.0);
        }
        *count = count.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
    }

    /// Parse the headers of all packets that are not yet parsed; malformed ones are dropped and counted.
    #[inline]
    pub fn parse(&mut self, batch: &mut Batch) {
        let mut malformed = [None; BATCH];
        let mut any = false;
        for (packet, slot) in batch.iter_mut().zip(&mut malformed) {
            // Of packets that others have parsed, nothing but that is read: all modules of a chain ask.
            if !packet.is_parsed()
                && let Err(what) = packet.parse()
            {
                *slot = Some(what);
                any = true;
            }
        }
        if any {
            self.drop_malformed(batch, &malformed);
        }
    }

    #[cold]
    fn drop_malformed(&mut self, batch: &mut Batch, malformed: &[Option<Malformed>; BATCH]) {
        batch.filter(|i, packet| match malformed[i] {
            None => Some(packet),
            Some(what) => {
                self.drop(packet, Reason::malformed(what));
                None
            }
        });
    }

    /// Decide for every packet of the batch what becomes of it, in order.
    #[inline(always)]
    pub fn decide(&mut self, batch: &mut Batch, mut verdict: impl FnMut(usize, &mut Packet) -> Verdict) {
        self.decide_some(batch, |i, mut packet| {
            let verdict = verdict(i, &mut packet);
            Some((packet, verdict))
        });
    }

    /// Ask for the fate of every packet in the batch, and do it; those that are not given back are kept by who was asked.
    #[inline(always)]
    pub fn decide_some(
        &mut self,
        batch: &mut Batch,
        mut verdict: impl FnMut(usize, Packet) -> Option<(Packet, Verdict)>,
    ) {
        let onward = self.gate;
        batch.filter(|i, packet| match verdict(i, packet)? {
            (packet, Verdict::Gate(gate)) if gate == onward => Some(packet),
            (packet, Verdict::Gate(gate)) => {
                self.emit(gate, packet);
                None
            }
            (packet, Verdict::Drop(reason)) => {
                self.drop(packet, reason);
                None
            }
        });
    }
}

/// Tells at which time a packet came.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    now: u64,
    is_replay: bool,
}

impl Times {
    /// Return the time of a packet, in ns since 1970. Where traffic is recorded it is the same, whatever packets are with it in
    /// the batch: what becomes of it does not depend on how packets are spread.
    #[inline(always)]
    pub fn of(self, packet: &Packet) -> u64 {
        if self.is_replay { packet.meta().time() } else { self.now }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves by this output gate.
    Gate(u16),
    /// It is dropped.
    Drop(Reason),
}
