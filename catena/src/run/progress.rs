//! The progress line of long runs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::table::thousands;

/// A progress line on standard error, shown where that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Make the line.
    pub fn new(hidden: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        if hidden {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Show how far the run is.
    pub fn show(&self, packets: u64, elapsed: Duration) {
        let rate = packets as f64 / elapsed.as_secs_f64().max(1e-9);
        self.0.set_message(format!(
            "{} packets, {:.2} Mpps, {:.1} s (Ctrl-C closes the files and prints the table)",
            thousands(packets),
            rate / 1e6,
            elapsed.as_secs_f64()
        ));
        self.0.tick();
    }

    /// Take the line away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
