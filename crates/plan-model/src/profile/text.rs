//! A profile as text: what stands in `profile.json`, and what can be wrong with it.

use serde::Deserialize;

use super::{Cycles, Profile, VERSION};
use crate::plain;

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl std::error::Error for Unreadable {}

/// What is read first: the rest of another version may look like anything.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Profile {
    /// Read what stands in a `profile.json`.
    ///
    /// # Errors
    /// That it is of another version, no JSON, lacks something, or holds a figure that is no cost, with the line.
    pub fn from_text(text: &str) -> Result<Profile, Unreadable> {
        let broken = |error: serde_json::Error| {
            let what = format!("{}; `catena profile` writes such files", plain::json(&error));
            Unreadable { line: error.line().max(1), what }
        };
        let Version { version } = serde_json::from_str(text).map_err(broken)?;
        if version != VERSION {
            return Err(Unreadable {
                line: line_of(text, "\"version\""),
                what: format!(
                    "version {version} of the format, expected {VERSION}; measure anew with `catena profile`"
                ),
            });
        }
        let profile: Profile = serde_json::from_str(text).map_err(broken)?;
        profile.check(text)?;
        Ok(profile)
    }

    /// Return the text of a `profile.json`.
    ///
    /// # Errors
    /// A figure that JSON cannot say: one that is not finite.
    pub fn to_text(&self) -> Result<String, Unreadable> {
        self.check("")?;
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Unreadable { line: 1, what: error.to_string() })
    }

    /// A cost is a number of at least 0 at every size of at least 0, and its worst run at least its mean.
    fn check(&self, text: &str) -> Result<(), Unreadable> {
        let wrong = |line: usize, what: String| Err(Unreadable { line, what });
        let clock = self.machine.clock_hz;
        if !(LEAST_HZ..=MOST_HZ).contains(&clock) {
            let line = line_of(text, "\"clock_hz\"");
            return wrong(
                line,
                format!("clock_hz is {clock}, expected cycles per second from {LEAST_HZ:e} to {MOST_HZ:e}"),
            );
        }
        let o = &self.overheads;
        for (name, figure) in [
            ("visit", o.visit),
            ("spread", o.spread),
            ("queue", o.queue),
            ("classify", o.classify),
            ("step", o.step),
            ("branch", o.branch),
            ("choice", o.choice),
            ("parse", o.parse),
            ("parse_batch", o.parse_batch),
        ] {
            if !is_cost(figure) {
                let line = line_of(text, &format!("\"{name}\""));
                return wrong(
                    line,
                    format!("overheads: {name} is {figure}, expected cycles from 0 to {MOST_CYCLES:e}"),
                );
            }
        }
        for (name, function) in &self.functions {
            for cycles in [Some(&function.server), function.smart_nic.as_ref()].into_iter().flatten() {
                if let Err(what) = sound(cycles) {
                    return wrong(line_of(text, &format!("\"{name}\"")), format!("{name}: {what}"));
                }
            }
        }
        Ok(())
    }
}

/// Cycles per second that a machine's counter may have: its figures are of no machine else.
const LEAST_HZ: f64 = 1e6;
const MOST_HZ: f64 = 1e12;
/// More cycles than any function takes: plans are reckoned in numbers that keep sixteen digits.
const MOST_CYCLES: f64 = 1e12;

fn is_cost(number: f64) -> bool {
    (0.0..=MOST_CYCLES).contains(&number)
}

fn sound(cycles: &Cycles) -> Result<(), String> {
    let Cycles { base, per_unit, worst_factor, .. } = *cycles;
    // A line may begin below 0, if it is above at the sizes that were measured.
    if ![base, per_unit, cycles.line_error].iter().all(|number| number.abs() <= MOST_CYCLES) {
        return Err(format!("base, per_unit and line_error are numbers of {MOST_CYCLES:e} at most"));
    }
    if !(1.0..=MOST_CYCLES).contains(&worst_factor) {
        return Err(format!("worst_factor is {worst_factor}, expected at least 1"));
    }
    let alone = cycles.alone.unwrap_or_default();
    let figures = [
        ("per_batch", cycles.per_batch),
        ("per_flow", cycles.per_flow),
        ("in_turn", cycles.in_turn),
        ("alone.saved", alone.saved),
        ("alone.per_batch", alone.per_batch),
        ("alone.per_flow", alone.per_flow),
    ];
    for (name, each) in figures {
        if !is_cost(each) {
            return Err(format!("{name} is {each}, expected cycles from 0 to {MOST_CYCLES:e}"));
        }
    }
    let least = cycles.runs.iter().map(|run| run.size).reduce(f64::min).unwrap_or(0.0);
    if cycles.mean(least) < 0.0 || per_unit < 0.0 {
        return Err(format!("costs {base} + {per_unit} x size: less than nothing, or less the larger it is"));
    }
    Ok(())
}

