//! What the engine of a worker and its objects have in common: the ways to the other workers, who waits for which reply, and the
//! objects that the worker owns.
//!
//! Nothing here waits for anybody. What finds no room in a ring is kept until there is some; as a packet that asks waits for its
//! reply before it asks again, and what is only told ends with the entries that it is about, what is kept is bounded by packets and
//! entries.
//!
//! Operations are done in the order of the packets' clocks, the worker's own among them: each is put aside until no
//! worker has an earlier packet left ([`Horizon`]). What an event tells comes after the latest packet of its worker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use catena_packet::Clock;

use super::ring::{Reader, Writer};
use crate::tx::Tx;

/// Returns a clock up to which all packets of all workers have their fates, and all that was asked for them is in the rings.
pub type Horizon = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The ends of the rings between two workers that one of them has.
pub(super) struct Way {
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    /// Messages that found no room, in order, each after its number of words.
    kept: VecDeque<u64>,
}

impl Way {
    pub(super) fn new(writer: Writer, reader: Reader) -> Self {
        Way { writer, reader, kept: VecDeque::new() }
    }

    fn write(&mut self, message: &[u64]) {
        if !self.kept.is_empty() || !self.writer.write(message) {
            self.kept.push_back(message.len() as u64);
            self.kept.extend(message);
        }
    }

    /// Return the least clock of those that are kept.
    fn first_kept(&self) -> Option<u64> {
        let (mut at, mut first) = (0, None::<u64>);
        while let (Some(count), Some(clock)) = (self.kept.get(at), self.kept.get(at + 3)) {
            first = Some(first.map_or(*clock, |first| first.min(*clock)));
            at += 1 + *count as usize;
        }
        first
    }

    /// Bring on its way what was kept, as far as there is room, and tell the reader of all that is written.
    fn flush(&mut self, message: &mut Vec<u64>) {
        while let Some(count) = self.kept.front() {
            message.clear();
            message.extend(self.kept.range(1..=*count as usize));
            if !self.writer.write(message) {
                break;
            }
            self.kept.drain(..=message.len());
        }
        self.writer.tell();
    }
}

/// An object that this worker owns, for those who ask from elsewhere.
pub(super) trait Owned: Send {
    /// Apply the operation with this number and these bytes, to the entry of the key with these bytes where there are keys, and
    /// append its reply's bytes to `reply`; `None`, and nothing done, where it is none.
    fn answer(&mut self, key: &[u8], id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()>;
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tell,
    Ask,
    Reply,
}

/// What stands in front of a message's bytes, in three words.
struct Head {
    kind: Kind,
    object: u16,
    /// The operation's number.
    id: u16,
    /// The reply that the message is or asks for, by its number.
    number: u32,
    key: u16,
    op: u16,
    /// The clock of the packet whose operation it is.
    clock: u64,
}

impl Head {
    fn words(&self) -> [u64; 3] {
        let first = self.kind as u64 | u64::from(self.object) << 16 | u64::from(self.id) << 32;
        [first, u64::from(self.number) | u64::from(self.key) << 32 | u64::from(self.op) << 48, self.clock]
    }

    fn read([first, second, clock]: [u64; 3]) -> Head {
        let kind = [Kind::Tell, Kind::Ask, Kind::Reply][(first as usize & 0xff).min(2)];
        let [object, id] = [16, 32].map(|shift| (first >> shift) as u16);
        Head { kind, object, id, number: second as u32, key: (second >> 32) as u16, op: (second >> 48) as u16, clock }
    }
}

/// Append bytes to a message, filled up to whole words.
fn append(message: &mut Vec<u64>, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    message.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        message.push(u64::from_le_bytes(last));
    }
}

/// Which operation on which object is asked for or told, and where.
#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) owner: usize,
    pub(super) object: u16,
    pub(super) id: u16,
}

/// A reply that was asked for.
#[derive(Default)]
struct Reply {
    /// The packet that it is for; none once that has ended.
    unit: Option<u32>,
    has_come: bool,
    bytes: Vec<u8>,
}

/// A packet that has asked for something elsewhere.
#[derive(Default)]
struct Unit {
    /// What is asked and not sent off: the owner, the number of words, and these.
    asked: Vec<u64>,
    /// Replies that have not come.
    waits_for: u32,
    /// Replies that it has asked for, and how many of these were sent off.
    replies: Vec<u32>,
    sent: usize,
}

/// Things that are known by numbers from 1, and used again.
#[derive(Default)]
struct Numbered<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Numbered<T> {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(T::default());
            self.all.len() as u32
        })
    }

    fn at(&mut self, number: u32) -> &mut T {
        &mut self.all[number as usize - 1]
    }
}

