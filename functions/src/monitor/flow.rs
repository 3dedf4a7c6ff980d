//! What is known of one flow, and what a packet adds to it.

use catena_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};
use catena_state::{FOREVER, Plain};

/// What was read from a packet.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// 0 when the packet goes the way of the flow's key, else 1.
    pub(super) way: u8,
    /// TCP flags; 0 for other protocols and fragments.
    pub(super) flags: u8,
    /// Length in bytes from the IP header on, as that header says.
    pub(super) bytes: u32,
}

/// TCP flags that begin or end something.
const EVENTS: u8 = SYN | FIN | RST;

/// Times in ns after which a flow is exported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Since its last packet.
    pub(super) idle: u64,
    /// Since its first packet, though it goes on.
    pub(super) active: u64,
}

/// A closed TCP connection is exported this long after its last packet, so that late segments still belong to it.
const LINGER: u64 = 1_000_000_000;

/// Why a flow is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub(super) enum End {
    /// No packet for the idle time-out.
    Idle,
    /// The active time-out, or a counter about to wrap; the flow goes on.
    Active,
    /// TCP's FIN both ways, or RST.
    Closed,
    /// The run has ended.
    Forced,
    /// The table was full.
    Evicted,
}

/// A flow, both ways: with an IPv4 key, one cache line of the flow table.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Flow {
    /// By way. Never wraps: `bytes` fills up first, as a packet has 20 bytes at least.
    pub(super) packets: [u32; 2],
    /// By way. Before it wraps, the flow is exported and begins again.
    pub(super) bytes: [u32; 2],
    /// Time of the first packet, in ns since 1970.
    pub(super) first: u64,
    /// Time of the last packet.
    pub(super) last: u64,
    /// Time from SYN to the ACK that ends the handshake, in µs, at least 1; 0 when not seen.
    pub(super) rtt: u32,
    /// All TCP flags seen, by way.
    pub(super) flags: [u8; 2],
    notes: u8,
}

const _: () = assert!(size_of::<Flow>() <= 40, "with its key, an IPv4 entry is one cache line");

/// The way (0 or 1) of the one who began.
const ORIGIN: u8 = 1;
/// Used since the evicting hand came by.
const USED: u8 = 2;
/// SYN was seen once, the end of the handshake not yet.
const AWAITS: u8 = 4;
/// Closed or reset.
const ENDED: u8 = 8;
/// Exported and begun again, but no packet yet.
const FRESH: u8 = 16;

/// What must be done before a packet is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing.
    Nothing,
    /// The packet begins another flow of the same key; this one ends so.
    Another(End),
    /// A record of what was counted up to now.
    Segment,
    /// The same, at any cost: a counter would wrap.
    Wrap,
}

impl Flow {
    /// Begin a flow with its first packet.
    #[inline(always)]
    pub(super) fn begin(seen: Seen, now: u64) -> Flow {
        // Who answers with SYN and ACK did not begin, even if the beginning was not seen.
        let origin = seen.way ^ u8::from(seen.flags & (SYN | ACK) == SYN | ACK);
        let awaits = if seen.flags & (SYN | ACK) == SYN { AWAITS } else { 0 };
        // Each way by itself: what is written by a number that is not known before goes through memory, and is waited for there.
        let is_second = seen.way & 1 != 0;
        let by_way = |first: u32| if is_second { [0, first] } else { [first, 0] };
        let [ahead, back] = by_way(seen.flags.into());
        // Of one packet a handshake has no end, and a RST alone is the end of a connection.
        let ended = if seen.flags & RST != 0 { ENDED } else { 0 };
        Flow {
            packets: by_way(1),
            bytes: by_way(seen.bytes),
            first: now,
            last: now,
            rtt: 0,
            flags: [ahead as u8, back as u8],
            notes: (origin * ORIGIN) | awaits | ended | USED,
        }
    }

    /// Return whether a packet can just be added.
    #[inline(always)]
    pub(super) fn is_steady(&self, seen: Seen, now: u64, limits: &Limits) -> bool {
        (seen.flags & EVENTS == 0)
            & (self.notes & (AWAITS | ENDED | FRESH) == 0)
            & (now.saturating_sub(self.last) <= limits.idle)
            & (now.saturating_sub(self.first) <= limits.active)
            & !self.would_wrap(seen)
    }

    /// Return whether the packet's bytes are more than the counter can take.
    #[inline(always)]
    pub(super) fn would_wrap(&self, seen: Seen) -> bool {
        self.bytes[usize::from(seen.way & 1)] > u32::MAX - seen.bytes
    }

    /// Count a packet.
    #[inline(always)]
    pub(super) fn add(&mut self, seen: Seen, now: u64) {
        let way = usize::from(seen.way & 1);
        self.packets[way] += 1;
        self.bytes[way] += seen.bytes;
        self.flags[way] |= seen.flags;
        self.last = self.last.max(now);
        self.notes |= USED;
    }

