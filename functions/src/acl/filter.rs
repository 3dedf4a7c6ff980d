//! The module: asks for a ruling on every packet of a batch, lets pass or drops.

use std::sync::Arc;

use catena_dataplane::attribute::{Attributes, Slot};
use catena_dataplane::module::{Reason, Verdict};
use catena_dataplane::{Context, Module};
use catena_packet::wire::{Layers, Net, Seed, is_source_routed};
use catena_packet::{BATCH, Batch};

use super::compiled::Compiled;
use super::flow::{FlowV4, FlowV6, Mask};
use super::list::{Later, List, Ruling};
use super::matcher::Matcher;
use super::rule::Action;
use crate::config::ArgError;
use crate::descriptor::Build;
use crate::effects::{Fields, Spared, Way};

const BY_RULE: Reason = Reason(0);
const BY_DEFAULT: Reason = Reason(1);
const UNPARSED: Reason = Reason(2);
const SOURCE_ROUTE: Reason = Reason(3);
const REASONS: &[&str] = &["denied by a rule", "denied by default", "not IPv4, IPv6 or ARP", "source route"];

/// The gate of denied packets, on the way out; one more on the way back.
const DENIED: u16 = 2;

/// Packets of one family in a batch.
struct Gathered<F> {
    flows: [F; BATCH],
    /// Which packets of the batch they are.
    of: [u8; BATCH],
}

impl<F: Copy + Default> Gathered<F> {
    fn new() -> Self {
        Self { flows: [F::default(); BATCH], of: [0; BATCH] }
    }

    /// Put a flow, of packet `i`, at the place `at`; returns the next.
    #[inline(always)]
    fn put(&mut self, at: usize, i: usize, flow: F) -> usize {
        self.flows[at % BATCH] = flow;
        self.of[at % BATCH] = i as u8;
        at + 1
    }
}

/// Packets of a batch, as bits: packet `i` is bit `i`.
#[derive(Default)]
struct Denied {
    all: u32,
    by_default: u32,
    /// Frames that are not IPv4, IPv6 or ARP.
    unparsed: u32,
    /// Packets with a source route that is not let pass.
    routed: u32,
}

impl Denied {
    /// Every packet, because no rule is known that permits it.
    const EVERY: Denied = Denied { all: u32::MAX, by_default: u32::MAX, unparsed: 0, routed: 0 };

    /// Deny packets with a source route: their destination address is not where they go.
    #[inline(never)]
    fn deny_source_routes(&mut self, batch: &Batch) {
        for (i, packet) in batch.iter().enumerate() {
            if is_source_routed(packet.data(), &packet.layers()) {
                self.routed |= 1 << i;
            }
        }
        self.all |= self.routed;
    }

    #[inline(always)]
    fn note(&mut self, packets: &[u8], rulings: &[Ruling; BATCH]) {
        for (&i, ruling) in packets.iter().zip(rulings) {
            if ruling.denies() {
                self.all |= 1 << (i % BATCH as u8);
            }
            if ruling.denies_by_default() {
                self.by_default |= 1 << (i % BATCH as u8);
            }
        }
    }

    /// Return none of a batch whose headers are parsed, but which frames are not IPv4, IPv6 or ARP.
    #[inline(always)]
    fn none(batch: &Batch) -> Denied {
        let mut denied = Denied::default();
        for (i, packet) in batch.iter().enumerate() {
            if packet.layers().net == Net::Other {
                denied.unparsed |= 1 << i;
            }
        }
        denied
    }

    /// Read what an earlier function has found.
    #[inline(always)]
    fn told(batch: &Batch, slot: Slot, place: u8) -> Denied {
        let mut denied = Denied::none(batch);
        for (i, packet) in batch.iter().enumerate() {
            let found = Later::at(slot.get(packet), place);
            if found != Later::PERMITS {
                denied.all |= 1 << i;
            }
            if found & Later::BY_RULE == 0 {
                denied.by_default |= 1 << i;
            }
        }
        denied
    }
}

/// How packets of one direction are judged.
#[derive(Clone, Copy)]
enum Judge {
    /// By the rules.
    Search,
    /// By what an earlier function, which has parsed the headers, has left in this slot and place.
    Told(Slot, u8),
    /// All are permitted; only their headers are checked.
    Permits,
    /// All are denied: none was expected.
    Never,
}

