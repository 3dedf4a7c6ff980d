//! An instance of a C function: what it may call, and how it is called. All of Catena's side of the ABI that
//! runs while packets flow is here.
//!
//! An instance stands at one address as long as it lives: C code holds pointers to its context, and its
//! packet descriptors are filled anew for every batch. Rust's part, [`Own`], is lent out anew in every call back,
//! and never while C code runs.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use catena_dataplane::module::Verdict;
use catena_dataplane::{Context, Reason};
use catena_packet::random::Random;
use catena_packet::{BATCH, Batch, Packet};
use catena_state::{Engine, Share, Tx};

use super::abi;
use super::asked::Asked;
use super::callback::Calls;
use super::library::Loaded;
use super::log::Log;
use super::state::State;
use super::values::Arguments;
use crate::function::Step;

/// What the instance holds beside what C code sees.
pub struct Own<E: Engine> {
    /// The packets that are with the function, first and number; none outside *process*.
    pub packets: (*mut Packet, usize),
    /// Lent while *init* runs: arguments are read and state objects made only then.
    pub starting: Option<NonNull<E>>,
    /// The arguments.
    pub arguments: Arguments,
    /// Why *init* or *finish* fails.
    pub failure: Option<String>,
    /// The state objects.
    pub state: State<E>,
    /// Lines for the operator.
    pub log: Log,
    /// The function's randomness.
    pub random: Random,
    /// Calls that were refused.
    pub mistakes: u64,
}

/// What C code has pointers into; the context comes first, so that its address is this one's.
#[repr(C)]
pub struct Shared<E: Engine> {
    context: abi::Context,
    /// One descriptor a packet.
    pub descriptors: [abi::Packet; BATCH],
    pointers: [*mut abi::Packet; BATCH],
    /// Rust's part.
    pub own: Own<E>,
}

/// An instance.
pub struct Instance<E: Engine> {
    shared: NonNull<Shared<E>>,
    own: *mut c_void,
    function: Loaded,
    /// Ways that the chain leads on, by bit.
    ways: u32,
    started: bool,
    /// The latest time of a packet that came alone.
    latest: u64,
}

// SAFETY: the header tells authors that calls of one instance may come from different threads, one after the
// other; what it points at belongs to it alone.
unsafe impl<E: Engine> Send for Instance<E> {}

impl<E: Engine> Instance<E> {
    /// Make an instance and let the function set itself up. `ways` has a bit for each way that the chain leads on,
    /// `replaces` is what the instance that it will replace calls itself, or null.
    ///
    /// # Errors
    /// Why the function refused, in its words.
    pub fn start(
        function: Loaded,
        own: Own<E>,
        engine: &mut E,
        share: Share,
        ways: u32,
        replaces: *mut c_void,
    ) -> Result<Instance<E>, String> {
        // What reads a command line or a locale while it starts uses the C library's variables: one at a time.
        static STARTING: Mutex<()> = Mutex::new(());
        let context = abi::Context {
            size: size_of::<abi::Context>() as u32,
            gate: 0,
            now: 0,
            instance: share.index,
            instances: share.count,
            host: Calls::<E>::HOST,
            replaces,
        };
        const EMPTY: abi::Packet = abi::Packet {
            data: std::ptr::null_mut(),
            len: 0,
            tail_room: 0,
            head_room: 0,
            in_port: 0,
            mark: 0,
            arrival: 0,
            l3: 0,
            net: 0,
            protocol: 0,
            flags: 0,
            l4: 0,
            payload: 0,
            verdict: 0,
            reserved: 0,
            clock: 0,
            reserved2: 0,
        };
        let shared = Shared { context, descriptors: [EMPTY; BATCH], pointers: [std::ptr::null_mut(); BATCH], own };
        let shared = NonNull::from(Box::leak(Box::new(shared)));
        // SAFETY: we alone have the fresh allocation; pointers to its elements are taken, no references kept.
        unsafe {
            let shared = shared.as_ptr();
            let first = (&raw mut (*shared).descriptors).cast::<abi::Packet>();
            for i in 0..BATCH {
                (*shared).pointers[i] = first.add(i);
            }
        }
        let mut instance = Instance { shared, own: std::ptr::null_mut(), function, ways, started: false, latest: 0 };
        instance.own().starting = Some(NonNull::from(engine));
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = match function.table.init {
            // SAFETY: a checked table's function, called as the header says.
            Some(init) => unsafe { init(instance.context(0, 0), &raw mut instance.own) != 0 },
            None => false,
        };
        drop(starting);
        // SAFETY: the context is the first member; no reference to it exists.
        unsafe { (*instance.shared.as_ptr().cast::<abi::Context>()).replaces = std::ptr::null_mut() };
        let own = instance.own();
        own.starting = None;
        let message = own.failure.take();
        if failed {
            return Err(message.unwrap_or_else(|| "it gave no message".to_owned()));
        }
        instance.started = true;
        message.map_or(Ok(instance), Err)
    }

