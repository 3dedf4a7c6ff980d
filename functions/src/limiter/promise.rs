//! The rate and the burst, from the arguments.

use catena_state::Share;

use super::Rate;
use super::bucket::RateError;
use crate::config::{ArgError, Args, Value};

/// The default burst: as many ns at the rate.
const BURST_NS: u64 = 100_000_000;
/// The least default burst: two full frames (1,500 bytes, Ethernet header) with two VLAN tags, or two packets.
const LEAST_BYTES: u64 = 2 * 1522;
const LEAST_PACKETS: u64 = 2;

const SECOND: u128 = 1_000_000_000;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    /// Bits or packets a second.
    rate: u64,
    /// Bytes or packets.
    burst: u64,
    /// Whether bytes are counted, not packets.
    pub(super) in_bytes: bool,
}

impl Promise {
    /// Read the arguments `rate` and `burst`.
    pub(super) fn new(args: &Args) -> Result<Promise, ArgError> {
        let (rate, in_bytes) = match args.require("rate")? {
            Value::BitRate(rate) => (*rate, true),
            Value::PacketRate(rate) => (*rate, false),
            _ => {
                return Err(ArgError::new("rate", "expected bits or packets a second, such as 64kbps or 3Kpps"));
            }
        };
        // Units in a byte or packet, the least default, the most that is counted exactly.
        let (unit, least, most) =
            if in_bytes { (8, LEAST_BYTES, MOST_BYTES) } else { (1, LEAST_PACKETS, MOST_PACKETS) };
        let during = |ns: u64| {
            let units = u128::from(rate) * u128::from(ns) / (unit * SECOND);
            u64::try_from(units).unwrap_or(u64::MAX)
        };
        let burst = match (args.get("burst"), in_bytes) {
            (None, _) => during(BURST_NS).clamp(least, most),
            (Some(Value::Duration(ns)), _) => during(*ns),
            (Some(Value::Size(bytes)), true) => *bytes,
            (Some(Value::Integer(packets)), false) => u64::try_from(*packets).unwrap_or(0),
            (Some(_), true) => {
                return Err(ArgError::new("burst", "expected a size or a time, as the rate is in bits a second")
                    .help("for example 64KB or 100ms"));
            }
            (Some(_), false) => {
                return Err(ArgError::new("burst", "expected a number or a time, as the rate is in packets a second")
                    .help("for example 100 or 100ms"));
            }
        };
        let promise = Promise { rate, burst, in_bytes };
        promise.of(1).map_err(|error| match error {
            RateError::NoRate => ArgError::new("rate", error.to_string()),
            RateError::NoBurst => ArgError::new("burst", format!("{error}: it comes to less than a byte or packet")),
            RateError::BurstTooLarge { .. } => {
                ArgError::new("burst", format!("{error} {}", if in_bytes { "bytes" } else { "packets" }))
            }
        })?;
        Ok(promise)
    }

    /// The part that each instance keeps to: of IPv4 and IPv6 keys, the whole where `whole` says that no other
    /// instance sees packets of the key. A part still lets a full frame pass if the whole does.
    pub(super) fn shared(&self, share: Share, whole: [bool; 2]) -> Result<[Rate; 2], RateError> {
        let [ipv4, ipv6] = whole.map(|whole| self.of(if whole { 1 } else { u64::from(share.count.max(1)) }));
        Ok([ipv4?, ipv6?])
    }

    fn of(&self, count: u64) -> Result<Rate, RateError> {
        let rate = if self.rate == 0 { 0 } else { (self.rate / count).max(1) };
        let full = if self.in_bytes { self.burst.min(LEAST_BYTES / 2) } else { self.burst.min(1) };
        let burst = (self.burst / count).max(full);
        if self.in_bytes { Rate::bits_per_second(rate, burst) } else { Rate::packets_per_second(rate, burst) }
    }
}

/// The largest bursts that a [`Rate`] takes.
const MOST_BYTES: u64 = 1_152_921_504;
const MOST_PACKETS: u64 = 9_223_372_036;

#[cfg(test)]
#[path = "promise_tests.rs"]
pub(super) mod tests;
