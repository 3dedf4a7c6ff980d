//! Whose a packet from outside is: which chain's, by the pool's addresses, and which instance's, by the block
//! that its port lies in.

use std::net::IpAddr;
use std::sync::Arc;

use catena_dataplane::steer::{Owner, Whose};
use catena_packet::wire::{Layers, Net, icmp_identifier, number, ports};
use catena_packet::{Packet, Slot};
use catena_state::value::ports::Grid;
use catena_state::{Claims, NoMemory, Share, Team};

use super::family::Translate;
use super::options::{Spaces, halves, run};
use super::space::Space;
use crate::config::{Args, Value};
use crate::descriptor::Returns;

/// Return the addresses that packets from outside are sent to: the pool.
pub fn returns(args: &Args) -> Returns {
    let destinations = pool(args).into_iter().flat_map(|(first, last)| prefixes(first, last)).collect();
    Returns { destinations, sources: Vec::new() }
}

/// Where the instances say which slot a block of ports is for: those of IPv4 addresses first, then those of IPv6 ones.
#[derive(Clone)]
pub struct Claimed {
    claims: Arc<Claims>,
    first: usize,
    /// Whether slots go from one instance to another.
    pub moves: bool,
}

impl Claimed {
    /// Return where it is said for the blocks of both families, in that order, of NATs of this name; nothing in a
    /// replay, where the block's number tells.
    ///
    /// # Errors
    /// [`NoMemory`] for so many blocks.
    pub fn of(team: Option<&Arc<Team>>, instance: &str, spaces: &Spaces) -> Result<[Option<Claimed>; 2], NoMemory> {
        let blocks = |grid: Option<Grid>| grid.map_or(0, |grid| grid.addresses as usize * grid.blocks as usize);
        let v4 = blocks(spaces.v4.as_ref().map(|space| space.grid));
        let all = v4 + blocks(spaces.v6.as_ref().map(|space| space.grid));
        let Some(claims) = team.map_or(Ok(None), |team| team.claims(instance, all))? else { return Ok([None, None]) };
        let moves = team.is_some_and(|team| team.moves());
        Ok([0, v4].map(|first| Some(Claimed { claims: Arc::clone(&claims), first, moves })))
    }

    /// Say that a block is for a slot.
    #[inline]
    pub fn claim(&self, block: u32, slot: Slot) {
        self.claims.claim(self.first + block as usize, slot);
    }

    /// Return the slot that an external endpoint is for, or was last.
    pub fn slot<F: Translate>(&self, space: &Space<F>, address: F::Address, port: u16) -> Option<Slot> {
        let block = space.grid.block_of(space.index(address)?, port)?;
        self.claims.slot(self.first + block as usize)
    }
}

/// Return what tells whose a packet from outside is, among so many instances of this name; see the manual, "With several
/// instances". It is the slot's that its port was taken for, where that is known; else the port tells.
pub fn owner(args: &Args, instance: &str, instances: u32, team: Option<&Arc<Team>>) -> Owner {
    let pool = pool(args);
    let (first, last) = args.get("ports").and_then(Value::as_range).unwrap_or((1024, 65535));
    let block = args.integer("block", 64, 0..=u64::from(u16::MAX)).unwrap_or(64).max(1);
    // What they refuse, `build` has refused before.
    let spaces = Spaces::read(args, Share::WHOLE).ok();
    let claimed = spaces.as_ref().and_then(|spaces| Claimed::of(team, instance, spaces).ok());
    Box::new(move |packet| {
        let (address, port) = external(packet)?;
        let ours = pool.iter().any(|(first, last)| (*first..=*last).contains(&address));
        let place = u64::from(port);
        if !ours || !(first..=last).contains(&place) {
            return None;
        }
        let slot = match (&spaces, &claimed, address) {
            (Some(Spaces { v4: Some(space), .. }), Some([Some(claimed), _]), IpAddr::V4(address)) => {
                claimed.slot(space, address.to_bits(), port)
            }
            (Some(Spaces { v6: Some(space), .. }), Some([_, Some(claimed)]), IpAddr::V6(address)) => {
                claimed.slot(space, halves(address.to_bits()), port)
            }
            _ => None,
        };
        let of_block = || Whose::Worker((((place - first) / block) % u64::from(instances)) as u16);
        Some(slot.map_or_else(of_block, Whose::Slot))
    })
}