/// Permits or denies packets.
pub struct Filter {
    /// There unless no direction is judged by the rules.
    matcher: Option<Matcher>,
    judges: [Judge; 2],
    /// Where the verdicts of later lists are left.
    tells: Option<Slot>,
    mask: Mask,
    /// Rules that the user gave, for the table.
    rules: usize,
    /// Whether denied packets leave by a gate of their own.
    diverts: bool,
    /// What becomes of frames that are not IPv4, IPv6 or ARP.
    unparsed: Action,
    /// What becomes of packets with a source route, whatever the rules say; denied also where an earlier function has
    /// told what they say.
    source_routes: Action,
    left_out: usize,
    v4: Gathered<FlowV4>,
    v6: Gathered<FlowV6>,
}

impl Filter {
    /// A filter by `list` that drops source routes. With `diverts`, denied packets leave by gate 2 (3 on the way back) instead of being
    /// dropped. `seed` should be secret; `left_out` is how many rules the user left out, for the table.
    pub fn new(list: Arc<List>, seed: Seed, diverts: bool, left_out: usize) -> Self {
        Self {
            rules: list.len(),
            unparsed: list.last_word(),
            source_routes: Action::Deny,
            matcher: Some(Matcher::new(list, seed)),
            judges: [Judge::Search; 2],
            tells: None,
            mask: Mask::without(Fields::NONE),
            diverts,
            left_out,
            v4: Gathered::new(),
            v6: Gathered::new(),
        }
    }

    /// A filter by the rules of the user that leaves out what it is `spared`.
    ///
    /// # Errors
    /// When there are more attributes than a packet carries.
    pub(super) fn sparing(
        compiled: &Compiled,
        spared: &Spared,
        build: &mut Build<'_>,
        diverts: bool,
    ) -> Result<Self, ArgError> {
        let slot = |attributes: &mut Attributes, name: &str| {
            attributes.slot(name).map_err(|most| ArgError::new("rules", format!("a packet carries {most} attributes")))
        };
        let mut judge = |way: &Way| {
            Ok(match way {
                Way::Search => Judge::Search,
                Way::Told { attribute, place } => Judge::Told(slot(build.attributes, attribute)?, *place),
                Way::Permits => Judge::Permits,
                Way::Never => Judge::Never,
            })
        };
        let judges = [judge(&spared.ways[0])?, judge(&spared.ways[1])?];
        let tells = spared.tells.as_ref().map(|tells| slot(build.attributes, &tells.attribute)).transpose()?;
        Ok(Self {
            matcher: compiled.list.as_ref().map(|list| Matcher::new(Arc::clone(list), build.seed)),
            judges,
            tells,
            mask: Mask::without(spared.unread),
            rules: compiled.rules,
            unparsed: compiled.unparsed,
            source_routes: compiled.source_routes,
            diverts,
            left_out: compiled.left_out,
            v4: Gathered::new(),
            v6: Gathered::new(),
        })
    }

    /// Let frames that are not IPv4, IPv6 or ARP pass, or drop them, whatever the rules say of every packet.
    #[must_use]
    pub fn unparsed(mut self, action: Action) -> Self {
        self.unparsed = action;
        self
    }

    /// Let packets with a source route meet the rules as others do, or drop them whatever the rules say.
    #[must_use]
    pub fn source_routes(mut self, action: Action) -> Self {
        self.source_routes = action;
        self
    }

    /// The list of rules in use; `None` where no direction is judged by rules.
    pub fn list(&self) -> Option<&Arc<List>> {
        self.matcher.as_ref().map(Matcher::list)
    }

    /// Takes another list of rules; the next packet meets it, and its last word decides about frames that are not
    /// understood. For filters that are spared nothing: what one is spared follows from its old rules.
    pub fn replace(&mut self, list: Arc<List>) {
        self.rules = list.len();
        self.unparsed = list.last_word();
        if let Some(matcher) = &mut self.matcher {
            matcher.replace(list);
        }
    }

