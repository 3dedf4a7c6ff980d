//! What a run has to say before it ends, and to whom.

use std::fmt;
use std::path::PathBuf;

/// Something worth knowing that is no failure; its [`Display`](fmt::Display) is a line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Nobody has opened a pipe to read it for a second, and the run waits for that: what the pipe is called.
    NoReader(String),
    /// A file of another run with more workers, which this run does not write.
    LeftAsItWas(PathBuf),
    /// An interface that is down: no packet passes it.
    Down(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoReader(name) => write!(f, "waiting for somebody to read {name}"),
            Note::LeftAsItWas(path) => {
                write!(f, "{} is left as it was: this run has not as many workers", path.display())
            }
            Note::Down(name) => write!(f, "interface {name} is down: no packet passes it until it is up"),
        }
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