/// Take in a reply.
fn has_come(replies: &mut Numbered<Reply>, units: &mut Numbered<Unit>, number: u32, bytes: &[u8]) {
    let reply = replies.at(number);
    match reply.unit {
        Some(unit) => {
            reply.has_come = true;
            reply.bytes.extend(bytes);
            units.at(unit).waits_for -= 1;
        }
        // Who asked has ended.
        None => replies.free.push(number),
    }
}

/// All of it.
pub(super) struct Desk {
    /// By worker; none to itself.
    ways: Vec<Option<Way>>,
    /// Those that this worker owns, by number.
    objects: Vec<Option<Box<dyn Owned>>>,
    units: Numbered<Unit>,
    replies: Numbered<Reply>,
    message: Vec<u64>,
    bytes: Vec<u8>,
    reply: Vec<u8>,
    /// This worker.
    worker: usize,
    horizon: Horizon,
    /// The clock of the latest packet that has begun.
    latest: u64,
    /// Operations that wait for their turn: by clock, worker, and the order in which they came.
    aside: BTreeMap<(u64, usize, u64), Vec<u64>>,
    came: u64,
    /// A reply has come since the poll began.
    has_news: bool,
}

impl Desk {
    pub(super) fn new(ways: Vec<Option<Way>>, worker: usize, horizon: Horizon) -> Self {
        Desk {
            ways,
            objects: Vec::new(),
            units: Numbered::default(),
            replies: Numbered::default(),
            message: Vec::new(),
            bytes: Vec::new(),
            reply: Vec::new(),
            worker,
            horizon,
            latest: 0,
            aside: BTreeMap::new(),
            came: 0,
            has_news: false,
        }
    }

    /// Note that a packet begins.
    pub(super) fn begins(&mut self, tx: &Tx) {
        if !Clock::from_bits(tx.clock()).is_event() {
            self.latest = self.latest.max(tx.clock());
        }
    }

    /// Note that all packets up to this clock have begun.
    pub(super) fn has_come_to(&mut self, clock: u64) {
        self.latest = self.latest.max(clock);
    }

    /// Return the place of an operation in the order of all.
    fn turn(&self, tx: &Tx) -> u64 {
        if Clock::from_bits(tx.clock()).is_event() { self.latest } else { tx.clock() }
    }

    /// Put an operation aside until it is its turn.
    fn put_aside(&mut self, from: usize, message: Vec<u64>) {
        self.came += 1;
        self.aside.insert((message[2], from, self.came), message);
    }

    /// Own an object from now on.
    pub(super) fn own(&mut self, object: u16, owned: Box<dyn Owned>) {
        let least = usize::from(object) + 1;
        if self.objects.len() < least {
            self.objects.resize_with(least, || None);
        }
        self.objects[usize::from(object)] = Some(owned);
    }

    /// Make a message of an operation, whose key and own bytes `write` appends; it returns how many the key has.
    fn write(
        &mut self,
        (kind, clock): (Kind, u64),
        address: Address,
        number: u32,
        write: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        let Address { object, id, .. } = address;
        self.bytes.clear();
        let key = write(&mut self.bytes);
        let [key, op] = [key, self.bytes.len() - key].map(|bytes| bytes as u16);
        self.message.clear();
        self.message.extend(Head { kind, object, id, number, key, op, clock }.words());
        append(&mut self.message, &self.bytes);
    }

    /// Ask for an operation, once the packet is sent off; returns the number of the reply.
    pub(super) fn ask(&mut self, tx: &mut Tx, address: Address, write: impl FnOnce(&mut Vec<u8>) -> usize) -> u32 {
        if tx.unit() == 0 {
            let unit = self.units.take();
            tx.is_known_as(unit);
        }
        let number = self.replies.take();
        let reply = self.replies.at(number);
        (reply.unit, reply.has_come) = (Some(tx.unit()), false);
        reply.bytes.clear();
        self.write((Kind::Ask, self.turn(tx)), address, number, write);
        let unit = self.units.at(tx.unit());
        unit.asked.extend([address.owner as u64, self.message.len() as u64]);
        unit.asked.extend(&self.message);
        unit.waits_for += 1;
        unit.replies.push(number);
        number
    }

    /// Tell an operation that nobody waits for.
    pub(super) fn tell(&mut self, tx: &Tx, address: Address, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        self.write((Kind::Tell, self.turn(tx)), address, 0, write);
        match &mut self.ways[address.owner] {
            Some(way) => way.write(&self.message),
            None => self.put_aside(self.worker, self.message.clone()),
        }
    }

