//! Where ways part: a module whose arms are tried in order, each with conditions that must all hold.

pub mod bpf;
mod test;
mod view;

use catena_packet::wire::{Layers, Net, Seed};
use catena_packet::{Batch, Packet};

use crate::datagrams::Datagrams;
use crate::module::{Context, Module, Reason, Verdict};
pub use test::{Endpoint, Prefix, Protocols, Test};
pub use view::View;

/// An arm of a [`Branch`].
#[derive(Clone, Debug)]
pub struct Arm {
    /// All must hold; with none, every packet takes the arm.
    pub when: Vec<Test>,
    /// The output gate that its packets take.
    pub gate: u16,
}

/// Sends each packet to the gate of the first arm whose conditions hold; drops it where none does.
///
/// Fragments of a datagram other than the first have no upper-layer header. Where conditions ask for one, they go where
/// their first went within the last 30 s, and are judged by what they hold if it is not known.
pub struct Branch {
    arms: Vec<Arm>,
    needs_layers: bool,
    /// Where later fragments must go by what their first holds.
    datagrams: Option<Datagrams>,
}

/// The packet met no arm's conditions.
const NO_ARM: Reason = Reason(0);
/// What is remembered of a datagram whose first fragment met none.
const NO_GATE: u16 = u16::MAX;

impl Branch {
    /// Make a branch; `seed` hides from senders where datagrams are kept.
    pub fn new(arms: Vec<Arm>, seed: Seed) -> Self {
        let tests = || arms.iter().flat_map(|arm| &arm.when);
        let needs_layers = tests().any(Test::needs_layers);
        let datagrams = tests().any(Test::needs_upper_layer).then(|| Datagrams::new(seed));
        Branch { needs_layers: needs_layers || datagrams.is_some(), arms, datagrams }
    }
}

fn judge(arms: &[Arm], packet: &Packet) -> u16 {
    arms.iter().find(|arm| arm.when.iter().all(|test| test.holds(packet))).map_or(NO_GATE, |arm| arm.gate)
}

/// [`judge`] of a fragment.
#[cold]
fn judge_fragment(arms: &[Arm], datagrams: &mut Datagrams, packet: &Packet, now: u64) -> u16 {
    if packet.layers().has(Layers::LATER) {
        return datagrams.find(packet, now).unwrap_or_else(|| judge(arms, packet));
    }
    let gate = judge(arms, packet);
    datagrams.remember(packet, gate, now);
    gate
}

impl Module for Branch {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        if self.needs_layers {
            cx.parse(batch);
        }
        let Branch { arms, datagrams, .. } = self;
        let times = cx.times();
        cx.decide(batch, |_, packet| {
            let gate = match datagrams {
                Some(datagrams) if packet.layers().has(Layers::FRAGMENT) => {
                    judge_fragment(arms, datagrams, packet, times.of(packet))
                }
                _ => judge(arms, packet),
            };
            if gate == NO_GATE { Verdict::Drop(NO_ARM) } else { Verdict::Gate(gate) }
        });
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["matches no class or branch"]
    }
}

/// Lets IPv4, IPv6 and ARP pass by gate 0 and drops all other frames: nothing behind it can read their addresses.
pub struct Parsed;

impl Module for Parsed {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        if batch.iter().all(|packet| packet.layers().net != Net::Other) {
            return;
        }
        cx.decide(batch, |_, packet| match packet.layers().net {
            Net::Other => Verdict::Drop(Reason(0)),
            Net::Arp | Net::Ipv4 | Net::Ipv6 => Verdict::Gate(0),
        });
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["not IPv4, IPv6 or ARP"]
    }
}

/// Ends packets whose way the policy ends.
pub struct Discard;

impl Module for Discard {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.decide(batch, |_, _| Verdict::Drop(Reason(0)));
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["dropped by the chain"]
    }
}
