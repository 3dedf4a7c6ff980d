//! Whoever holds the shared objects: gets operations as bytes, and answers with bytes. It may be a thread of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::key::Key;
use crate::local::LocalSharedMap;
use crate::looks::{let_look, looked};
use crate::shared::Held;
use crate::shared_map::{Entry, SharedMap};

/// What is asked of an object.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// To apply an operation, of a shared object; or to answer a question.
    Apply { id: u16, op: Vec<u8> },
    /// To apply an operation to the entry of a key.
    ApplyTo { key: Vec<u8>, id: u16, op: Vec<u8> },
    /// To look at so many places for entries that are over.
    Tidy { places: usize, now: u64 },
    /// To count the entries.
    Len,
    /// To tell how often an event was counted.
    Tally(usize),
}

/// An object, as its holder has it.
trait Object: Send {
    /// Do what is asked; returns the reply's bytes, or `None` for what nobody may ask of it.
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>>;
}

struct One<V>(V);

impl<V: Held> Object for One<V> {
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>> {
        let Request::Apply { id, op } = request else { return None };
        let mut reply = Vec::new();
        self.0.operate(*id, op, &mut reply).map(|()| reply)
    }
}

impl<K: Key, V: Entry> Object for LocalSharedMap<K, V> {
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>> {
        let mut reply = Vec::new();
        match request {
            Request::Apply { .. } => return None,
            Request::ApplyTo { key, id, op } => self.operate(key, *id, op, &mut reply)?,
            Request::Tidy { places, now } => self.forget_some(*places, *now),
            Request::Len => reply.extend((self.len() as u64).to_le_bytes()),
            Request::Tally(event) => reply.extend(self.tally(*event).to_le_bytes()),
        }
        Some(reply)
    }
}

enum Message {
    Hold(Box<dyn Object>),
    /// What is asked of which object, in this order.
    Answer(Vec<(usize, Request)>),
}

struct Replies {
    replies: Vec<Vec<u8>>,
    /// Entries that were looked at for them.
    looked: u64,
}

/// The objects, by number.
#[derive(Default)]
struct Objects(Vec<Box<dyn Object>>);

impl Objects {
    /// Do what is asked, in this order.
    fn answer(&mut self, requests: &[(usize, Request)]) -> Vec<Vec<u8>> {
        let answer = |(object, request): &(usize, Request)| {
            let reply = self.0.get_mut(*object).and_then(|object| object.answer(request));
            reply.unwrap_or_else(|| panic!("nobody can do this: {request:?}, of object {object}"))
        };
        requests.iter().map(answer).collect()
    }

    /// Do what comes, until nobody is left to ask.
    fn serve(mut self, asked: &Receiver<Message>, answers: &Sender<Replies>) {
        for message in asked {
            match message {
                Message::Hold(object) => self.0.push(object),
                Message::Answer(requests) => {
                    let before = looked();
                    let replies = self.answer(&requests);
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

    fn hold(&mut self, object: Box<dyn Object>) -> usize {
        match &mut self.place {
            Place::Here(objects) => objects.0.push(object),
            Place::Elsewhere { requests, .. } => requests.send(Message::Hold(object)).expect(PANICKED),
        }
        self.objects += 1;
        self.objects - 1
    }

    /// Hold an object from now on; returns its number.
    pub(super) fn hold_one(&mut self, value: impl Held) -> usize {
        self.hold(Box::new(One(value)))
    }

    /// Hold a map from now on; returns its number.
    pub(super) fn hold_map<K: Key, V: Entry>(&mut self, map: LocalSharedMap<K, V>) -> usize {
        self.hold(Box::new(map))
    }

    /// Do what is asked of these objects, in this order; returns the replies.
    pub(super) fn answer(&mut self, asked: Vec<(usize, Request)>) -> Vec<Vec<u8>> {
        match &mut self.place {
            _ if asked.is_empty() => Vec::new(),
            Place::Here(objects) => objects.answer(&asked),
            Place::Elsewhere { requests, replies } => {
                let sent = requests.send(Message::Answer(asked)).ok();
                let Replies { replies, looked } = sent.and_then(|()| replies.recv().ok()).expect(PANICKED);
                let_look(looked);
                replies
            }
        }
    }
}
