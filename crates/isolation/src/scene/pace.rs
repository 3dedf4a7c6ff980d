//! When a sender at a rate sends, and how much: few packets at a time, as a network card hands them on. Pure.
//!
//! A burst that is longer than a socket's buffer, of some 90 datagrams, is lost in part whatever its receiver may run.

use std::time::Duration;

/// How often it sends, unless packets are rarer: some cards' time between interrupts.
const TICK: Duration = Duration::from_micros(200);
/// What it could not send for so long, as another had its core, it does not make up for.
const FORGOTTEN: Duration = Duration::from_millis(20);

/// What a sender at a rate has sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Packets a second.
    rate: u32,
    /// Sent, or not made up for.
    sent: u64,
}

impl Pace {
    /// Begin, at a rate of packets a second.
    pub(super) fn new(rate: u32) -> Pace {
        Pace { rate, sent: 0 }
    }

    /// Return how many packets to send so long after the begin, and how long after it to look again.
    pub(super) fn due(&mut self, elapsed: Duration) -> (u64, Duration) {
        let due = |time: Duration| u64::try_from(time.as_nanos() * u128::from(self.rate) / 1_000_000_000);
        let (all, most) = (due(elapsed).unwrap_or(u64::MAX), due(FORGOTTEN).unwrap_or(u64::MAX).max(1));
        let number = (all - self.sent.min(all)).min(most);
        self.sent = all;
        (number, elapsed + TICK.max(Duration::from_secs(1) / self.rate.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return what is sent in so many seconds by a sender that wakes up late each time, and its longest burst.
    fn play(rate: u32, seconds: u64, late: Duration) -> (u64, u64) {
        let (mut pace, mut now, mut sent, mut longest) = (Pace::new(rate), Duration::ZERO, 0, 0);
        while now < Duration::from_secs(seconds) {
            let (number, next) = pace.due(now);
            (now, sent, longest) = (next + late, sent + number, longest.max(number));
        }
        (sent, longest)
    }

    #[test]
    fn each_rate_is_met_by_short_bursts() {
        for rate in [1, 7, 100, 4_999, 5_000, 5_001, 50_000, 178_571] {
            for late in [0, 60] {
                let (sent, longest) = play(rate, 10, Duration::from_micros(late));
                let all = u64::from(rate) * 10;
                assert!((all - all.min(2 + u64::from(rate) / 2_000)..=all).contains(&sent), "{sent} of {all}");
                assert!(longest <= 2 + u64::from(rate) / 3_800, "{longest} at once at {rate}");
            }
        }
    }

    #[test]
    fn what_a_sender_missed_is_not_made_up_for() {
        let mut pace = Pace::new(10_000);
        assert_eq!(pace.due(Duration::from_secs(1)).0, 200);
        assert_eq!(pace.due(Duration::from_millis(1_001)).0, 10);
        assert_eq!(pace.due(Duration::from_millis(1_001)).0, 0);
    }
}
