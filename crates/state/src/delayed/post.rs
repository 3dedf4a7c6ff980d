//! The way to who holds the shared objects: operations on it are late, but in order, and none is lost.

use std::collections::{BTreeMap, HashSet};

use catena_packet::random::SplitMix64;

use super::holder::{Call, Request};
use super::made::Made;
use super::one_holder::{OneHolder, Way};
use crate::tx::Pass;

/// A result is there after at most so many polls, if nobody says otherwise.
const MOST_DELAY: u64 = 5;
/// Every so many seeds the objects are on another thread.
const ELSEWHERE: u64 = 4;
/// The holder gets operations at the latest when there are so many.
const MOST_APPLIED: usize = 64;

/// Return whether operations on these keys of an object may be about the same; one without a key is about all of it.
pub(super) fn may_meet(a: Option<u64>, b: Option<u64>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// An operation on its way.
struct Sent {
    object: Made,
    /// Its number, where somebody waits for the reply.
    number: Option<u64>,
    /// Hash of the key of the entry that it is about; nothing where it may be about all of the object.
    key: Option<u64>,
    /// The poll after which it is applied.
    due: u64,
    call: Call,
    /// Whether it was sent off before.
    is_copy: bool,
}

/// The way.
pub(super) struct Post {
    pub(super) chance: SplitMix64,
    pub(super) most_delay: u64,
    pub(super) polls: u64,
    /// In the order in which they were sent off.
    sent: Vec<Sent>,
    /// What is applied as soon as somebody must know what came of it, in this order: each with its number, where somebody waits.
    applied: Vec<(Option<u64>, Call)>,
    /// Replies that nobody has taken yet, by the operation's number.
    replies: BTreeMap<u64, Vec<u8>>,
    /// The passes that have ended, and of which something may still be on its way.
    ended: Vec<Pass>,
    pub(super) holder: Way,
    /// The poll at which the holder is gone for good.
    pub(super) goes_at: Option<u64>,
}

impl Post {
    pub(super) fn new(delays: u64) -> Self {
        Post {
            chance: SplitMix64::new(delays),
            most_delay: MOST_DELAY,
            polls: 0,
            sent: Vec::new(),
            applied: Vec::new(),
            replies: BTreeMap::new(),
            ended: Vec::new(),
            holder: OneHolder::new(delays % ELSEWHERE == 1).way(),
            goes_at: None,
        }
    }

    /// Note that no more will be sent off of a packet.
    pub(super) fn end(&mut self, pass: Pass) {
        self.ended.push(pass);
    }

    /// Take the reply to an operation that is ready.
    pub(super) fn take(&mut self, number: u64) -> Option<Vec<u8>> {
        if !self.replies.contains_key(&number) {
            self.fetch();
        }
        self.replies.remove(&number)
    }

    /// Nobody waits any more for what was sent off: who did is lost, and with it what it had sent off once more.
    pub(super) fn forget_who_waits(&mut self) {
        let mut known = HashSet::new();
        self.sent.retain(|sent| known.insert((sent.call.object, sent.call.name)));
        self.sent.iter_mut().for_each(|sent| sent.number = None);
        self.applied.iter_mut().for_each(|(number, _)| *number = None);
        self.replies.clear();
    }

    pub(super) fn poll(&mut self) {
        self.polls += 1;
        self.apply_due();
    }

    /// Return whether the holder is gone: what has not come to it will not be done. Looks are answered by what was known last.
    pub(super) fn is_gone(&self) -> bool {
        self.goes_at.is_some_and(|at| self.polls >= at)
    }

    /// Return how many operations will never be done, where that is so.
    pub(super) fn undone(&self) -> Option<usize> {
        self.is_gone().then(|| self.sent.iter().filter(|sent| !sent.is_copy).count())
    }

    /// Apply what has come.
    pub(super) fn apply_due(&mut self) {
        let polls = self.polls;
        self.apply(|sent| sent.due <= polls);
    }

    /// Apply all operations that are on their way.
    pub(super) fn settle(&mut self) {
        self.apply(|_| true);
        self.fetch();
    }

    /// Apply what is on its way. Where the holder has no other engine, nobody can tell when it is done but by a reply: so it goes to the
    /// holder once one is looked at.
    fn apply(&mut self, when: impl Fn(&Sent) -> bool) {
        if self.is_gone() {
            return;
        }
        self.applied.extend(self.sent.extract_if(.., |sent| when(sent)).map(|sent| (sent.number, sent.call)));
        if self.applied.len() >= MOST_APPLIED || !self.holder.is_alone() {
            self.fetch();
        }
    }

    /// Let the holder do what is applied, and fetch the replies.
    fn fetch(&mut self) {
        if self.applied.is_empty() {
            return;
        }
        let is_coming = |pass: Pass| self.sent.iter().any(|sent| sent.call.name.is_some_and(|name| name.pass == pass));
        let over = self.ended.extract_if(.., |pass| !is_coming(*pass)).collect();
        let (numbers, calls): (Vec<_>, Vec<_>) = self.applied.drain(..).unzip();
        let replies = numbers.into_iter().zip(self.holder.answer(calls, over));
        self.replies.extend(replies.filter_map(|(number, reply)| Some((number?, reply))));
    }

    /// Ask the holder of an object something, after all operations on it that are on their way.
    pub(super) fn look(&mut self, object: Made, (number, request): (usize, Request)) -> Vec<u8> {
        self.apply(|sent| sent.object == object);
        self.fetch();
        self.holder.answer(vec![Call { object: number, name: None, request }], Vec::new()).swap_remove(0)
    }

    /// Ask the holder of an object something, after what has come to it already.
    pub(super) fn glance(&mut self, (number, request): (usize, Request)) -> Vec<u8> {
        self.holder.answer(vec![Call { object: number, name: None, request }], Vec::new()).swap_remove(0)
    }

    pub(super) fn delay(&mut self) -> u64 {
        if self.chance.is_one_in(2) { 0 } else { self.chance.bits() % (self.most_delay + 1) }
    }

    /// Return the poll after which an operation that is sent off now is applied: not before those on the same that were sent off
    /// earlier.
    fn due(&mut self, object: Made, key: Option<u64>) -> u64 {
        let is_same = |sent: &&Sent| !sent.is_copy && sent.object == object && may_meet(sent.key, key);
        let earlier = self.sent.iter().filter(is_same).map(|sent| sent.due).max();
        (self.polls + self.delay()).max(earlier.unwrap_or(0))
    }

    /// Ask once more for what was answered before; returns the poll after which the reply is there, which is now.
    pub(super) fn ask_again(&mut self, object: Made, key: Option<u64>, number: u64, call: Call) -> u64 {
        self.sent.push(Sent { object, number: Some(number), key, due: self.polls, call, is_copy: true });
        self.polls
    }

    /// Send off once more what was sent off before.
    pub(super) fn send_again(&mut self, object: Made, key: Option<u64>, call: Call) {
        let due = self.due(object, key) + self.delay();
        self.sent.push(Sent { object, number: None, key, due, call, is_copy: true });
    }

    /// Send off an operation; returns the poll after which its reply is there. Some are sent off once more, as who has lost the
    /// reply would do: the copy comes at once or later, also after later operations.
    pub(super) fn send_off(&mut self, object: Made, key: Option<u64>, number: Option<u64>, call: Call) -> u64 {
        let due = self.due(object, key);
        let again = due + self.delay();
        // By which of both the reply comes.
        let (first, copy) = match self.chance.bits() % 8 {
            0 => (number, Some(None)),
            1 => (None, Some(number)),
            _ => (number, None),
        };
        let sent = |number, due, is_copy| Sent { object, number, key, due, call: call.clone(), is_copy };
        self.sent.push(sent(first, due, false));
        self.sent.extend(copy.map(|number| sent(number, again, true)));
        if first == number { due } else { again }
    }
}