    /// Return Rust's part. Not for the time of a call: call backs take it themselves.
    pub fn own(&mut self) -> &mut Own<E> {
        // SAFETY: we hold the instance mutably, so no C code of it runs, and nobody else has this reference.
        unsafe { &mut (*self.shared.as_ptr()).own }
    }

    /// Return Rust's part for looking.
    pub fn own_ref(&self) -> &Own<E> {
        // SAFETY: C code, and with it call backs, runs only while the instance is held mutably.
        unsafe { &(*self.shared.as_ptr()).own }
    }

    fn context(&mut self, now: u64, gate: u16) -> *mut abi::Context {
        let context = self.shared.as_ptr().cast::<abi::Context>();
        // SAFETY: the context is the first member; no reference to it exists.
        unsafe {
            (*context).now = now;
            (*context).gate = u32::from(gate);
            // Restored for every call: a function that wrote over it would harm only itself, once.
            (*context).host = Calls::<E>::HOST;
        }
        context
    }

    /// Let the function work on a batch, whose headers are parsed. Its verdicts are then asked for one by one.
    #[inline]
    pub fn process(&mut self, cx: &Context, batch: &mut Batch) {
        let (Some(process), count) = (self.function.table.process, batch.len()) else { return };
        let (now, gate) = (cx.now(), cx.gate());
        let shared = self.shared.as_ptr();
        for (i, packet) in batch.iter_mut().enumerate() {
            let data = packet.data_mut().as_mut_ptr();
            // SAFETY: a batch has at most as many packets as there are descriptors; no reference to one exists.
            unsafe { (&raw mut (*shared).descriptors[i]).write(describe(packet, data, now, gate)) };
        }
        self.ask(now, gate, count);
        self.own().packets = (batch.as_mut_slice().as_mut_ptr(), count);
        let context = self.context(now, gate);
        // SAFETY: a checked table's function, called as the header says: `count` valid pointers to descriptors, whose
        // bytes belong to the batch that we hold. Until it returns neither the batch nor `own` is touched here.
        unsafe { process(self.own, context, (&raw const (*shared).pointers).cast(), count as u32) };
        self.own().packets = (std::ptr::null_mut(), 0);
    }

    /// Let the function ask for the state of the packets that are described.
    #[inline]
    fn ask(&mut self, now: u64, gate: u16, count: usize) {
        let Some(prepare) = self.function.table.prepare else { return };
        let (shared, context) = (self.shared.as_ptr(), self.context(now, gate));
        // SAFETY: a checked table's function, called as the header says: it only looks at `count` packets.
        unsafe { prepare(self.own, context, (&raw const (*shared).pointers).cast(), count as u32) };
    }

    /// Let the function ask for the state of a packet that comes alone; returns what it asked for.
    pub fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Asked<E> {
        self.describe_one(tx, packet, packet.data().as_ptr().cast_mut());
        let gate = tx.gate;
        let state = &mut self.own().state;
        state.take_up(tx, Asked::NOTHING);
        state.prepares = true;
        self.ask(self.latest, gate, 1);
        let state = &mut self.own().state;
        state.prepares = false;
        state.let_go(tx)
    }

    /// Let the function go on with a packet that comes alone, with what it has asked for. Where something comes later, it is
    /// to be called again with what it has asked for then.
    pub fn step(&mut self, tx: &mut Tx, packet: &mut Packet, asked: &mut Asked<E>) -> Step {
        let Some(process) = self.function.table.process else { return Step::Done(Verdict::Gate(tx.gate)) };
        let data = packet.data_mut().as_mut_ptr();
        self.describe_one(tx, packet, data);
        let gate = tx.gate;
        let own = self.own();
        own.state.take_up(tx, *asked);
        own.packets = (std::ptr::from_mut(packet), 1);
        let (shared, context) = (self.shared.as_ptr(), self.context(self.latest, gate));
        // SAFETY: as in `process`, with one packet.
        unsafe { process(self.own, context, (&raw const (*shared).pointers).cast(), 1) };
        // SAFETY: no C code runs, so nobody writes to it.
        let again = unsafe { (*shared).descriptors[0].verdict } == abi::AGAIN;
        let own = self.own();
        own.packets = (std::ptr::null_mut(), 0);
        if again && own.state.packet.is_patient {
            *asked = own.state.let_go_for_now(tx);
            return Step::Again;
        }
        own.state.let_go(tx);
        Step::Done(self.verdict(0, tx.gate, packet))
    }

    fn describe_one(&mut self, tx: &Tx, packet: &Packet, data: *mut u8) {
        self.latest = self.latest.max(tx.now);
        // SAFETY: no reference to a descriptor exists.
        unsafe { (&raw mut (*self.shared.as_ptr()).descriptors[0]).write(describe(packet, data, tx.now, tx.gate)) };
    }

