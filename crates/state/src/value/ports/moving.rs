//! Hosts that another instance gets, with their blocks: these are its own from then on, also when they are free again.

use super::Host;
use super::block::{Block, NONE, WORDS};
use super::known::Known;
use super::part::{Part, Tenant};
use crate::engine::Full;
use crate::plain::Plain;

/// A block of a host's, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Lent {
    host: Host,
    /// The index of the address that the host lives on, or of its latest one.
    index: u32,
    number: u32,
    used: [u64; WORDS],
    cursor: u16,
}

impl Lent {
    /// Make it of a block whose host lives on the address with this index.
    pub(super) fn of(block: &Block, index: u32) -> Lent {
        Lent { host: block.host, index, number: block.number, used: block.used, cursor: block.cursor }
    }

    /// Return the block's number.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Part {
    /// Take out the blocks of all hosts that go, and these with them. It looks at all blocks that are lent.
    pub(super) fn leave(&mut self, goes: impl Fn(&Host) -> bool, each: &mut dyn FnMut(Lent)) {
        let mut gone = Vec::new();
        for place in 0..self.places {
            let Some(&block) = self.blocks.look(place as usize) else { continue };
            let is_lent = self.known.get(block.number) == Known::Lent(place);
            if !is_lent || !goes(&block.host) {
                continue;
            }
            let index = self.hosts.get_mut(block.host).map_or(0, |host| host.index);
            each(Lent::of(&block, index));
            gone.push(block.host);
            self.known.set(block.number, Known::Gone);
            self.lent.add(self.grid.place(block.number).0 as usize, -1);
            let next = std::mem::replace(&mut self.free_place, place);
            self.set_after(place, next);
        }
        gone.into_iter().for_each(|host| _ = self.hosts.remove(host));
    }

    /// Take in a block of a host's, and the host with the first of them.
    ///
    /// # Errors
    /// [`Full`] where it is no block of these ports, or there is no room for another host.
    pub(super) fn arrive(&mut self, came: Lent) -> Result<(), Full> {
        let Lent { host: key, index, number, used, cursor } = came;
        let (on, ports) = (self.grid.place(number).0, self.grid.block_ports);
        let is_here = matches!(self.known.get(number), Known::Lent(_));
        if on.max(index) >= self.grid.addresses || is_here || cursor >= ports {
            return Err(Full);
        }
        let mut block = Block::new(key, number, ports);
        (block.used, block.cursor) = (used, cursor);
        if block.taken() == 0 || block.is_taken_from(ports) {
            return Err(Full);
        }
        block.free = ports.saturating_sub(block.taken());
        if self.hosts.get_mut(key).is_none() {
            self.hosts.insert(key, Tenant { index, used: 0, open: NONE })?;
        }
        block.host_at = self.hosts.place(key).unwrap_or(NONE);
        let (free, taken) = (block.free, u32::from(block.taken()));
        let place = self.place(block);
        self.lent.add(on as usize, 1);
        let Some(host) = self.hosts.get_mut(key) else { return Err(Full) };
        host.used += taken;
        if free > 0 {
            let after = std::mem::replace(&mut host.open, place);
            self.set_after(place, after);
            self.set_before(after, place);
        }
        Ok(())
    }
}