    /// Which packets of a batch, whose headers are parsed, are denied; leaves what later lists say with them.
    #[inline(always)]
    fn denied(&mut self, batch: &mut Batch) -> Denied {
        let Self { matcher: Some(matcher), v4, v6, mask, tells, .. } = self else { return Denied::EVERY };
        let mut denied = Denied::default();
        // Counted here and not in memory, where each packet would wait for the one before.
        let (mut fours, mut sixes) = (0, 0);
        for (i, packet) in batch.iter().enumerate() {
            let layers = packet.layers();
            let read = match layers.net {
                Net::Ipv4 => {
                    FlowV4::read(packet.data(), &layers).map(|flow| fours = v4.put(fours, i, flow.masked(mask)))
                }
                Net::Ipv6 => {
                    FlowV6::read(packet.data(), &layers).map(|flow| sixes = v6.put(sixes, i, flow.masked(mask)))
                }
                Net::Arp => Some(()),
                Net::Other => {
                    denied.unparsed |= 1 << i;
                    Some(())
                }
            };
            if read.is_none() {
                // Its headers are no longer where they were: what cannot be read is not let pass.
                denied.all |= 1 << i;
                denied.by_default |= 1 << i;
            }
        }
        let mut rulings = [Ruling::UNKNOWN; BATCH];
        if let Some(slot) = *tells {
            let unread = denied.all;
            // What cannot be read was asked of nobody: the later lists deny it as this one does.
            let found = |i: usize| if unread >> i & 1 == 1 { 0 } else { Later::ALL_PERMIT };
            batch.iter_mut().enumerate().for_each(|(i, packet)| slot.set(packet, found(i)));
        }
        if fours > 0 {
            matcher.classify_v4(&v4.flows[..fours], &mut rulings);
            denied.note(&v4.of[..fours], &rulings);
            leave(*tells, batch, &v4.of[..fours], &rulings);
        }
        if sixes > 0 {
            matcher.classify_v6(&v6.flows[..sixes], &mut rulings);
            denied.note(&v6.of[..sixes], &rulings);
            leave(*tells, batch, &v6.of[..sixes], &rulings);
        }
        denied
    }
}

/// Leave with packets what later lists say of them.
#[inline(always)]
fn leave(slot: Option<Slot>, batch: &mut Batch, packets: &[u8], rulings: &[Ruling; BATCH]) {
    let Some(slot) = slot else { return };
    let all = batch.as_mut_slice();
    for (&i, ruling) in packets.iter().zip(rulings) {
        if let Some(packet) = all.get_mut(usize::from(i)) {
            slot.set(packet, ruling.later());
        }
    }
}

impl Module for Filter {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let gate = cx.gate();
        cx.parse(batch);
        let mut denied = match self.judges[usize::from(gate & 1)] {
            Judge::Search => self.denied(batch),
            Judge::Told(slot, place) => Denied::told(batch, slot, place),
            Judge::Permits => Denied::none(batch),
            Judge::Never => Denied::EVERY,
        };
        if self.unparsed == Action::Deny {
            denied.all |= denied.unparsed;
        }
        let flags = || batch.iter().fold(0, |flags, packet| flags | packet.layers().flags);
        if self.source_routes == Action::Deny && flags() & Layers::OPTIONS != 0 {
            denied.deny_source_routes(batch);
        }
        if denied.all == 0 && gate == 0 {
            return;
        }
        let diverts = self.diverts;
        cx.decide(batch, |i, _| {
            if denied.all >> i & 1 == 0 {
                Verdict::Gate(gate)
            } else if diverts {
                Verdict::Gate(DENIED + gate)
            } else if denied.routed >> i & 1 == 1 {
                Verdict::Drop(SOURCE_ROUTE)
            } else if denied.unparsed >> i & 1 == 1 {
                Verdict::Drop(UNPARSED)
            } else if denied.by_default >> i & 1 == 0 {
                Verdict::Drop(BY_RULE)
            } else {
                Verdict::Drop(BY_DEFAULT)
            }
        });
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("rules", self.rules as u64);
        if self.left_out > 0 {
            tell("rules left out", self.left_out as u64);
        }
        tell("packets searched for", self.matcher.as_ref().map_or(0, Matcher::searched));
    }

    fn is_common(&self, gauge: &str) -> bool {
        ["rules", "rules left out"].contains(&gauge)
    }
}