    /// Return the drop reason of a verdict that does not exist.
    pub fn bad_verdict(&self) -> Reason {
        Reason((self.function.reasons.len() - super::OWN_REASONS.len()) as u8)
    }

    /// Return what the function decided for packet `i` of the batch, and carry over what it may change.
    #[inline(always)]
    pub fn verdict(&mut self, i: usize, gate: u16, packet: &mut Packet) -> Verdict {
        // SAFETY: `i` is bounded by the array; no C code runs, so nobody writes to it.
        let seen = unsafe { &(*self.shared.as_ptr()).descriptors[i] };
        let Reason(bad) = self.bad_verdict();
        if seen.data != packet.data_mut().as_mut_ptr() || seen.len as usize != packet.len() {
            return Verdict::Drop(Reason(bad + 1));
        }
        packet.meta_mut().mark = seen.mark;
        if self.function.table.flags & abi::KEEPS_LAYERS == 0 {
            packet.reparse();
        }
        let verdict = seen.verdict;
        if verdict == u32::from(gate) {
            return Verdict::Gate(gate);
        }
        if verdict & abi::DROP != 0 {
            let reason = verdict & !abi::DROP;
            return Verdict::Drop(Reason(if reason < u32::from(bad) { reason as u8 } else { bad }));
        }
        if verdict as usize >= 2 * super::WAYS.len() {
            return Verdict::Drop(Reason(bad));
        }
        let direction = verdict % 2;
        let led_on = self.ways & 1 << (verdict / 2) != 0;
        Verdict::Gate(if led_on { verdict } else { direction } as u16)
    }

    /// Let the function do what is due.
    pub fn tick(&mut self, now: u64) {
        if let Some(tick) = self.function.table.tick {
            let context = self.context(now, 0);
            // SAFETY: a checked table's function, called as the header says.
            unsafe { tick(self.own, context) };
        }
    }

    /// Let the function write out what it holds.
    ///
    /// # Errors
    /// What it could not, in its words.
    pub fn finish(&mut self, now: u64) -> Result<(), String> {
        let Some(finish) = self.function.table.finish else { return Ok(()) };
        let context = self.context(now, 0);
        // SAFETY: a checked table's function, called as the header says.
        let failed = unsafe { finish(self.own, context) != 0 };
        let message = self.own().failure.take();
        if failed { Err(message.unwrap_or_else(|| "it gave no message".to_owned())) } else { Ok(()) }
    }

    /// Go on with the state of another instance, which has processed all packets so far and will process no more.
    ///
    /// # Errors
    /// Why the state cannot be taken over. Both instances are as they were.
    pub fn take_over(&mut self, old: &mut Instance<E>, now: u64) -> Result<(), String> {
        self.own_ref().state.fits(&old.own_ref().state)?;
        if let Some(take_over) = self.function.table.take_over {
            let context = self.context(now, 0);
            // SAFETY: a checked table's function, called as the header says: no other code of either instance runs.
            let failed = unsafe { take_over(self.own, context, old.own) != 0 };
            if let (true, message) | (false, message @ Some(_)) = (failed, self.own().failure.take()) {
                return Err(message.unwrap_or_else(|| "it gave no message".to_owned()));
            }
        }
        let (own, before) = (self.own(), old.own());
        own.state.take(&mut before.state);
        own.mistakes += before.mistakes;
        std::mem::swap(&mut own.random, &mut before.random);
        Ok(())
    }

    /// Return what the function calls this instance.
    pub fn address(&self) -> *mut c_void {
        self.own
    }

    /// Return the function.
    pub fn function(&self) -> &Loaded {
        &self.function
    }
}

impl<E: Engine> Drop for Instance<E> {
    fn drop(&mut self) {
        if let (Some(release), true) = (self.function.table.release, self.started) {
            // SAFETY: a checked table's function, called as the header says: once, last.
            unsafe { release(self.own) };
        }
        // SAFETY: made by `Box::leak` in `start`, given back once; no C code of this instance runs again.
        drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
    }
}

/// Return a packet as the function sees it.
#[inline(always)]
fn describe(packet: &Packet, data: *mut u8, now: u64, gate: u16) -> abi::Packet {
    let (meta, layers) = (*packet.meta(), packet.layers());
    let room = (packet.head_room() as u16, packet.tail_room() as u32);
    abi::Packet {
        data,
        len: packet.len() as u32,
        tail_room: room.1,
        head_room: room.0,
        in_port: meta.way.port(),
        mark: meta.mark,
        arrival: if meta.arrival == 0 { now } else { meta.arrival },
        l3: layers.l3,
        net: layers.net as u8,
        protocol: layers.proto,
        flags: layers.flags,
        l4: layers.l4,
        payload: layers.payload,
        verdict: u32::from(gate),
        reserved: 0,
        clock: meta.clock.bits(),
        reserved2: 0,
    }
}
