//! The general way: flows that begin and end, packets of any length, TCP sessions.

use catena_packet::Batch;
use catena_packet::buffer::prefetch;
use catena_packet::random::Random;
use catena_packet::wire::tcp;

use super::frame::{Frames, SYN_HEADER, Say, headers};
use super::pace::Pace;
use super::session::Session;
use super::spec::{Length, Order, SHORTEST, Size, Spec, Tcp};
use super::tuple::{Proto, Tuple, Tuples};
use crate::module::Context;

/// Flows that the processor is asked for before their turn comes.
const AHEAD: usize = 4;

/// A living flow and its place.
#[repr(align(64))]
struct Flow {
    tuple: Tuple,
    /// How many flows this place had before.
    generation: u64,
    /// Packets (of a session: with data) still to come.
    left: u64,
    /// What a plain TCP flow repeats comes from this.
    bits: u64,
    session: Option<Session>,
    /// A new flow takes the place as soon as the session is closed.
    displaced: bool,
}

/// Flows, and whose packet is next.
pub(super) struct Mixed {
    flows: Box<[Flow]>,
    /// The places with a living flow, in the order of their turns.
    living: Vec<u32>,
    free: Vec<u32>,
    next: usize,
    /// A turn, and the size drawn for it, that no buffer was left for.
    waiting: Option<(usize, usize)>,
    /// Whose turn it is to end for a new flow.
    victim: usize,
    births: Option<Births>,
    begun: u64,
    size: Size,
    length: Length,
    order: Order,
    tcp: Tcp,
    random: Random,
    frames: Frames,
    tuples: Tuples,
}

/// When new flows begin.
struct Births {
    /// ns between two.
    every: f64,
    /// How many there were since `start`.
    count: u64,
    start: Option<u64>,
}

impl Births {
    /// When the next one is due, in ns since 1970.
    fn due(&self) -> u64 {
        let since = (self.count + 1) as f64 * self.every;
        self.start.unwrap_or(0).saturating_add(since as u64)
    }

    /// Count all that are due as done.
    fn catch_up(&mut self, now: u64) {
        let since = now.saturating_sub(self.start.unwrap_or(now));
        self.count = self.count.max((since as f64 / self.every) as u64);
    }
}

impl Mixed {
    pub fn new(spec: &Spec, frames: Frames, tuples: Tuples) -> Self {
        let mut random = Random::new(spec.seed ^ 0x5bd1_e995);
        let flows = (0..spec.flows).map(|place| Flow::new(place, 0, spec.length, spec.tcp, &tuples, &mut random));
        let flows = flows.collect();
        Mixed {
            flows,
            living: (0..spec.flows as u32).collect(),
            free: Vec::with_capacity(if spec.new.is_some() { spec.flows as usize } else { 0 }),
            next: 0,
            waiting: None,
            victim: 0,
            births: spec.new.map(|rate| Births { every: 1e9 / rate, count: 0, start: None }),
            begun: spec.flows,
            size: spec.size,
            length: spec.length,
            order: spec.order,
            tcp: spec.tcp,
            random,
            frames,
            tuples,
        }
    }

