//! What a packet asks for is applied after all that earlier packets of its flow have told.

use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::{Seed, ports};
use catena_state::value::{Admit, Counts, Get};
use catena_state::{
    Access, Declaration, Delayed, Engine, FlowMap, Intent, Local, Op, Plain, Scope, Share, Shared, Stored, Tx,
    operations,
};

use super::{Function, Runner, Step};
use crate::testing::engines::on_delayed;
use crate::testing::{Harness, START, craft};

const TOLD: Declaration = Declaration::shared("told", "packets that were told of", Scope::Global, Access::ReadWrite);

/// Ask how many were told of.
#[derive(Clone, Copy, Plain)]
struct Ask;

impl Op<Number> for Ask {
    type Reply = u32;

    fn apply(self, told: &mut Number) -> u32 {
        told.0
    }
}

/// Tell of one more.
#[derive(Clone, Copy, Plain)]
struct Tell;

/// How many were told of.
#[derive(Stored)]
struct Number(u32);

operations!("number": Number { 0 => Ask, 1 => Tell });

impl Op<Number> for Tell {
    type Reply = ();

    fn apply(self, told: &mut Number) {
        told.0 += 1;
    }
}

/// Tells of each packet once its fate is known, and passes those that hear of all that came before.
struct Hearing<E: Engine> {
    told: E::Shared<Number>,
    passed: u32,
}

impl<E: Engine> Function<E> for Hearing<E> {
    type Plan = <E::Shared<Number> as Shared<Number>>::Ticket<Ask>;

    fn prepare(&mut self, tx: &mut Tx, _packet: &Packet) -> Self::Plan {
        self.told.want(tx, Ask)
    }

    fn finish(&mut self, tx: &mut Tx, _packet: &mut Packet, plan: &mut Self::Plan) -> Step {
        let heard = self.told.got(tx, plan);
        self.told.send(tx, Tell);
        self.passed += 1;
        Step::Done(if heard + 1 == self.passed { Verdict::Gate(0) } else { Verdict::Drop(Reason(0)) })
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["heard too little"]
    }
}

fn hear<E: Engine>(mut engine: E) -> usize {
    let told = engine.shared(&TOLD, Number(0));
    let mut harness = Harness::new(Box::new(Runner::new(engine, Hearing { told, passed: 0 })), 2);
    let packet = |_| (START, craft("udp 10.0.0.1:4000 > 192.0.2.9:53"));
    let mut left = harness.send(0, &(0..100).map(packet).collect::<Vec<_>>()).len();
    left += harness.finish().len();
    harness.end();
    left
}

#[test]
fn a_packet_hears_what_its_flow_has_told() {
    assert_eq!(hear(Local::new(Seed::from_number(1), Share::WHOLE)), 100);
    for seed in 0..50 {
        let passed = on_delayed(seed, || hear(Delayed::new(Seed::from_number(1), Share::WHOLE, seed)));
        assert_eq!(passed, 100, "seed {seed}");
    }
}

const OWN: Declaration =
    Declaration::flow_map("own", "nothing", Scope::Connection, Access::ReadWrite).scoped(Scope::Configured);
const MET: Declaration = Declaration::flow_map("met", "packets that came by", Scope::Connection, Access::ReadWrite)
    .scoped(Scope::Configured);

type Map<E> = <E as Engine>::FlowMap<u64, u64>;

/// Asks for an entry that all packets have in common, in its second step, as who it belongs to is known only then.
struct Meeting<E: Engine> {
    own: Map<E>,
    met: Map<E>,
    /// Those that have asked for the entry and wait for it.
    waiting: Vec<u64>,
    out_of_order: usize,
    waited: usize,
}

/// A packet's number, the ticket of its step, and whether that is the second.
type Meet<E> = (u64, <Map<E> as FlowMap<u64, u64>>::Ticket, bool);

