//! Why NAT drops a packet.

use catena_dataplane::Reason;

/// The names of the drop reasons, which index them.
pub const REASONS: &[&str] = &[
    "no mapping",
    "no port left",
    "host has as many ports as it may",
    "as many mappings as there may be",
    "filtered: nothing was sent there",
    "fragment without its first",
    "protocol cannot be translated",
    "source or destination that must not leave its link",
    "host has as many sessions as it may",
    "VLAN that is not that of the mapping",
    "more than two VLAN tags",
];
/// From outside, to nobody.
pub const NO_MAPPING: Reason = Reason(0);
/// The pool is used up.
pub const NO_PORT: Reason = Reason(1);
/// `max_per_host`.
pub const HOST_LIMIT: Reason = Reason(2);
/// `max_mappings`.
pub const TOO_MANY: Reason = Reason(3);
/// `filtering`.
pub const FILTERED: Reason = Reason(4);
/// A later fragment alone.
pub const LOST_FIRST: Reason = Reason(5);
/// Without ports.
pub const UNTRANSLATABLE: Reason = Reason(6);
/// For the link, or for nobody.
pub const UNROUTABLE: Reason = Reason(7);
/// A host's part of the sessions.
pub const SESSION_LIMIT: Reason = Reason(8);
/// From outside or by hairpin, in another VLAN than the inside endpoint's.
pub const OTHER_VLAN: Reason = Reason(9);
/// In VLANs that are not told apart.
pub const TOO_DEEP: Reason = Reason(10);
