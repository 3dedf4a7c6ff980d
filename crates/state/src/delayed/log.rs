//! What packets have done that are still on their way, and what came of it: a packet that is processed again does the same,
//! hears the same, and nothing is done twice.
//!
//! "If the NF crashes, the framework replays packets, and the datastore emulates execution of the state update corresponding to a
//! replayed packet, returning the value that it logged" (CHC: Khalid's dissertation, §3.4.3 and §3.5.4, in other words). Operations on shared
//! objects are logged where these are held; here are those on entries, and what was asked.

use std::collections::HashMap;

use super::holder::Request;
use super::made::Made;
use crate::tx::{Name, Pass};

/// What is done under a name.
#[derive(Debug, PartialEq)]
pub(super) enum What {
    /// An operation on the entries of a map, or on an outlet, with what it is told.
    Entry(&'static str, Vec<u8>),
    /// An operation on a shared object.
    Shared(Request),
}

/// What was done under a name.
struct Done {
    object: Made,
    what: What,
    reply: Vec<u8>,
    /// What was written to an entry in hand, or that nothing was; not known while it was in hand.
    left: Option<Option<Vec<u8>>>,
}

/// What a packet has done.
#[derive(Default)]
struct Packet {
    done: Vec<Done>,
    /// How many operations *prepare* asked for.
    prepared: Option<usize>,
    /// Steps that had begun, after *prepare*.
    steps: u32,
}

/// What packets have done, by their passes.
#[derive(Default)]
pub(super) struct Log(HashMap<Pass, Packet>);

/// A packet has done something else under a name than before: to which object.
pub(super) struct Differs(pub(super) Made);

impl Log {
    fn done(&self, name: Name) -> Option<&Done> {
        self.0.get(&name.pass)?.done.get(name.index as usize)
    }

    fn done_mut(&mut self, name: Name) -> Option<&mut Done> {
        self.0.get_mut(&name.pass)?.done.get_mut(name.index as usize)
    }

    /// Return whether something was done under a name.
    pub(super) fn knows(&self, name: Name) -> bool {
        self.done(name).is_some()
    }

    /// Return whether *prepare* has asked for all that it asks for, and this was not among it.
    pub(super) fn is_more_than_prepared(&self, name: Name) -> bool {
        let prepared = self.0.get(&name.pass).and_then(|packet| packet.prepared);
        prepared.is_some_and(|count| name.index as usize >= count)
    }

    /// Return the reply to what was done before under a name.
    ///
    /// # Errors
    /// Something else was done.
    pub(super) fn recall(&self, name: Name, object: Made, what: &What) -> Result<Option<Vec<u8>>, Differs> {
        match self.done(name) {
            Some(done) if done.object == object && done.what == *what => Ok(Some(done.reply.clone())),
            Some(done) => Err(Differs(done.object)),
            None => Ok(None),
        }
    }

    /// Note what was done under the name that comes next.
    pub(super) fn note(&mut self, name: Name, object: Made, what: What, reply: Vec<u8>) {
        let done = &mut self.0.entry(name.pass).or_default().done;
        debug_assert_eq!(done.len(), name.index as usize, "{object}: operations come one after the other");
        done.push(Done { object, what, reply, left: None });
    }

    /// Note how an entry is left that was in hand. Returns whether it must be written now.
    ///
    /// # Errors
    /// It was left otherwise before.
    pub(super) fn leave(&mut self, name: Name, written: Option<Vec<u8>>) -> Result<bool, Differs> {
        let Some(done) = self.done_mut(name) else { return Ok(written.is_some()) };
        match &done.left {
            Some(before) if *before == written => Ok(false),
            Some(_) => Err(Differs(done.object)),
            None => {
                let is_written = written.is_some();
                done.left = Some(written);
                Ok(is_written)
            }
        }
    }

    /// Note that *prepare* has asked for so many.
    ///
    /// # Errors
    /// It asked for more before.
    pub(super) fn prepared(&mut self, pass: Pass, count: u32) -> Result<(), Differs> {
        let Some(packet) = self.0.get_mut(&pass) else { return Ok(()) };
        let count = count as usize;
        match packet.prepared.replace(count) {
            Some(before) if before > count => Err(Differs(packet.done[count].object)),
            _ => Ok(()),
        }
    }

    /// Note that a packet's step begins: the first after *prepare* is number 1.
    pub(super) fn step(&mut self, pass: Pass, step: u32) {
        let packet = self.0.entry(pass).or_default();
        packet.steps = packet.steps.max(step);
    }

    /// Return how many steps of a packet had begun.
    pub(super) fn steps(&self, pass: Pass) -> u32 {
        self.0.get(&pass).map_or(0, |packet| packet.steps)
    }

    /// Forget a packet, which has done so many operations and will do no more.
    ///
    /// # Errors
    /// It did more before.
    pub(super) fn end(&mut self, pass: Pass, count: u32) -> Result<(), Differs> {
        let missed =
            self.0.remove(&pass).and_then(|packet| packet.done.get(count as usize).map(|missed| missed.object));
        missed.map_or(Ok(()), |missed| Err(Differs(missed)))
    }

    /// Forget a packet.
    pub(super) fn forget(&mut self, pass: Pass) {
        self.0.remove(&pass);
    }
}
