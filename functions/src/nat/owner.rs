//! Whose a packet from outside is: which chain's, by the pool's addresses, and which instance's, by the block
//! that its port lies in.

use std::sync::Arc;

use catena_dataplane::steer::{Owner, Whose};
use catena_packet::Packet;
use catena_packet::wire::{Net, icmp_identifier, ports};
use catena_state::{Claims, Share};

use super::family::Translate;
use super::icmp;
use super::mapping::PORTS;
use super::options::{Spaces, run};
use super::space::Space;
use crate::addresses;
use crate::config::{Args, Value};
use crate::descriptor::{ClaimsOf, Returns};

/// Return the addresses that packets from outside are sent to: the pool.
pub fn returns(args: &Args) -> Returns {
    let pool = args.get("pool").map_or(&[][..], Value::as_list);
    // What `run` refuses, `build` has refused before.
    let runs = pool.iter().filter_map(|value| run(value).ok());
    let destinations = runs.flat_map(|(first, last)| addresses::prefixes(first, last)).collect();
    Returns { destinations, sources: Vec::new() }
}

/// Return what tells whose a packet from outside is, among so many instances; see the manual, "With several instances". It is the
/// slot's that its port was taken for, where that is known; else the port tells.
pub fn owner(args: &Args, instances: u32, claims: &ClaimsOf<'_>) -> Owner {
    // What is refused here, `build` has refused before.
    let Ok(Spaces { v4, v6 }) = Spaces::read(args, Share::WHOLE) else { return Box::new(|_| None) };
    let (v4, v6) = (v4.map(|space| claimed(space, claims)), v6.map(|space| claimed(space, claims)));
    Box::new(move |packet| match packet.layers().net {
        Net::Ipv4 => whose(packet, v4.as_ref()?, instances),
        Net::Ipv6 => whose(packet, v6.as_ref()?, instances),
        _ => None,
    })
}

/// A space, and for which slots its blocks are.
type Claimed<F> = (Space<F>, Option<Arc<Claims>>);

fn claimed<F: Translate>(space: Space<F>, claims: &ClaimsOf<'_>) -> Claimed<F> {
    let claims = claims(&PORTS.part(F::PART), space.grid.all_blocks());
    (space, claims)
}

fn whose<F: Translate>(packet: &Packet, (space, claims): &Claimed<F>, instances: u32) -> Option<Whose> {
    let block = space.block(external::<F>(packet)?)?;
    let of_block = || Whose::Worker((block % space.grid.blocks % instances) as u16);
    Some(claims.as_ref().and_then(|claims| claims.slot(block as usize)).map_or_else(of_block, Whose::Slot))
}

/// Return the external endpoint that a packet from outside is sent to, or that the packet was from which an error is about.
fn external<F: Translate>(packet: &Packet) -> Option<F::Endpoint> {
    let (frame, layers) = (packet.data(), packet.layers());
    if let Some(about) = icmp::about::<F>(frame, &layers) {
        return Some(F::endpoint(about.addresses[0], about.ports[0], about.proto));
    }
    let [_, dst] = F::addresses(frame, usize::from(layers.l3))?;
    let port = ports(frame, &layers).map(|(_, dport)| dport).or(icmp_identifier(frame, &layers))?;
    Some(F::endpoint(dst, port, layers.proto))
}
