//! Whoever holds the shared objects: a thread of its own, which gets operations as bytes and answers with bytes.

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
    replies: Vec<Option<Vec<u8>>>,
    /// Entries that were looked at for them.
    looked: u64,
}

/// The way to the holder. It ends with this.
pub(super) struct Holder {
    requests: Sender<Message>,
    replies: Receiver<Replies>,
    objects: usize,
}

impl Holder {
    pub(super) fn new() -> Self {
        let (requests, asked) = channel();
        let (answers, replies) = channel();
        thread::spawn(move || {
            let mut objects: Vec<Box<dyn Object>> = Vec::new();
            for message in asked {
                match message {
                    Message::Hold(object) => objects.push(object),
                    Message::Answer(requests) => {
                        let answer = |(object, request): &(usize, Request)| objects.get_mut(*object)?.answer(request);
                        let before = looked();
                        let replies = requests.iter().map(answer).collect();
                        if answers.send(Replies { replies, looked: looked() - before }).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Holder { requests, replies, objects: 0 }
    }

    fn send(&self, message: Message) {
        self.requests.send(message).unwrap_or_else(|_| panic!("an operation has panicked where the objects are"));
    }

    fn hold(&mut self, object: Box<dyn Object>) -> usize {
        self.send(Message::Hold(object));
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
    pub(super) fn answer(&self, requests: Vec<(usize, Request)>) -> Vec<Vec<u8>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let asked = requests.clone();
        self.send(Message::Answer(requests));
        let Replies { replies, looked } =
            self.replies.recv().unwrap_or_else(|_| panic!("an operation has panicked where the objects are"));
        let_look(looked);
        let known = |(reply, asked): (Option<Vec<u8>>, (usize, Request))| {
            reply.unwrap_or_else(|| panic!("nobody can do this: {asked:?}"))
        };
        replies.into_iter().zip(asked).map(known).collect()
    }
}
