//! IPv4Fwd: forwards packets by the longest prefix that covers their destination, IPv4 and IPv6.
//!
//! - [`routes`] reads route lines, its own or those of `ip route`;
//! - [`Lpm4`] and [`Lpm6`] hold the routes and answer batches of look-ups; routes come and go while
//!   packets are forwarded.

mod address;
mod block;
mod lookup;
mod lpm;
pub mod routes;

pub use address::{Address, BadLength, Prefix};
pub use lpm::{InsertError, Lpm, MAX_ROUTES};

/// Longest-prefix match over IPv4 addresses in host byte order.
pub type Lpm4 = Lpm<u32>;

/// Longest-prefix match over IPv6 addresses in host byte order.
pub type Lpm6 = Lpm<u128>;

/// The number of a next hop, or [`NextHop::NONE`]; what it stands for is the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct NextHop(u16);

impl NextHop {
    /// No route covers the address.
    pub const NONE: NextHop = NextHop(u16::MAX);

    /// How many distinct next hops there can be: 65,535, numbered from 0.
    pub const COUNT: usize = u16::MAX as usize;

    /// The next hop of number `id`; 65,535 is [`NextHop::NONE`].
    pub const fn new(id: u16) -> NextHop {
        NextHop(id)
    }

    /// The number, or `None` where no route covers the address.
    #[inline]
    pub const fn id(self) -> Option<u16> {
        if self.0 == u16::MAX { None } else { Some(self.0) }
    }
}

#[cfg(test)]
mod lpm_tests;
