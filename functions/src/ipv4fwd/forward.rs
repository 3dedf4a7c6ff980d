//! The module: what happens to every packet.

use std::sync::Arc;

use catena_dataplane::module::Verdict;
use catena_dataplane::{Context, Module, Reason};
use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, Net, checksum, ethernet, ipv4, ipv6};
use catena_packet::{BATCH, Batch, Packet};

use super::table::{Action, Table};
use super::{Address, Lpm, NextHop};
use crate::config::{ArgError, Args};
use crate::effects::{Fields, Spared};

const NO_ROUTE: Reason = Reason(0);
const DISCARDED: Reason = Reason(1);
const BAD_CHECKSUM: Reason = Reason(2);
const EXPIRED: Reason = Reason(3);

/// Forwards packets by longest-prefix match.
pub struct IPv4Fwd {
    table: Arc<Table>,
    checksum: bool,
    ttl: bool,
    /// Fields that need not be written, as nobody reads them any more.
    unwritten: Fields,
}

impl IPv4Fwd {
    /// Make the module from its arguments; `taken` are the gates that some edge of the chain leaves by.
    ///
    /// # Errors
    /// Those of [`Table::new`].
    pub fn new(args: &Args, taken: &[String]) -> Result<IPv4Fwd, ArgError> {
        Ok(Self::by(Arc::new(Table::new(args, taken)?), args))
    }

    /// Make the module for routes that are ready; the arguments say what else it does.
    pub(super) fn by(table: Arc<Table>, args: &Args) -> IPv4Fwd {
        let (checksum, ttl) = (args.flag("checksum", true), args.flag("ttl", true));
        IPv4Fwd { table, checksum, ttl, unwritten: Fields::NONE }
    }

    /// Return the routes in use.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Leave out what the function is spared.
    #[must_use]
    pub fn sparing(self, spared: &Spared) -> IPv4Fwd {
        IPv4Fwd { checksum: self.checksum && !spared.verified, unwritten: spared.unwritten, ..self }
    }

    /// Take other routes from the next batch on, and return those held so far: to be dropped elsewhere, as
    /// giving their memory back takes a while. This is for
    /// [`Graph::module_mut`](catena_dataplane::Graph::module_mut) in an edit of a running pipeline.
    pub fn swap(&mut self, table: Arc<Table>) -> Arc<Table> {
        std::mem::replace(&mut self.table, table)
    }
}

/// What is known of a packet before its route.
#[derive(Clone, Copy)]
enum Kind {
    /// It is none of ours.
    Other,
    BadChecksum,
    Ipv4,
    Ipv6,
}

impl Module for IPv4Fwd {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        let IPv4Fwd { table, checksum, ttl, unwritten } = self;
        let (stations, time) = (!unwritten.has(Fields::STATIONS), !unwritten.has(Fields::TTL | Fields::CHECKSUM));
        let mut kinds = [Kind::Other; BATCH];
        let (mut ipv4, mut ipv6) = (Asked::<u32>::new(), Asked::<u128>::new());
        for (i, packet) in batch.iter().enumerate() {
            kinds[i] = read(packet, *checksum, i, &mut ipv4, &mut ipv6);
        }
        let mut hops = [NextHop::NONE; BATCH];
        ipv4.look_up(&table.ipv4, &mut hops);
        ipv6.look_up(&table.ipv6, &mut hops);
        let direction = cx.gate();
        cx.decide(batch, |i, packet| {
            let kind = kinds[i];
            match kind {
                Kind::Other => return Verdict::Gate(direction),
                Kind::BadChecksum => return Verdict::Drop(BAD_CHECKSUM),
                Kind::Ipv4 | Kind::Ipv6 => {}
            }
            let (gate, macs) = match table.action(hops[i]) {
                None => return Verdict::Drop(NO_ROUTE),
                Some(Action::Discard) => return Verdict::Drop(DISCARDED),
                Some(Action::Forward { gate, macs }) => (gate, macs),
            };
            let spend = if matches!(kind, Kind::Ipv4) { spend_ttl } else { spend_hop_limit };
            if *ttl && !spend(packet, time) {
                return Verdict::Drop(EXPIRED);
            }
            if let Some((destination, source)) = macs
                && stations
            {
                let mut frame = ethernet::Packet::new_unchecked(packet.data_mut());
                frame.set_dst(*destination);
                source.iter().for_each(|mac| frame.set_src(*mac));
            }
            Verdict::Gate(gate + direction)
        });
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["no route", "discarded by a route", "bad IPv4 header checksum", "TTL expired"]
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("IPv4 routes", self.table.ipv4.len() as u64);
        tell("IPv6 routes", self.table.ipv6.len() as u64);
    }

    fn is_common(&self, gauge: &str) -> bool {
        ["IPv4 routes", "IPv6 routes"].contains(&gauge)
    }
}

