//! Whose a packet from outside is: which chain's, by the pool's addresses, and which instance's, by the block
//! that its port lies in.

use std::sync::Arc;

use catena_dataplane::steer::{Owner, Whose};
use catena_packet::wire::{Net, icmp_identifier, ports};
use catena_packet::{Packet, Slot};
use catena_state::value::ports::Grid;
use catena_state::{Claims, NoMemory, Share, Team};

use super::family::Translate;
use super::icmp;
use super::options::{Spaces, run};
use super::space::Space;
use crate::addresses;
use crate::config::{Args, Value};
use crate::descriptor::Returns;

/// Return the addresses that packets from outside are sent to: the pool.
pub fn returns(args: &Args) -> Returns {
    let pool = args.get("pool").map_or(&[][..], Value::as_list);
    // What `run` refuses, `build` has refused before.
    let runs = pool.iter().filter_map(|value| run(value).ok());
    let destinations = runs.flat_map(|(first, last)| addresses::prefixes(first, last)).collect();
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

    /// Return the slot that a block is for, or was last.
    pub fn slot(&self, block: u32) -> Option<Slot> {
        self.claims.slot(self.first + block as usize)
    }
}

/// Return what tells whose a packet from outside is, among so many instances of this name; see the manual, "With several
/// instances". It is the slot's that its port was taken for, where that is known; else the port tells.
pub fn owner(args: &Args, instance: &str, instances: u32, team: Option<&Arc<Team>>) -> Owner {
    // What is refused here, `build` has refused before.
    let Ok(spaces) = Spaces::read(args, Share::WHOLE) else { return Box::new(|_| None) };
    let [claims, claims6] = Claimed::of(team, instance, &spaces).unwrap_or_default();
    let Spaces { v4, v6 } = spaces;
    Box::new(move |packet| match packet.layers().net {
        Net::Ipv4 => whose(packet, v4.as_ref()?, claims.as_ref(), instances),
        Net::Ipv6 => whose(packet, v6.as_ref()?, claims6.as_ref(), instances),
        _ => None,
    })
}

fn whose<F: Translate>(packet: &Packet, space: &Space<F>, claims: Option<&Claimed>, instances: u32) -> Option<Whose> {
    let block = space.block(external::<F>(packet)?)?;
    let of_block = || Whose::Worker((block % space.grid.blocks % instances) as u16);
    Some(claims.and_then(|claims| claims.slot(block)).map_or_else(of_block, Whose::Slot))
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
