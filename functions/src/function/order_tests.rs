//! What a packet asks for is applied after all that earlier packets of its flow have told.

use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::Seed;
use catena_state::{Access, Declaration, Delayed, Engine, Local, Op, Plain, Scope, Share, Shared, operations};

use super::{At, Function, Runner, Step};
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
struct Number(u32);

operations!(Number { 0 => Ask, 1 => Tell });

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

    fn prepare(&mut self, at: At<E::Tx>, _packet: &Packet) -> Self::Plan {
        self.told.want(at.tx, Ask)
    }

    fn finish(&mut self, at: At<E::Tx>, _packet: &mut Packet, plan: &mut Self::Plan) -> Step {
        let heard = self.told.got(at.tx, plan);
        self.told.send(at.tx, Tell);
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
