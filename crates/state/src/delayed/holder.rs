//! Whoever holds the shared objects: gets operations as bytes, and answers with bytes. It may be a thread of its own.
//!
//! Now and then it is lost, and another one goes on with what its objects' bytes say.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use catena_packet::Slot;

use crate::key::Key;
use crate::local::LocalSharedMap;
use crate::looks::{let_look, looked};
use crate::shared::Held;
use crate::shared_map::{Entry, SharedMap};
use crate::stored::{restored, stored};
use crate::tx::{Name, Pass};

/// What is asked of an object.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(super) enum Request {
    /// To apply an operation, of a shared object; or to answer a question.
    Apply { id: u16, op: Vec<u8> },
    /// To apply an operation to the entry of a key, of a packet of a slot by its number: an entry that it makes is of that one.
    ApplyTo { slot: u16, key: Vec<u8>, id: u16, op: Vec<u8> },
    /// To look at so many places for entries that are over.
    Tidy { places: usize, now: u64 },
    /// To count the entries.
    Len,
    /// To tell how often an event was counted.
    Tally(usize),
    /// To tell the hash of all operations so far and their replies.
    History,
}

/// A request, as it goes to the holder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// Of which object, by its number.
    pub(super) object: usize,
    /// The operation's name; none of what only looks.
    pub(super) name: Option<Name>,
    pub(super) request: Request,
}

/// An object, as its holder has it.
pub(super) trait Object: Send {
    /// Do what is asked; returns the reply's bytes, or `None` for what nobody may ask of it.
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>>;

    /// Return what kind it is.
    fn kind(&self) -> &'static str;

    /// Return the object's bytes.
    fn bytes(&self) -> Vec<u8>;

    /// Become what has these bytes; `None` where nothing of this kind has.
    fn become_one_of(&mut self, bytes: &[u8]) -> Option<()>;
}

/// A shared object.
pub(super) struct One<V>(pub(super) V);

impl<V: Held> Object for One<V> {
    fn kind(&self) -> &'static str {
        V::NAME
    }

    fn bytes(&self) -> Vec<u8> {
        stored(&self.0)
    }

    fn become_one_of(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = restored(bytes)?;
        Some(())
    }

    fn answer(&mut self, request: &Request) -> Option<Vec<u8>> {
        let Request::Apply { id, op } = request else { return None };
        let mut reply = Vec::new();
        self.0.operate(*id, op, &mut reply).map(|()| reply)
    }
}

impl<K: Key, V: Entry> Object for LocalSharedMap<K, V> {
    fn kind(&self) -> &'static str {
        V::NAME
    }

    fn bytes(&self) -> Vec<u8> {
        stored(self)
    }

    fn become_one_of(&mut self, bytes: &[u8]) -> Option<()> {
        *self = restored(bytes)?;
        Some(())
    }
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>> {
        let mut reply = Vec::new();
        match request {
            Request::Apply { .. } => return None,
            Request::ApplyTo { slot, key, id, op } => {
                let slot = Slot::numbered(*slot).unwrap_or(Slot::NONE);
                self.operate((slot, key), *id, op, &mut reply)?;
            }
            Request::Tidy { places, now } => self.forget_some(*places, *now),
            Request::Len => reply.extend((self.len() as u64).to_le_bytes()),
            Request::Tally(event) => reply.extend(self.tally(*event).to_le_bytes()),
            Request::History => return None,
        }
        Some(reply)
    }
}

enum Message {
    Hold(Box<dyn Object>),
    /// What an engine asks, in this order; and its passes of which nothing will come any more.
    Answer(u32, Vec<Call>, Vec<Pass>),
}

struct Replies {
    replies: Vec<Vec<u8>>,
    /// Entries that were looked at for them.
    looked: u64,
}

/// The replies to a packet's operations, by object and index.
type Replied = BTreeMap<(usize, u32), Vec<u8>>;

/// The objects, and what was done to them.
///
/// "The datastore logs the state value corresponding to each state update request issued by any instance, as well as the
/// logical clock of the corresponding packet. This is only done for packets that are currently being processed" (CHC: Khalid's
/// dissertation, §3.4.3).
#[derive(Default)]
struct Objects {
    /// By number, each with the hash of its history.
    objects: Vec<(Box<dyn Object>, u64)>,
    /// The replies to operations, by whose they are and of which engine.
    applied: HashMap<(u32, Pass), Replied>,
    /// How often it was asked, and how often it was lost.
    asked: u64,
    lost: u32,
}

/// The next holder goes on after so many times as many calls as the one before: there are some early, when little has happened, and some
/// late, and a long run costs no more for them.
const LONGER: u64 = 3;

/// Return the hash of a history that goes on with this.
fn after(history: u64, request: &Request, reply: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (history, request, reply).hash(&mut hasher);
    hasher.finish()
}

/// Hand an object over to the next holder.
fn hand_over(object: &mut dyn Object) {
    let (kind, bytes) = (object.kind(), object.bytes());
    object.become_one_of(&bytes).unwrap_or_else(|| panic!("{kind}: an object does not come back from its bytes"));
    assert!(object.bytes() == bytes, "{kind}: an object comes back from its bytes as another one");
}

