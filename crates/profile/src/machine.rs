//! The machine that a profile is of.

use std::time::{SystemTime, UNIX_EPOCH};

use catena_dataplane::clock;
use catena_plan_model::profile::Machine;

/// Describe this machine, now.
pub fn this() -> Machine {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Machine {
        processor: processor(&information).unwrap_or("unknown").to_owned(),
        clock_hz: clock::hertz() as f64,
        cores: cores(),
        date: date(now),
    }
}

/// Return the number of cores that this process may use. Ask before a thread is pinned to one.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

fn processor(information: &str) -> Option<&str> {
    let line = information.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Return a time in s since 1970 as RFC 3339 has it (days to date after Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`).
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01: years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, over) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + over;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn a_processor_is_named() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\n"), Some("Some CPU @ 2GHz"));
        assert_eq!(processor(""), None);
        assert!(this().cores >= 1 && this().clock_hz > 0.0);
    }
}
