//! What a run has to say before it ends, and to whom.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::Failure;

/// Something worth knowing that is no failure; its [`Display`](fmt::Display) is a line for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// Nobody has opened a pipe to read it for a second, and the run waits for that: what the pipe is called.
    NoReader(String),
    /// A file of another run with more workers, which this run does not write.
    LeftAsItWas(PathBuf),
    /// An interface that is down: no packet passes it.
    Down(String),
    /// The machine is not thought to carry all that is promised, and its plan holds a part of it.
    Less {
        /// Workers that were planned for.
        workers: u32,
        /// Of each promised rate, 0 to 1.
        part: f64,
    },
    /// No plan holds all that a file promises, and not a part of its rates either; the run goes by the one that was found.
    NotAll {
        /// Its name.
        file: String,
        /// What is not held.
        why: Failure,
    },
    /// What a file promises is held by no plan.
    NothingHolds {
        /// Its name.
        file: String,
        /// Why.
        why: Failure,
    },
    /// A file is run without a plan.
    Unplanned {
        /// Its name.
        file: String,
        /// Why.
        why: Failure,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoReader(name) => write!(f, "waiting for somebody to read {name}"),
            Note::LeftAsItWas(path) => {
                write!(f, "{} is left as it was: this run has not as many workers", path.display())
            }
            Note::Down(name) => write!(f, "interface {name} is down: no packet passes it until it is up"),
            Note::Less { workers, part } => write!(
                f,
                "the promised rates are more than what {workers} of this machine's cores are thought to carry; {}% of each is held",
                100.0 * part
            ),
            Note::NotAll { file, why } => write!(f, "not all that {file} promises is held: {why}"),
            Note::NothingHolds { file, why } => write!(f, "what {file} promises is held by nothing: {why}"),
            Note::Unplanned { file, why } => write!(f, "{file} is run without a plan: {why}"),
        }
    }
}

/// In JSON it is the line for people.
impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Who is told, and who says whether a run that waits to begin shall end instead.
#[derive(Clone, Copy)]
pub(crate) struct Listener<'a> {
    /// Is told.
    pub(crate) tell: &'a dyn Fn(&Note),
    /// Says whether the run shall end: asked while it waits for a reader of a pipe.
    pub(crate) over: &'a dyn Fn() -> bool,
}
