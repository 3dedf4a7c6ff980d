//! When packets come: the rate, in virtual time or by the context's clock.

use catena_packet::Batch;

use super::spec::{Rate, START, Spec, Time};
use crate::module::Context;

/// Time that a generator in virtual time takes between packets when no rate is given, in ns.
const USUAL: f64 = 1000.0;
/// How far a generator on the wall's clock may be behind and still catch up, in ns.
const PATIENCE: u64 = 10_000_000;
const FRACTION: f64 = (1u64 << 32) as f64;

/// Says when the next packet comes.
pub(super) struct Pace {
    time: Time,
    /// Whether packets wait for their time (on the wall's clock).
    limited: bool,
    /// ns between packets, as a fraction of 2³².
    per_packet: u64,
    /// ns for each byte, as a fraction of 2³².
    per_byte: u64,
    begun: bool,
    /// When the next packet comes, in ns since 1970, and 2⁻³² ns.
    next: u64,
    fraction: u64,
    duration: Option<u64>,
    end: u64,
}

impl Pace {
    pub fn new(spec: &Spec) -> Self {
        let (per_packet, per_byte) = match spec.rate {
            None if spec.time == Time::Virtual => (USUAL, 0.0),
            None => (0.0, 0.0),
            Some(Rate::Packets(rate)) => (1e9 / rate, 0.0),
            Some(Rate::Bits(rate)) => (0.0, 8e9 / rate),
        };
        Pace {
            time: spec.time,
            limited: spec.time == Time::Wall && spec.rate.is_some(),
            per_packet: (per_packet * FRACTION).round() as u64,
            per_byte: (per_byte * FRACTION).round() as u64,
            begun: false,
            next: START,
            fraction: 0,
            duration: spec.duration,
            end: u64::MAX,
        }
    }

    /// Begin a pull: learn the time.
    #[inline]
    pub fn look(&mut self, cx: &Context) {
        if self.time == Time::Wall {
            let now = cx.now();
            if !self.begun || !self.limited {
                self.next = now;
            }
            self.next = self.next.max(now.saturating_sub(PATIENCE));
        }
        if !self.begun {
            self.begun = true;
            self.end = self.duration.map_or(u64::MAX, |duration| self.next.saturating_add(duration));
        }
    }

    /// Return whether packets come as fast as they are asked for.
    pub fn is_virtual(&self) -> bool {
        self.time == Time::Virtual
    }

    /// Return whether the duration is over, or time itself: in 2554 it fills 64 bits.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.next >= self.end
    }

    /// Return when the next packet comes, in ns since 1970; `None` if not yet, or no more.
    #[inline]
    pub fn due(&self, cx: &Context) -> Option<u64> {
        let wait = self.limited && self.next > cx.now();
        (!wait && self.next < self.end).then_some(self.next)
    }

    /// Return how many of `count` packets of up to `length` bytes are due now.
    #[inline]
    pub fn room(&self, cx: &Context, count: usize, length: usize) -> usize {
        if !self.limited && self.duration.is_none() {
            return count;
        }
        let until = if self.limited { self.end.min(cx.now().saturating_add(1)) } else { self.end };
        let step = (u128::from(self.per_byte) * length as u128 + u128::from(self.per_packet)).max(1);
        let window = (u128::from(until.saturating_sub(self.next)) << 32).saturating_sub(u128::from(self.fraction));
        window.div_ceil(step).min(count as u128) as usize
    }

    /// Give all packets of a batch their times, and count them.
    #[inline]
    pub fn stamp(&mut self, batch: &mut Batch) {
        if self.per_byte > 0 {
            for packet in batch.iter_mut() {
                packet.meta_mut().arrival = self.next;
                self.sent(packet.len());
            }
            return;
        }
        let (whole, part) = (self.per_packet >> 32, self.per_packet & 0xffff_ffff);
        let (mut next, mut fraction) = (self.next, self.fraction);
        for packet in batch.iter_mut() {
            packet.meta_mut().arrival = next;
            fraction += part;
            next = next.saturating_add(whole + (fraction >> 32));
            fraction &= 0xffff_ffff;
        }
        (self.next, self.fraction) = (next, fraction);
    }

    /// Count a packet of `length` bytes.
    #[inline]
    pub fn sent(&mut self, length: usize) {
        let step = u128::from(self.per_byte) * length as u128 + u128::from(self.per_packet);
        let total = step + u128::from(self.fraction);
        self.next = self.next.saturating_add((total >> 32) as u64);
        self.fraction = total as u64 & 0xffff_ffff;
    }

    /// Let time pass to `until` without packets, if nothing but us makes it pass; returns whether it did.
    pub fn skip(&mut self, until: u64) -> bool {
        let skips = self.time == Time::Virtual;
        if skips {
            self.next = self.next.max(until);
        }
        skips
    }

    /// Bring the context's time along with packets up to `arrival`.
    #[inline]
    pub fn bring(&self, cx: &mut Context, arrival: u64) {
        if self.time == Time::Virtual {
            cx.set_now(arrival);
        }
    }
}
