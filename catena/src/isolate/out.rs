//! Standard output and standard error of who enforces, each written by a thread of its own: a pipe that nobody empties must not hold
//! quotas up.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::streams::{failure, tell, write_text};

/// So many messages wait for who reads standard error: more than one step has.
const MESSAGES: usize = 64;
/// How long the end waits for what was printed last.
const LAST: Duration = Duration::from_secs(1);

/// Prints one text after the other.
pub struct Out {
    texts: Option<SyncSender<String>>,
    thread: JoinHandle<io::Result<()>>,
    lost: u64,
}

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Printed {
    /// It goes out, after so many that did not.
    After(u64),
    /// The one before has not gone out yet: this one does not.
    Lost,
    /// Nobody reads any more.
    Closed,
}

impl Out {
    /// Begin with standard output: one text is written, and one waits.
    pub fn start() -> Out {
        Out::to(1, write_text)
    }

    /// Begin with standard error, whose errors nobody can be told.
    pub fn messages() -> Out {
        Out::to(MESSAGES, |message| {
            tell(message);
            Ok(())
        })
    }

    fn to(wait: usize, mut write: impl FnMut(&str) -> io::Result<()> + Send + 'static) -> Out {
        let (texts, next) = sync_channel::<String>(wait);
        let thread = thread::spawn(move || next.iter().try_for_each(|text| write(&text)));
        Out { texts: Some(texts), thread, lost: 0 }
    }

    /// Print a text, if those before it have gone out or are about to.
    ///
    /// # Errors
    /// What could not be written before.
    pub fn print(&mut self, text: String) -> Result<Printed, Failure> {
        let sent = self.texts.as_ref().map(|texts| texts.try_send(text));
        match sent {
            Some(Ok(())) => Ok(Printed::After(std::mem::take(&mut self.lost))),
            Some(Err(TrySendError::Full(_))) => {
                self.lost += 1;
                Ok(Printed::Lost)
            }
            Some(Err(TrySendError::Disconnected(_))) | None => self.end(),
        }
    }

    /// Wait, not for long, until all has gone out.
    ///
    /// # Errors
    /// What could not be written.
    pub fn end(&mut self) -> Result<Printed, Failure> {
        self.texts = None;
        let end = Instant::now() + LAST;
        while !self.thread.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        if !self.thread.is_finished() {
            // Whoever stopped reading does not want it.
            return Ok(Printed::Lost);
        }
        let thread = std::mem::replace(&mut self.thread, thread::spawn(|| Ok(())));
        match thread.join() {
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Printed::Closed),
            Ok(Err(error)) => Err(failure(&error)),
            _ => Ok(Printed::After(self.lost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn told(printed: Result<Printed, Failure>) -> Printed {
        printed.unwrap_or_else(|Failure(message)| panic!("{message}"))
    }

    #[test]
    fn who_reads_slowly_loses_texts_and_holds_nobody_up() {
        let ((read, reads), (begin, begun)) = (channel::<()>(), channel::<()>());
        let (wrote, written) = channel();
        let mut out = Out::to(1, move |text| {
            begin.send(()).map_err(io::Error::other)?;
            reads.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            wrote.send(text.to_owned()).map_err(io::Error::other)
        });
        // Nobody reads: the first is being written, the second waits.
        assert_eq!(told(out.print("0".to_owned())), Printed::After(0));
        begun.recv().unwrap();
        assert_eq!(told(out.print("1".to_owned())), Printed::After(0));
        assert_eq!([(); 2].map(|()| told(out.print("lost".to_owned()))), [Printed::Lost, Printed::Lost]);
        [(); 2].iter().for_each(|()| read.send(()).unwrap());
        assert_eq!([(); 2].map(|()| written.recv().unwrap()), ["0", "1"]);
        assert_eq!(told(out.print("2".to_owned())), Printed::After(2));
        // And then the reader closes.
        drop(read);
        assert_eq!(told(out.end()), Printed::Closed);
    }
}
