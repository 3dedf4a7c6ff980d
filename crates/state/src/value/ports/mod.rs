//! The ports of external addresses, and which host has which: what a translator of addresses shares among its packets. There
//! are two operations, [`Lease`] and [`Release`].
//!
//! Every *host*, an inside address of IPv4 or a /64 of IPv6, lives on one external address (RFC 4787 §4.1, "paired"
//! pooling) and gets its ports in blocks, so that one line of a log tells of many connections (RFC 6888 §4). A host's
//! blocks with a free port are chained; all work is constant, however many blocks a host has. A /64 may hold more
//! machines than one external address has ports for: when its address has no block left, it goes on with another.

mod block;
mod grid;
mod kept;
mod known;
mod moving;
mod part;

use catena_packet::wire::Seed;

use crate::engine::{Full, NoMemory, Share};
use crate::key::Words;
use crate::operations;
use crate::plain::Plain;
use crate::shared::{Look, Op};
use part::Part;

pub use block::MOST_PORTS;
pub use grid::Grid;
pub use moving::Lent;

/// Keys a host: an address of IPv4 or 64 bits of one of IPv6, and whatever else tells hosts apart, such as its VLAN.
pub type Host = Words;

/// Take a port for a host, of those that this part of the instances lends: what comes back to the port comes to that instance.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Lease(pub Host, pub u16);

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub enum Leased {
    /// A port, the index of its external address, and what tells this lease from earlier ones of the port.
    Port(u32, u16, u8),
    /// The host has as many as it may.
    Limit,
    /// All blocks that it could have are lent.
    Nothing,
}

/// Give a port back, of the external address with this index.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Release(pub u32, pub u16);

/// How many hosts have ports, and how many blocks are free?
#[derive(Clone, Copy, Debug, Plain)]
pub struct Used;

operations!("ports": Ports { 0 => Lease, 1 => Release } looks { 2 => Used });

impl Op<Ports> for Lease {
    type Reply = Leased;

    #[inline(always)]
    fn apply(self, ports: &mut Ports) -> Leased {
        ports.parts.get_mut(usize::from(self.1)).map_or(Leased::Nothing, |part| part.lease(self.0))
    }
}

impl Op<Ports> for Release {
    type Reply = ();

    fn apply(self, ports: &mut Ports) {
        let Some(spot) = ports.grid.spot(self.0, self.1) else { return };
        match &mut ports.parts[..] {
            [] => {}
            [only] => only.release(spot),
            parts => parts[spot.nth as usize % parts.len()].release(spot),
        }
    }
}

impl Look<Ports> for Used {
    type Reply = (u64, u64);

    fn look(self, ports: &Ports) -> (u64, u64) {
        let add = |(hosts, free): (u64, u64), part: &Part| {
            let (own, left) = part.used();
            (hosts + own, free + left)
        };
        ports.parts.iter().fold((0, 0), add)
    }
}

/// Limits of what a host gets.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Limits {
    /// Most ports of a host, 0 for any number.
    pub per_host: u32,
    /// Whether a host may have ports of several addresses.
    pub roams: bool,
    /// Whether hosts of other instances may come, with their blocks.
    pub takes_in: bool,
}

/// The ports of a pool and their users: those of one instance, or of all that share them, each of which lends a part. A host that
/// several instances serve is one of each of them: it may live on another address with each, and its limit is for each.
pub struct Ports {
    grid: Grid,
    parts: Box<[Part]>,
}

impl Ports {
    /// Make all ports free that the instances of `shares` lend: all of them, or one.
    ///
    /// # Errors
    /// [`NoMemory`] for so many blocks.
    pub fn new(
        grid: Grid,
        limits: Limits,
        shares: impl IntoIterator<Item = Share>,
        seed: Seed,
    ) -> Result<Self, NoMemory> {
        let parts = shares.into_iter().map(|share| Part::new(grid, limits, share, seed)).collect::<Result<_, _>>()?;
        Ok(Ports { grid, parts })
    }

    /// Bring near what leads to a host.
    pub fn bring_host(&self, host: Host) {
        self.parts.iter().for_each(|part| part.bring_host(host));
    }

    /// Bring near what leasing a port to each of these hosts, a batch of them at most, will look at. What leads to the hosts has come.
    pub fn bring_next(&self, hosts: impl Iterator<Item = Host>) {
        if let [only] = &self.parts[..] {
            only.bring_next(hosts);
        }
    }

    /// Bring near what giving back these ports, 64 at most, will look at: each part tells where the next one is.
    pub fn bring_leased(&self, leased: impl Iterator<Item = (u32, u16)>) {
        if let [only] = &self.parts[..] {
            only.bring_leased(leased);
        }
    }

    /// Take out the blocks of all hosts that go, and these with them. It looks at all blocks that are lent.
    pub fn leave(&mut self, goes: impl Fn(&Host) -> bool, each: &mut dyn FnMut(Lent)) {
        if let [only] = &mut self.parts[..] {
            only.leave(goes, each);
        }
    }

    /// Take in a block of a host's, and the host with the first of them.
    ///
    /// # Errors
    /// [`Full`] where it is no block of these ports, or there is no room for another host.
    pub fn arrive(&mut self, came: Lent) -> Result<(), Full> {
        match &mut self.parts[..] {
            [only] => only.arrive(came),
            _ => Err(Full),
        }
    }
}