impl<E: Engine> Function<E> for Meeting<E> {
    type Plan = Meet<E>;

    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Meet<E> {
        let (number, _) = ports(packet.data(), &packet.layers()).unwrap();
        (number.into(), self.own.want(tx, number.into(), Intent::Read), false)
    }

    fn finish(&mut self, tx: &mut Tx, _packet: &mut Packet, plan: &mut Meet<E>) -> Step {
        let (number, ticket, is_second) = *plan;
        if !is_second {
            assert_eq!(self.own.read(tx, &ticket), None);
            *plan = (number, self.met.want(tx, 0, Intent::Create), true);
            if !self.waiting.is_empty() {
                self.waited += 1;
            }
            self.waiting.push(number);
            return Step::Again;
        }
        self.out_of_order += self.waiting.iter().filter(|other| **other < number).count();
        self.waiting.retain(|other| *other != number);
        let before = self.met.get(tx, &ticket).map(|mut met| {
            *met += 1;
            *met
        });
        if before.is_none() {
            self.met.insert(tx, &ticket, 1, catena_state::FOREVER).unwrap();
        }
        Step::Done(Verdict::Gate(0))
    }
}

#[test]
fn what_a_later_step_asks_for_is_used_in_the_order_of_packets() {
    let mut waited = 0;
    for seed in 0..50 {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let (own, met) = (engine.flow_map(&OWN, 10).unwrap(), engine.flow_map(&MET, 10).unwrap());
        let function = Meeting { own, met, waiting: Vec::new(), out_of_order: 0, waited: 0 };
        let mut harness = Harness::new(Box::new(Runner::new(engine, function)), 2);
        let packet = |n| (START, craft(&format!("udp 10.0.0.1:{n} > 192.0.2.9:53")));
        let packets: Vec<_> = (1..=100).map(packet).collect();
        let left = on_delayed(seed, || harness.send(0, &packets).len() + harness.finish().len());
        let function = harness.module::<Runner<Delayed, Meeting<Delayed>>>().function();
        assert_eq!((left, function.out_of_order), (100, 0), "seed {seed}");
        waited += function.waited;
        harness.end();
    }
    assert!(waited > 100, "packets meet");
}

const DONE: Declaration = Declaration::shared("done", "packets", Scope::Global, Access::ReadWrite);

/// Has each packet counted before it decides.
struct Counting<E: Engine> {
    done: E::Shared<Counts>,
}

impl<E: Engine> Function<E> for Counting<E> {
    type Plan = <E::Shared<Counts> as Shared<Counts>>::Ticket<Admit>;

    fn prepare(&mut self, tx: &mut Tx, _packet: &Packet) -> Self::Plan {
        self.done.want(tx, Admit { index: 0, n: 1, most: i64::MAX })
    }

    fn finish(&mut self, tx: &mut Tx, _packet: &mut Packet, plan: &mut Self::Plan) -> Step {
        assert!(self.done.got(tx, plan));
        Step::Done(Verdict::Gate(0))
    }
}

/// Who finds no place to wait has done nothing: it is counted nowhere.
#[test]
fn what_a_packet_asks_for_is_not_done_where_it_finds_no_place() {
    for seed in 0..8 {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed).slow(1_000);
        let done = engine.shared(&DONE, Counts::new(1));
        let mut harness = Harness::new(Box::new(Runner::new(engine, Counting { done })), 2);
        let packet = |n| (START, craft(&format!("udp 10.0.0.1:{n} > 192.0.2.9:53")));
        let mut left = on_delayed(seed, || harness.send(0, &(1..=600).map(packet).collect::<Vec<_>>())).len();
        left += harness.finish().len();
        let given_up = harness.drops()["too many wait for their state"];
        assert!(given_up > 100 && left as u64 + given_up == 600, "seed {seed}: {left} left, {given_up} given up");
        let counted = harness.module::<Runner<Delayed, Counting<Delayed>>>().function().done.look(Get::at(0));
        assert_eq!(counted, left as i64, "seed {seed}");
        harness.end();
    }
}
