//! What a function does to packets as far as others may notice, and what it may be spared of in a chain.
//!
//! A chain is reduced by these declarations alone, never by a function's name (after Deng and Wu, NFReducer,
//! §II-B): which header fields what it does depends on, which it may change, whether it matters to it or to
//! its user which packets come. A function that says nothing of itself is taken to do everything.

use std::ops::BitOr;
use std::sync::Arc;

use catena_dataplane::Module;

use crate::config::{ArgError, Args};
use crate::descriptor::Build;
use crate::rules::Verdicts;

/// A set of header fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(u16);

impl Fields {
    /// None.
    pub const NONE: Fields = Fields(0);
    /// Both station addresses of the frame.
    pub const STATIONS: Fields = Fields(1);
    /// TTL or hop limit.
    pub const TTL: Fields = Fields(1 << 1);
    /// The header checksum of IPv4.
    pub const CHECKSUM: Fields = Fields(1 << 2);
    /// The source address.
    pub const SOURCE: Fields = Fields(1 << 3);
    /// The destination address.
    pub const DESTINATION: Fields = Fields(1 << 4);
    /// The upper-layer protocol.
    pub const PROTOCOL: Fields = Fields(1 << 5);
    /// Both ports, and whether there are any.
    pub const PORTS: Fields = Fields(1 << 6);
    /// Which network layer there is: IPv4, IPv6 or none of them.
    pub const NETWORK: Fields = Fields(1 << 8);
    /// Everything else: lengths, flags, options, upper layers, payload.
    pub const OTHERS: Fields = Fields(1 << 7);
    /// Addresses, protocol and ports.
    pub const FIVE_TUPLE: Fields = Fields(0b0111_1000);
    /// All.
    pub const ALL: Fields = Fields(0x1ff);

    const NAMES: [&str; 9] = [
        "station addresses",
        "TTL",
        "header checksum",
        "source address",
        "destination address",
        "protocol",
        "ports",
        "everything else",
        "network layer",
    ];

    /// Whether there is no field.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `others` are here.
    pub const fn has(self, others: Fields) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether any of `others` is here.
    pub const fn meets(self, others: Fields) -> bool {
        self.0 & others.0 != 0
    }

    /// Return those of both.
    #[must_use]
    pub const fn or(self, others: Fields) -> Fields {
        Fields(self.0 | others.0)
    }

    /// Return those that are not among `others`.
    #[must_use]
    pub const fn without(self, others: Fields) -> Fields {
        Fields(self.0 & !others.0)
    }

    /// Return those that are in both.
    #[must_use]
    pub const fn and(self, others: Fields) -> Fields {
        Fields(self.0 & others.0)
    }
}

impl BitOr for Fields {
    type Output = Fields;

    fn bitor(self, others: Fields) -> Fields {
        self.or(others)
    }
}

impl std::fmt::Display for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| *name);
        match &names.collect::<Vec<_>>()[..] {
            [] => f.write_str("nothing"),
            [first @ .., last] if !first.is_empty() => write!(f, "{} and {last}", first.join(", ")),
            names => f.write_str(&names.concat()),
        }
    }
}

/// Reads the list of rules that is all a function does.
pub type VerdictsOf = fn(&Args) -> Result<Verdicts, ArgError>;

/// What a function does to packets, with the arguments that it has.
#[derive(Clone, Copy, Debug)]
pub struct Effects {
    /// Fields that its verdicts, its state, its tags and what it writes depend on.
    pub reads: Fields,
    /// Fields that it may change.
    pub writes: Fields,
    /// Fields that all packets which leave and may have been changed by another of its kind hold from this
    /// function: what was written there before is lost.
    pub overwrites: Fields,
    /// Whether anything but the packets' fates depends on which packets come, or on their order: state, records,
    /// files, messages.
    pub observes: bool,
    /// Whether a packet may leave by a gate of the other direction.
    pub turns: bool,
    /// What becomes of the header checksum of IPv4.
    pub checksum: Checksum,
    /// Whether a list of rules is all that it does, so that its verdict on a packet can be told by another.
    pub verdicts: Option<VerdictsOf>,
}

/// What a function does about the header checksum of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing is known of it after the function.
    Unknown,
    /// Right after the function if it was right before.
    Kept,
    /// Right after the function: what comes with a wrong one is dropped.
    Verified,
}

impl Effects {
    /// What must be feared of a function that does not say more of itself.
    pub const ANY: Effects = Effects {
        reads: Fields::ALL,
        writes: Fields::ALL,
        overwrites: Fields::NONE,
        observes: true,
        turns: true,
        checksum: Checksum::Unknown,
        verdicts: None,
    };

    /// Return [`Effects::ANY`], whatever the arguments.
    pub fn any(_args: &Args) -> Effects {
        Effects::ANY
    }
}

/// How a function comes to its verdict on the packets of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// By its own rules.
    #[default]
    Search,
    /// Another function has left it in an attribute.
    Told {
        /// The attribute.
        attribute: String,
        /// Which of the verdicts there it is.
        place: u8,
    },
    /// Its rules permit every packet that comes.
    Permits,
    /// No packet comes.
    Never,
}

/// Verdicts that a function finds for others together with its own, and leaves in an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Tells {
    /// The attribute.
    pub attribute: String,
    /// The others' rules, as far as they count; place n of the attribute is the n-th's verdict.
    pub others: Vec<Arc<Verdicts>>,
}

/// Most verdicts that one function tells: two bits each, beside its own.
pub const MOST_TOLD: usize = 3;

/// Work that a function need not do at its place in a chain, as nothing would come of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spared {
    /// The header checksum of IPv4 is known to be right.
    pub verified: bool,
    /// What is written into these fields is lost.
    pub unwritten: Fields,
    /// No rule that is searched for asks for these fields.
    pub unread: Fields,
    /// The rules that can decide, if they are not all.
    pub rules: Option<Arc<Verdicts>>,
    /// How verdicts come about, on the way out and on the way back.
    pub ways: [Way; 2],
    /// Whose verdicts are found together with this function's.
    pub tells: Option<Tells>,
}

impl Spared {
    /// Whether the function has all its work to do.
    pub fn is_nothing(&self) -> bool {
        *self == Spared::default()
    }
}

/// Builds an instance that leaves out what it is spared.
pub type SparedBuilder = fn(&Args, &Spared, &mut Build<'_>) -> Result<Box<dyn Module>, ArgError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_in_words() {
        assert_eq!(Fields::NONE.to_string(), "nothing");
        assert_eq!(Fields::PORTS.to_string(), "ports");
        assert_eq!((Fields::TTL | Fields::PORTS).to_string(), "TTL and ports");
        let three = Fields::TTL | Fields::PORTS | Fields::SOURCE;
        assert_eq!(three.to_string(), "TTL, source address and ports");
        assert_eq!(three.without(Fields::TTL).and(Fields::FIVE_TUPLE), Fields::PORTS | Fields::SOURCE);
    }

    #[test]
    fn who_says_nothing_is_feared() {
        let any = Effects::ANY;
        assert!(any.reads == Fields::ALL && any.writes == Fields::ALL && any.overwrites.is_empty());
        assert!(any.observes && any.turns && any.checksum == Checksum::Unknown && any.verdicts.is_none());
        assert!(Spared::default().is_nothing());
    }
}