/// Return the first line with `word`, from 1; 1 if there is none.
fn line_of(text: &str, word: &str) -> usize {
    1 + text.lines().position(|line| line.contains(word)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Alone, Cost, Machine, Overheads, Runs, Setting};
    use proptest::prelude::*;

    fn profile(base: f64, per_unit: f64, worst_factor: f64) -> Profile {
        let run = Runs {
            size: 10.0,
            setting: Setting::ShortLived,
            alone: true,
            count: 3,
            mean: base,
            min: base,
            median: base,
            p95: base,
            max: base,
        };
        let (per_batch, per_flow) = (base / 4.0, base / 65_536.0);
        let server = Cycles {
            unit: "rules".into(),
            base,
            per_unit,
            line_error: 0.01,
            worst_factor,
            per_batch,
            per_flow,
            in_turn: base / 8.0,
            alone: Some(Alone { saved: 1.0, per_flow, per_batch }),
            runs: vec![run],
        };
        Profile {
            version: VERSION,
            port: None,
            machine: Machine { processor: "x".into(), clock_hz: 2e9, cores: 2, date: "2026-01-01T00:00:00Z".into() },
            overheads: Overheads {
                visit: 30.0,
                spread: 50.0,
                queue: 9.0,
                classify: 3.0,
                step: 2.0,
                branch: 7.0,
                choice: 6.0,
                parse: 5.0,
                parse_batch: 90.0,
            },
            functions: [("ACL".to_owned(), Cost { server, smart_nic: None, source: None })].into(),
        }
    }

    proptest! {
        /// What is written is read again; sixteenths, as a decimal's last bit may differ.
        #[test]
        fn profiles_come_back(base in 0..1_000_000u32, per_unit in 0..1_000u32, worst in 16..48u32) {
            let sixteenths = |n: u32| f64::from(n) / 16.0;
            let profile = profile(sixteenths(base), sixteenths(per_unit), sixteenths(worst));
            prop_assert_eq!(Profile::from_text(&profile.to_text().unwrap()).unwrap(), profile);
        }

        /// No text panics.
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", at in 0..700usize) {
            let _ = Profile::from_text(&text);
            let whole = profile(1.0, 2.0, 1.0).to_text().unwrap();
            let cut: String = whole.chars().take(at).collect();
            let error = Profile::from_text(&cut).map(drop);
            prop_assert!(error.is_err() || at >= whole.trim_end().chars().count());
        }
    }

    #[test]
    fn another_version_is_refused_whatever_else_it_holds() {
        let error = Profile::from_text("{\n  \"functions\": [],\n  \"version\": 7\n}\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.what.contains("version 7") && error.what.contains("catena profile"), "{error}");
    }

    #[test]
    fn broken_text_is_said_with_its_line() {
        let text = profile(1.0, 2.0, 1.5).to_text().unwrap();
        let error = Profile::from_text("{\n  \"version\": 1,\n  oops\n}\n").unwrap_err();
        assert_eq!(error.line, 3, "{error}");
        assert!(!error.what.contains("at line"), "{error}");
        assert!(Profile::from_text("").unwrap_err().line == 1);
        let lacking = Profile::from_text(&text.replace("\"visit\"", "\"visits\"")).unwrap_err();
        assert!(lacking.what.contains("`visit`"), "{lacking}");
        let low = Profile::from_text(&text.replace("\"worst_factor\": 1.5", "\"worst_factor\": 0.5")).unwrap_err();
        assert!(low.what.contains("ACL") && low.what.contains("0.5") && low.line > 1, "{low}");
        let negative = Profile::from_text(&text.replace("\"queue\": 9.0", "\"queue\": -9.0")).unwrap_err();
        assert!(negative.what.contains("queue is -9"), "{negative}");
        let much = Profile::from_text(&text.replace("\"queue\": 9.0", "\"queue\": 1e30")).unwrap_err();
        assert!(much.what.contains("expected cycles from 0 to 1e12"), "{much}");
        for clock in ["0", "-1", "1e308"] {
            let clock = text.replace("\"clock_hz\": 2000000000.0", &format!("\"clock_hz\": {clock}"));
            let odd = Profile::from_text(&clock).unwrap_err();
            assert!(odd.what.contains("expected cycles per second") && odd.line > 1, "{odd}");
        }
        assert!(profile(1e30, 0.0, 1.0).to_text().is_err() && profile(1.0, 1e30, 1.0).to_text().is_err());
        assert!(profile(f64::NAN, 0.0, 1.0).to_text().is_err());
    }
}
