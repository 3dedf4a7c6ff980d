//! A port whose packets a plan is to reckon with: what bringing them in costs differs from port to port.

use std::fmt;
use std::sync::Arc;

use catena_dataplane::{Context, Pulled, Source};
use catena_packet::Batch;

/// Opens a port.
pub type Open = Arc<dyn Fn() -> Result<Box<dyn Source>, String> + Send + Sync>;

/// A port, by the name that the command line has for it.
#[derive(Clone)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// How to open it.
    pub open: Open,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Port").field(&self.name).finish()
    }
}

impl Port {
    /// Open the port for good: where its packets end, they begin anew.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn source(&self) -> Result<Box<dyn Source>, String> {
        Ok(Box::new(Anew { open: self.open.clone(), now: (self.open)()? }))
    }
}

struct Anew {
    open: Open,
    now: Box<dyn Source>,
}

impl Source for Anew {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        match self.now.pull(cx, batch) {
            Pulled::Done => match (self.open)() {
                Ok(again) => {
                    self.now = again;
                    Pulled::More
                }
                Err(_) => Pulled::Done,
            },
            pulled => pulled,
        }
    }
}
