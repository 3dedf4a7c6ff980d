//! What went wrong, in words for whoever gave what is wrong.

use std::fmt;

use catena_compile::BuildError;
use catena_compile::backend::Unlowered;
use catena_compile::tasks::NotThere;
use catena_dataplane::port::PacketSocketError;
use catena_packet::clock::TooManySources;

/// What went wrong, as one sentence for people: it names the file, port or function, and often what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// Say what went wrong.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Failure(message.to_owned())
    }
}

/// Errors of the crates below, which are messages already.
macro_rules! from {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure(error.to_string())
            }
        })*
    };
}

from!(std::io::Error, PacketSocketError, TooManySources, BuildError, NotThere, Unlowered);