    /// Return how many flows began.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Add up to `count` packets to the batch, as far as their time has come.
    pub fn pull(&mut self, cx: &mut Context, batch: &mut Batch, count: usize, pace: &mut Pace) {
        while batch.len() < count {
            let Some(now) = pace.due(cx) else { break };
            self.bear(now);
            let (turn, size) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match self.turn() {
                    Some(turn) => (turn, self.size.draw(&mut self.random)),
                    None if self.births.as_ref().is_some_and(|births| pace.skip(births.due())) => continue,
                    None => break,
                },
            };
            let place = self.living[turn];
            let flow = &mut self.flows[place as usize];
            let before = (flow.left, flow.session);
            let (length, say) = flow.say(size, self.tcp);
            let Some(mut packet) = cx.pool().take(length) else {
                (flow.left, flow.session) = before;
                self.waiting = Some((turn, size));
                break;
            };
            self.frames.write(packet.data_mut(), &flow.tuple, &say);
            packet.meta_mut().arrival = now;
            batch.push(packet);
            pace.sent(length);
            if flow.is_over() {
                self.end(turn);
            }
        }
    }

    /// Say whose turn it is: an index into `living`.
    #[inline]
    fn turn(&mut self) -> Option<usize> {
        let living = self.living.len();
        if living == 0 {
            return None;
        }
        let turn = match self.order {
            Order::Random => return Some(self.random.below(living as u32) as usize),
            Order::RoundRobin if self.next >= living => 0,
            Order::RoundRobin => self.next,
        };
        self.next = turn + 1;
        if let Some(place) = self.living.get(turn + AHEAD) {
            let flow = std::ptr::from_ref(&self.flows[*place as usize]);
            prefetch(flow);
            prefetch(flow.cast::<u8>().wrapping_add(64));
        }
        Some(turn)
    }

    /// A flow has come to its end.
    #[inline]
    fn end(&mut self, turn: usize) {
        let place = self.living[turn];
        if self.births.is_none() || self.flows[place as usize].displaced {
            self.begin(place);
        } else {
            self.living.swap_remove(turn);
            self.free.push(place);
            // Whoever moved here has not had its turn.
            if self.next == turn + 1 {
                self.next = turn;
            }
        }
    }

    /// Let the next flow of a place begin.
    fn begin(&mut self, place: u32) {
        let flow = &mut self.flows[place as usize];
        let generation = flow.generation + 1;
        *flow = Flow::new(place.into(), generation, self.length, self.tcp, &self.tuples, &mut self.random);
        self.begun += 1;
    }

    /// Let the flows begin that are due.
    #[inline]
    fn bear(&mut self, now: u64) {
        let Some(births) = &mut self.births else { return };
        births.start.get_or_insert(now);
        if births.due() <= now {
            self.bear_due(now);
        }
    }

    /// Let the flows begin that are due; of more than there are places, only as many: others would end
    /// before their first packet.
    #[inline(never)]
    fn bear_due(&mut self, now: u64) {
        for _ in 0..self.flows.len() {
            match self.free.pop() {
                Some(place) => {
                    self.living.push(place);
                    self.begin(place);
                }
                None => self.displace(),
            }
            let Some(births) = &mut self.births else { return };
            births.count += 1;
            if births.due() > now {
                return;
            }
        }
        if let Some(births) = &mut self.births {
            births.catch_up(now);
        }
    }

    /// End a living flow for a new one.
    #[cold]
    fn displace(&mut self) {
        if self.victim >= self.living.len() {
            self.victim = 0;
        }
        let place = self.living[self.victim];
        self.victim += 1;
        let flow = &mut self.flows[place as usize];
        if flow.session.is_some() {
            flow.displaced = true;
        } else {
            self.begin(place);
        }
    }
}

impl Flow {
    fn new(place: u64, generation: u64, length: Length, tcp: Tcp, tuples: &Tuples, random: &mut Random) -> Self {
        let tuple = tuples.get(place, generation);
        let bits = tuples.bits(place, generation);
        let session = (tuple.proto == Proto::Tcp && tcp != Tcp::Plain).then(|| Session::new(bits));
        Flow { tuple, generation, left: length.draw(random), bits, session, displaced: false }
    }

    /// Return the flow's next packet and its length, for a wanted `size` of packets with data.
    #[inline]
    fn say(&mut self, size: usize, tcp: Tcp) -> (usize, Say) {
        let headers = headers(self.tuple.proto, self.tuple.v6);
        let Some(session) = &mut self.session else {
            self.left -= 1;
            let length = size.max(headers);
            return match self.tuple.proto {
                Proto::Tcp => (length, Frames::plain_segment(&self.tuple, self.bits, length)),
                _ => (length, Say::Datagram),
            };
        };
        // A segment of data has at least one byte of it.
        let data = size.max(headers + 1) - headers;
        loop {
            if self.left == 0 || self.displaced {
                session.close();
            }
            if session.is_data_next() {
                self.left -= 1;
            }
            let option = if session.is_syn_next() { SYN_HEADER - tcp::HEADER_LEN } else { 0 };
            let ours = tcp != Tcp::Client || !session.is_server_next();
            let say = session.next(data);
            if let Say::Segment { data, .. } = say
                && ours
            {
                return ((headers + option + data).max(SHORTEST), say);
            }
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        match &self.session {
            Some(session) => session.is_over(),
            None => self.left == 0,
        }
    }
}