fn pool(args: &Args) -> Vec<(IpAddr, IpAddr)> {
    let values = args.get("pool").map_or(&[][..], Value::as_list);
    // What `run` refuses, `build` has refused before.
    values.iter().filter_map(|value| run(value).ok()).collect()
}

/// Return the external endpoint that a packet from outside is about.
fn external(packet: &Packet) -> Option<(IpAddr, u16)> {
    let (data, layers) = (packet.data(), packet.layers());
    let destination = address(data, &layers, true)?;
    if let Some((_, port)) = ports(data, &layers) {
        return Some((destination, port));
    }
    if let Some(identifier) = icmp_identifier(data, &layers) {
        return Some((destination, identifier));
    }
    if layers.has(Layers::FRAGMENT) || ![number::proto::ICMP, number::proto::ICMPV6].contains(&layers.proto) {
        return None;
    }
    // An error about a packet that NAT sent: the endpoint is the source of the packet it quotes. The quote may be
    // cut off after eight bytes beyond its IP header (RFC 792), so it is read by hand.
    let quote = data.get(usize::from(layers.l4) + 8..)?;
    let (source, transport): (IpAddr, usize) = match layers.net {
        Net::Ipv4 => (IpAddr::from(*quote.get(12..)?.first_chunk::<4>()?), usize::from(quote.first()? & 0xf) * 4),
        _ => (IpAddr::from(*quote.get(8..)?.first_chunk::<16>()?), 40),
    };
    // An echo request's identifier stands four bytes in, where ports stand at the start.
    let protocol = *quote.get(if layers.net == Net::Ipv4 { 9 } else { 6 })?;
    let is_icmp = [number::proto::ICMP, number::proto::ICMPV6].contains(&protocol);
    let port = quote.get(transport + if is_icmp { 4 } else { 0 }..)?.first_chunk::<2>()?;
    Some((source, u16::from_be_bytes(*port)))
}

fn address(data: &[u8], layers: &Layers, destination: bool) -> Option<IpAddr> {
    let header = data.get(usize::from(layers.l3)..)?;
    let side = usize::from(destination);
    match layers.net {
        Net::Ipv4 => Some(IpAddr::from(*header.get(12 + 4 * side..)?.first_chunk::<4>()?)),
        Net::Ipv6 => Some(IpAddr::from(*header.get(8 + 16 * side..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Return the prefixes that cover a range of addresses of one family exactly.
fn prefixes(first: IpAddr, last: IpAddr) -> Vec<(IpAddr, u8)> {
    let (mut at, last, width) = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (u128::from(first.to_bits()), u128::from(last.to_bits()), 32),
        (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits(), last.to_bits(), 128),
        _ => return Vec::new(),
    };
    let mut cover = Vec::new();
    while at <= last {
        let aligned = at.trailing_zeros().min(width - 1);
        let fits = (last - at + 1).ilog2();
        let bits = aligned.min(fits);
        let address =
            if width == 32 { IpAddr::from((at as u32).to_be_bytes()) } else { IpAddr::from(at.to_be_bytes()) };
        cover.push((address, (width - bits) as u8));
        match at.checked_add(1 << bits) {
            Some(next) => at = next,
            None => break,
        }
    }
    cover
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_covered_exactly() {
        let cover = |first: &str, last: &str| {
            let prefixes = prefixes(first.parse().unwrap(), last.parse().unwrap());
            prefixes.iter().map(|(a, n)| format!("{a}/{n}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cover("10.0.0.0", "10.0.0.255"), "10.0.0.0/24");
        assert_eq!(cover("10.0.0.1", "10.0.0.4"), "10.0.0.1/32 10.0.0.2/31 10.0.0.4/32");
        assert_eq!(cover("255.255.255.254", "255.255.255.255"), "255.255.255.254/31");
        assert_eq!(cover("2001:db8::1", "2001:db8::3"), "2001:db8::1/128 2001:db8::2/127");
    }
}