impl Objects {
    /// Do what is asked, in this order: but what has been done before is answered as it was then. Then forget packets.
    fn answer(&mut self, engine: u32, calls: &[Call], over: &[Pass]) -> Vec<Vec<u8>> {
        self.asked += 1;
        if self.asked >= LONGER.saturating_pow(self.lost) {
            self.lost += 1;
            self.objects.iter_mut().for_each(|(object, _)| hand_over(&mut **object));
        }
        let replies = calls.iter().map(|call| self.answer_one(engine, call)).collect();
        over.iter().for_each(|pass| _ = self.applied.remove(&(engine, *pass)));
        replies
    }

    fn answer_one(&mut self, engine: u32, call: &Call) -> Vec<u8> {
        let Call { object, name, request } = call;
        let known = |name: &Name| self.applied.get(&(engine, name.pass))?.get(&(*object, name.index));
        if let Some(reply) = name.as_ref().and_then(known) {
            return reply.clone();
        }
        let place = self.objects.get_mut(*object);
        let reply = place.and_then(|(object, history)| match request {
            Request::History => Some(history.to_le_bytes().to_vec()),
            _ => object.answer(request).inspect(|reply| {
                if name.is_some() {
                    *history = after(*history, request, reply);
                }
            }),
        });
        let reply = reply.unwrap_or_else(|| panic!("nobody can do this: {call:?}"));
        if let Some(Name { pass, index }) = *name {
            self.applied.entry((engine, pass)).or_default().insert((*object, index), reply.clone());
        }
        reply
    }

    /// Do what comes, until nobody is left to ask.
    fn serve(mut self, asked: &Receiver<Message>, answers: &Sender<Replies>) {
        for message in asked {
            match message {
                Message::Hold(object) => self.objects.push((object, 0)),
                Message::Answer(engine, calls, over) => {
                    let before = looked();
                    let replies = self.answer(engine, &calls, &over);
                    if answers.send(Replies { replies, looked: looked() - before }).is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Where the objects are. They are reached by bytes alone wherever they are; to reach another thread takes far longer.
enum Place {
    Here(Objects),
    /// Ends with this.
    Elsewhere {
        requests: Sender<Message>,
        replies: Receiver<Replies>,
    },
}

/// The way to the holder.
pub(super) struct Holder {
    place: Place,
    objects: usize,
}

const PANICKED: &str = "an operation has panicked where the objects are";

impl Holder {
    /// Make one without objects: a thread of its own, if it is `elsewhere`.
    pub(super) fn new(elsewhere: bool) -> Self {
        if !elsewhere {
            return Holder { place: Place::Here(Objects::default()), objects: 0 };
        }
        let (requests, asked) = channel();
        let (answers, replies) = channel();
        thread::spawn(move || Objects::default().serve(&asked, &answers));
        Holder { place: Place::Elsewhere { requests, replies }, objects: 0 }
    }

    /// Hold an object from now on; returns its number.
    pub(super) fn hold(&mut self, object: Box<dyn Object>) -> usize {
        match &mut self.place {
            Place::Here(objects) => objects.objects.push((object, 0)),
            Place::Elsewhere { requests, .. } => requests.send(Message::Hold(object)).expect(PANICKED),
        }
        self.objects += 1;
        self.objects - 1
    }

    /// Do what an engine asks, in this order; returns the replies. Nothing will come any more of passes of its that are `over`.
    pub(super) fn answer(&mut self, engine: u32, calls: Vec<Call>, over: Vec<Pass>) -> Vec<Vec<u8>> {
        match &mut self.place {
            Place::Here(objects) => objects.answer(engine, &calls, &over),
            Place::Elsewhere { requests, replies } => {
                let sent = requests.send(Message::Answer(engine, calls, over)).ok();
                let Replies { replies, looked } = sent.and_then(|()| replies.recv().ok()).expect(PANICKED);
                let_look(looked);
                replies
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::bytes;
    use crate::value::{Add, Counts, Get};
    use crate::{Numbered, Plain};

    fn pass(clock: u64) -> Pass {
        Pass { clock, gate: 0 }
    }

    fn call<O: Numbered<Counts> + Plain>(name: Option<(u64, u32)>, op: &O) -> Call {
        let name = name.map(|(clock, index)| Name { pass: pass(clock), index });
        Call { object: 0, name, request: Request::Apply { id: O::ID, op: bytes(op) } }
    }

    #[test]
    fn what_comes_twice_is_done_once_until_its_packet_is_over() {
        for elsewhere in [false, true] {
            let mut holder = Holder::new(elsewhere);
            holder.hold(Box::new(One(Counts::new(1))));
            let mut sum_after = |names: &[(u64, u32)], over: &[u64]| {
                let adds = names.iter().map(|name| call(Some(*name), &Add::to(0, 1)));
                let calls = adds.chain([call(None, &Get::at(0))]).collect();
                let over = over.iter().copied().map(pass).collect();
                crate::plain::value::<i64>(holder.answer(1, calls, over).last().unwrap()).unwrap()
            };
            assert_eq!(sum_after(&[(7, 0), (7, 1), (8, 0)], &[]), 3);
            assert_eq!(sum_after(&[(7, 1), (7, 0), (8, 1)], &[7]), 4);
            assert_eq!(sum_after(&[(7, 0), (8, 0)], &[]), 5, "forgotten, and not forgotten");
        }
        let mut objects = Objects { objects: vec![(Box::new(One(Counts::new(1))), 0)], ..Objects::default() };
        let calls: Vec<_> = (1..100).map(|clock| call(Some((clock, 0)), &Add::to(0, 1))).collect();
        objects.answer(1, &calls, &(1..=99).map(pass).collect::<Vec<_>>());
        assert!(objects.applied.is_empty());
    }
}