/// Addresses of a batch that wait for their routes.
struct Asked<A> {
    len: usize,
    addrs: [A; BATCH],
    /// The packet that each belongs to.
    packets: [u8; BATCH],
}

impl<A: Address> Asked<A> {
    #[inline(always)]
    fn new() -> Self {
        Asked { len: 0, addrs: [A::ZERO; BATCH], packets: [0; BATCH] }
    }

    #[inline(always)]
    fn push(&mut self, packet: usize, addr: A) {
        self.addrs[self.len] = addr;
        self.packets[self.len] = packet as u8;
        self.len += 1;
    }

    #[inline(always)]
    fn look_up(&self, lpm: &Lpm<A>, hops: &mut [NextHop; BATCH]) {
        if self.len == 0 {
            return;
        }
        let mut found = [NextHop::NONE; BATCH];
        lpm.lookup_batch(&self.addrs[..self.len], &mut found[..self.len]);
        for (packet, hop) in self.packets.iter().zip(&found[..self.len]) {
            hops[usize::from(*packet)] = *hop;
        }
    }
}

/// Read a packet's destination, and ask for its route.
#[inline(always)]
fn read(packet: &Packet, verify: bool, i: usize, ipv4: &mut Asked<u32>, ipv6: &mut Asked<u128>) -> Kind {
    let layers = packet.layers();
    let l3 = packet.data().get(usize::from(layers.l3)..).unwrap_or_default();
    if layers.net == Net::Ipv4
        && let Some(fixed) = l3.first_chunk::<{ ipv4::HEADER_LEN }>()
    {
        // The parser has seen the whole header, options included.
        let header = l3.get(..usize::from(fixed[0] & 0x0f) * 4).unwrap_or(fixed);
        if verify && !checksum::verify_ipv4_checksum(header) {
            return Kind::BadChecksum;
        }
        ipv4.push(i, u32::from_be_bytes([fixed[16], fixed[17], fixed[18], fixed[19]]));
        return Kind::Ipv4;
    }
    if layers.net == Net::Ipv6
        && let Some(fixed) = l3.first_chunk::<{ ipv6::HEADER_LEN }>()
        && !(layers.proto == proto::ICMPV6 && is_neighbour_discovery(packet, fixed[7]))
    {
        ipv6.push(i, fixed[24..].first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes)));
        return Kind::Ipv6;
    }
    Kind::Other
}

/// RFC 4861 §11.2: these messages are sent with a hop limit of 255, and one that was forwarded is discarded.
#[cold]
fn is_neighbour_discovery(packet: &Packet, hop_limit: u8) -> bool {
    let layers = packet.layers();
    let kind = packet.data().get(usize::from(layers.l4));
    hop_limit == 255 && !layers.has(Layers::FRAGMENT) && matches!(kind, Some(133..=137))
}

/// Take one off the TTL, and `write` it; returns whether any was left.
#[inline(always)]
fn spend_ttl(packet: &mut Packet, write: bool) -> bool {
    let l3 = usize::from(packet.layers().l3);
    let header = packet.data_mut().get_mut(l3..).and_then(|l3| l3.first_chunk_mut::<{ ipv4::HEADER_LEN }>());
    let Some(header) = header else { return false };
    let mut header = ipv4::Packet::new_unchecked(&mut header[..]);
    let (ttl, proto) = (header.ttl(), header.proto());
    if ttl <= 1 {
        return false;
    }
    if !write {
        return true;
    }
    let check =
        checksum::update16(header.checksum(), u16::from_be_bytes([ttl, proto]), u16::from_be_bytes([ttl - 1, proto]));
    header.set_ttl(ttl - 1);
    header.set_checksum(check);
    true
}

/// Take one off the hop limit, and `write` it; returns whether any was left.
#[inline(always)]
fn spend_hop_limit(packet: &mut Packet, write: bool) -> bool {
    let l3 = usize::from(packet.layers().l3);
    let header = packet.data_mut().get_mut(l3..).and_then(|l3| l3.first_chunk_mut::<{ ipv6::HEADER_LEN }>());
    let Some(header) = header else { return false };
    let mut header = ipv6::Packet::new_unchecked(&mut header[..]);
    let hops = header.hop_limit();
    if hops <= 1 {
        return false;
    }
    if write {
        header.set_hop_limit(hops - 1);
    }
    true
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