    /// Send off what a packet has asked for.
    #[inline(never)]
    pub(super) fn issue(&mut self, tx: &Tx) {
        let mut asked = std::mem::take(&mut self.units.at(tx.unit()).asked);
        let mut rest = &asked[..];
        while let [owner, count, more @ ..] = rest {
            let (message, after) = more.split_at(*count as usize);
            match &mut self.ways[*owner as usize] {
                Some(way) => way.write(message),
                None => self.put_aside(self.worker, message.to_vec()),
            }
            rest = after;
        }
        asked.clear();
        let unit = self.units.at(tx.unit());
        unit.asked = asked;
        unit.sent = unit.replies.len();
        self.flush();
    }

    /// Return whether all replies have come that a packet waits for.
    #[inline(never)]
    pub(super) fn is_ready(&mut self, tx: &Tx) -> bool {
        self.units.at(tx.unit()).waits_for == 0
    }

    /// Take a reply that has come.
    pub(super) fn take<R>(&mut self, number: u32, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.replies.at(number).bytes)
    }

    /// Forget a packet. What it has asked for and not sent off is never done.
    #[inline(never)]
    pub(super) fn end(&mut self, tx: &Tx) {
        let Desk { units, replies, .. } = self;
        let unit = units.at(tx.unit());
        for (nth, number) in unit.replies.drain(..).enumerate() {
            let reply = replies.at(number);
            reply.unit = None;
            // What was sent off and has not come will come.
            if reply.has_come || nth >= unit.sent {
                replies.free.push(number);
            }
        }
        unit.asked.clear();
        (unit.waits_for, unit.sent) = (0, 0);
        units.free.push(tx.unit());
    }

    /// Do what others ask for, take in replies, and bring on its way what is to leave. Returns whether there was a reply.
    pub(super) fn poll(&mut self) -> bool {
        self.has_news = false;
        // Before the look at the rings: what earlier packets asked for is seen there.
        let through = (self.horizon)();
        for from in 0..self.ways.len() {
            while let Some(way) = &mut self.ways[from]
                && way.reader.read(&mut self.message)
            {
                if self.message[0] as u8 == Kind::Reply as u8 {
                    self.take_in(from);
                } else {
                    let message = self.message.clone();
                    self.put_aside(from, message);
                }
            }
        }
        while let Some(first) = self.aside.first_entry()
            && first.key().0 <= through.saturating_add(1)
        {
            let ((_, from, _), message) = first.remove_entry();
            self.message = message;
            self.take_in(from);
        }
        self.flush();
        self.has_news
    }

    pub(super) fn flush(&mut self) {
        for way in self.ways.iter_mut().flatten() {
            way.flush(&mut self.message);
        }
    }

    /// Take in the message at hand.
    fn take_in(&mut self, from: usize) {
        let Some((head, words)) = self.message.split_first_chunk() else {
            unreachable!("a message begins with its head")
        };
        let head = Head::read(*head);
        self.bytes.clear();
        words.iter().for_each(|word| self.bytes.extend(word.to_le_bytes()));
        let (key, op) = self.bytes.split_at(head.key.into());
        let op = &op[..head.op.into()];
        if head.kind == Kind::Reply {
            self.has_news = true;
            return has_come(&mut self.replies, &mut self.units, head.number, op);
        }
        self.reply.clear();
        let object = self.objects.get_mut(usize::from(head.object)).and_then(Option::as_mut);
        let done = object.and_then(|object| object.answer(key, head.id, op, &mut self.reply));
        done.unwrap_or_else(|| {
            unreachable!("object {} has no operation {}: both are of one build", head.object, head.id)
        });
        if head.kind == Kind::Tell {
            return;
        }
        if from == self.worker {
            self.has_news = true;
            return has_come(&mut self.replies, &mut self.units, head.number, &self.reply);
        }
        if let Some(way) = &mut self.ways[from] {
            let head = Head { kind: Kind::Reply, key: 0, op: self.reply.len() as u16, ..head };
            self.message.clear();
            self.message.extend(head.words());
            append(&mut self.message, &self.reply);
            way.write(&self.message);
        }
    }

    /// Return the clock of the earliest packet of whose operations one finds no room in a ring.
    pub(super) fn first_kept(&self) -> Option<u64> {
        self.ways.iter().flatten().filter_map(Way::first_kept).min()
    }

    /// Return whether all that was to leave has left, and all that was to be done is done.
    pub(super) fn has_left(&self) -> bool {
        self.aside.is_empty() && self.ways.iter().flatten().all(|way| way.kept.is_empty())
    }
}
