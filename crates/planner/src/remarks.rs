//! What planning has to say before there is a plan.

use std::fmt;

use catena_policy::Diagnostic;
use catena_profile::Step;

/// Something worth knowing. Its [`Display`](fmt::Display) is for people, of one line or, of findings, of several.
#[derive(Debug)]
#[non_exhaustive]
pub enum Remark<'a> {
    /// What was found in a file: errors and warnings, with its name and text.
    Findings {
        /// All of them.
        diagnostics: &'a [Diagnostic],
        /// The file's name, as given.
        name: &'a str,
        /// Its text.
        source: &'a str,
    },
    /// These functions are about to be measured, since there is no profile.
    Measuring(&'a [&'static str]),
    /// The next step of measuring begins.
    Step(&'a Step),
    /// Measuring has ended.
    Measured,
    /// This is looked for now, which may take a while.
    Seeking(&'a str),
    /// The search has ended.
    Sought,
    /// Nothing can be measured here: why.
    NotMeasured(&'a str),
    /// What was measured cannot be kept for the next plan: why.
    NotKept(&'a str),
}

impl fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Findings { diagnostics, name, source } => {
                let findings: Vec<String> = diagnostics.iter().map(|d| d.render(name, source, false)).collect();
                f.write_str(&findings.join("\n\n"))
            }
            Remark::Measuring(names) => write!(
                f,
                "no --profile: measuring {} on this machine, roughly (`catena profile` is careful)",
                names.join(", ")
            ),
            Remark::Step(step) => write!(f, "step {} of {}", step.number, step.of),
            Remark::Measured => f.write_str("measured"),
            Remark::Seeking(what) => write!(f, "looking for {what}"),
            Remark::Sought => f.write_str("searched"),
            Remark::NotMeasured(why) => write!(f, "cannot measure here: {why}; costs are those of papers"),
            Remark::NotKept(why) => write!(f, "what was measured is not kept: {why}"),
        }
    }
}
