//! Amounts with their units, as `rack.toml` and `--what-if` write them: `40Gbps`, `1.7GHz`, `12us`.

use catena_policy::likely;

/// What an amount measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bits per second.
    Rate,
    /// Cycles per second.
    Clock,
    /// Nanoseconds.
    Time,
}

impl Measure {
    /// What such an amount is called, with an example.
    #[must_use]
    pub fn expected(self) -> &'static str {
        match self {
            Measure::Rate => "a bit rate such as 40Gbps",
            Measure::Clock => "a clock such as 1.7GHz",
            Measure::Time => "a time such as 12us",
        }
    }

    /// Its units, with what one is in the base unit.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Measure::Rate => &[("bps", 1.0), ("Kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)],
            Measure::Clock => &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
            Measure::Time => &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
        }
    }
}

/// Why a text is no such amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAmount {
    /// One sentence.
    pub message: String,
    /// The unit that was probably meant.
    pub likely: Option<String>,
}

/// The amount that `text` tells, in bits per second, cycles per second or nanoseconds; never negative.
///
/// # Errors
/// When it is no number with a unit of `measure`.
pub fn amount(text: &str, measure: Measure) -> Result<f64, NoAmount> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.trim();
    let names = || measure.units().iter().map(|(name, _)| *name);
    let plain = |message: String| NoAmount { message, likely: None };
    let Ok(number) = digits.replace('_', "").parse::<f64>() else {
        return Err(plain(format!("`{text}` is not {}", measure.expected())));
    };
    if unit.is_empty() {
        return Err(plain(format!("`{text}` has no unit: expected {}", measure.expected())));
    }
    match measure.units().iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((_, scale)) if number.is_finite() => Ok(number * scale),
        Some(_) => Err(plain(format!("`{text}` is too large"))),
        None => {
            let units = names().collect::<Vec<_>>().join(", ");
            let message = format!("there is no unit `{unit}` here: expected {units}");
            // The largest first: `Gps` is rather `Gbps` than `bps`.
            let named: Vec<&str> = names().collect();
            Err(NoAmount { message, likely: likely(unit, named.into_iter().rev()).map(str::to_owned) })
        }
    }
}

/// `value` in the largest unit of `measure` in which it is at least 1, with as many digits as it needs.
#[must_use]
pub fn written(value: f64, measure: Measure) -> String {
    let units = measure.units();
    let fitting = units.iter().rev().find(|(_, scale)| value >= *scale);
    let (unit, scale) = fitting.or(units.first()).copied().unwrap_or(("", 1.0));
    let number = format!("{:.3}", value / scale);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_are_written_back() {
        assert_eq!(amount("40Gbps", Measure::Rate), Ok(40e9));
        assert_eq!(amount("1.7 GHz", Measure::Clock), Ok(1.7e9));
        assert_eq!(amount("12us", Measure::Time), Ok(12e3));
        assert_eq!(amount("0ns", Measure::Time), Ok(0.0));
        assert_eq!(written(3.2e12, Measure::Rate), "3.2Tbps");
        assert_eq!(written(1.7e9, Measure::Clock), "1.7GHz");
        assert_eq!(written(600.0, Measure::Time), "600ns");
        assert_eq!(written(0.0, Measure::Time), "0ns");
    }

    #[test]
    fn what_is_no_amount_says_why() {
        let wrong = |text, measure| amount(text, measure).expect_err("it is wrong");
        assert_eq!(wrong("40GBs", Measure::Rate).likely.as_deref(), Some("Gbps"));
        assert!(wrong("40", Measure::Rate).message.contains("no unit"));
        assert!(wrong("fast", Measure::Rate).message.contains("is not a bit rate"));
        assert!(wrong("-5us", Measure::Time).message.contains("is not a time"));
        assert!(wrong("1.2.3GHz", Measure::Clock).message.contains("is not a clock"));
    }
}
