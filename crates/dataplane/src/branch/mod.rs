//! Where ways part: a module whose arms are tried in order, each with conditions that must all hold.

pub mod bpf;

use catena_packet::wire::{FlowKey, Net, Seed};
use catena_packet::{Batch, Packet};

use crate::attribute::Slot;
use crate::module::{Context, Module, Reason, Verdict};
use bpf::Program;

/// A condition on a packet.
#[derive(Clone, Debug)]
pub enum Test {
    /// The packet matches a tcpdump filter.
    Filter(Program),
    /// An attribute has one of these values.
    Attribute {
        /// Where the attribute stands.
        slot: Slot,
        /// The values.
        values: Vec<u16>,
        /// Any value but these.
        negated: bool,
    },
    /// The flow's hash, as a number in 0..2³², lies in `from..to`; both directions of a connection have
    /// the same.
    Split {
        /// The lower end, included.
        from: u64,
        /// The upper end, excluded.
        to: u64,
        /// What makes this split differ from others.
        seed: Seed,
    },
    /// The source (or destination) address lies in one of these prefixes; IPv4 addresses are mapped into
    /// IPv6 (RFC 4291 §2.5.5.2).
    Address {
        /// Whether the destination is meant.
        destination: bool,
        /// Prefixes: the address and a mask.
        prefixes: Vec<(u128, u128)>,
    },
    /// Any of these conditions holds.
    Any(Vec<Test>),
}

impl Test {
    fn holds(&self, packet: &Packet) -> bool {
        match self {
            Test::Filter(program) => program.matches(packet.data()),
            Test::Attribute { slot, values, negated } => values.contains(&slot.get(packet)) != *negated,
            Test::Split { from, to, seed } => {
                let hash = FlowKey::read(packet.data(), &packet.layers()).map_or(0, |key| key.symmetric_hash(seed));
                (*from..*to).contains(&(hash >> 32))
            }
            Test::Address { destination, prefixes } => address(packet, *destination)
                .is_some_and(|address| prefixes.iter().any(|(prefix, mask)| address & mask == *prefix)),
            Test::Any(tests) => tests.iter().any(|test| test.holds(packet)),
        }
    }

    /// Return whether the packet's headers must be known for this test.
    fn needs_layers(&self) -> bool {
        match self {
            Test::Split { .. } | Test::Address { .. } => true,
            Test::Any(tests) => tests.iter().any(Test::needs_layers),
            _ => false,
        }
    }
}

/// Return an address of the packet, IPv4 mapped into IPv6.
fn address(packet: &Packet, destination: bool) -> Option<u128> {
    let layers = packet.layers();
    let header = packet.data().get(usize::from(layers.l3)..)?;
    let side = usize::from(destination);
    match layers.net {
        Net::Ipv4 => {
            let bytes = header.get(12 + 4 * side..)?.first_chunk::<4>()?;
            Some(0xffff_0000_0000 | u128::from(u32::from_be_bytes(*bytes)))
        }
        Net::Ipv6 => Some(u128::from_be_bytes(*header.get(8 + 16 * side..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// An arm of a [`Branch`].
#[derive(Clone, Debug)]
pub struct Arm {
    /// All must hold; with none, every packet takes the arm.
    pub when: Vec<Test>,
    /// The output gate that its packets take.
    pub gate: u16,
}

/// Sends each packet to the gate of the first arm whose conditions hold; drops it where none does.
pub struct Branch {
    arms: Vec<Arm>,
    needs_layers: bool,
}

/// The packet met no arm's conditions.
const NO_ARM: Reason = Reason(0);

impl Branch {
    /// Make a branch.
    pub fn new(arms: Vec<Arm>) -> Self {
        let needs_layers = arms.iter().flat_map(|arm| &arm.when).any(Test::needs_layers);
        Branch { arms, needs_layers }
    }
}

impl Module for Branch {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        if self.needs_layers {
            cx.parse(batch);
        }
        let arms = &self.arms;
        cx.decide(batch, |_, packet| {
            let taken = arms.iter().find(|arm| arm.when.iter().all(|test| test.holds(packet)));
            taken.map_or(Verdict::Drop(NO_ARM), |arm| Verdict::Gate(arm.gate))
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