    /// Return what must be done before a packet is counted.
    pub(super) fn due(&self, seen: Seen, now: u64, limits: &Limits) -> Due {
        if let Some(end) = self.is_over(now, limits) {
            Due::Another(end)
        } else if self.has(ENDED) && seen.flags & (SYN | ACK) == SYN {
            Due::Another(End::Closed)
        } else if self.would_wrap(seen) {
            Due::Wrap
        } else if self.is_long(now, limits) {
            Due::Segment
        } else {
            Due::Nothing
        }
    }

    /// Count a packet that is not steady.
    pub(super) fn take(&mut self, seen: Seen, now: u64) {
        if self.has(FRESH) {
            (self.first, self.last) = (now, now);
            self.notes &= !FRESH;
        }
        self.add(seen, now);
        self.follow(seen, now);
    }

    /// Follow the handshake and the closing.
    fn follow(&mut self, seen: Seen, now: u64) {
        let way = usize::from(seen.way & 1);
        if self.has(AWAITS) && way == self.origin() {
            let again = seen.flags & SYN != 0 && self.packets[way] > 1;
            let answered = seen.flags & (SYN | ACK) == ACK && self.flags[1 - way] & SYN != 0;
            if answered {
                self.rtt = (now.saturating_sub(self.first) / 1000).clamp(1, u64::from(u32::MAX)) as u32;
            }
            // A SYN sent twice says nothing of time (Karn's algorithm).
            if again || answered {
                self.notes &= !AWAITS;
            }
        }
        if seen.flags & RST != 0 || self.flags[0] & self.flags[1] & FIN != 0 {
            self.notes |= ENDED;
        }
    }

    /// Return why the flow is over, if it is. Where its active time-out came before, that is what its record is for, whenever
    /// somebody looks.
    pub(super) fn is_over(&self, now: u64, limits: &Limits) -> Option<End> {
        let (most, end) =
            if self.has(ENDED) { (limits.idle.min(LINGER), End::Closed) } else { (limits.idle, End::Idle) };
        if now.saturating_sub(self.last) <= most {
            return None;
        }
        let was_long = self.first.saturating_add(limits.active) < self.last.saturating_add(most);
        Some(if was_long && !self.has(FRESH) { End::Active } else { end })
    }

    /// Return when there is something to tell of the flow, if no packet comes until then.
    pub(super) fn end(&self, limits: &Limits) -> u64 {
        let most = if self.has(ENDED) { limits.idle.min(LINGER) } else { limits.idle };
        let silent = self.last.saturating_add(most);
        let end = if self.has(FRESH) { silent } else { silent.min(self.first.saturating_add(limits.active)) };
        // However long the limits are, it has an end.
        end.saturating_add(1).min(FOREVER - 1)
    }

    /// Return whether the flow lasts longer than the active time-out.
    pub(super) fn is_long(&self, now: u64, limits: &Limits) -> bool {
        !self.has(FRESH) && now.saturating_sub(self.first) > limits.active
    }

    /// Return why the flow's last record is written when a run ends now. It is the flow that says so, not whether it was looked
    /// at in time: entries that end within one step of a map's calendar are looked at together.
    pub(super) fn end_at(&self, now: u64, limits: &Limits) -> End {
        let is_long = if self.is_long(now, limits) { End::Active } else { End::Forced };
        self.is_over(now, limits).unwrap_or(is_long)
    }

    /// Begin to count anew, after a record of what was counted.
    pub(super) fn segment(&mut self) {
        (self.packets, self.bytes) = ([0; 2], [0; 2]);
        self.notes = self.notes & !AWAITS | FRESH;
    }

    /// Return the flow as one that was not used since, if it was.
    pub(super) fn as_unused(&self) -> Option<Flow> {
        self.has(USED).then_some(Flow { notes: self.notes & !USED, ..*self })
    }

    /// Return whether there is nothing to tell: no packet since the last record.
    pub(super) fn is_fresh(&self) -> bool {
        self.has(FRESH)
    }

    /// Return the way of the one who began, 0 or 1.
    pub(super) fn origin(&self) -> usize {
        usize::from(self.notes & ORIGIN)
    }

    fn has(&self, bit: u8) -> bool {
        self.notes & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_begins_as_if_its_first_packet_was_added_to_none() {
        for (way, flags) in [0, 1].into_iter().flat_map(|way| (0..=u8::MAX).map(move |flags| (way, flags))) {
            let (seen, now) = (Seen { way, flags, bytes: 40 }, 1_000);
            let begun = Flow::begin(seen, now);
            let notes = begun.notes & (ORIGIN | AWAITS);
            let [packets, bytes] = [[0; 2]; 2];
            let mut none = Flow { packets, bytes, first: now, last: now, rtt: 0, flags: [0; 2], notes };
            none.take(seen, now);
            assert_eq!(format!("{begun:?}"), format!("{none:?}"), "flags {flags:#010b}, way {way}");
        }
    }
}
