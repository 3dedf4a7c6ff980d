//! What a C function has to say: kept in bounded memory on the packet path, written out in the tick.

use std::io::Write;

/// Bytes of a line that are kept.
const LINE: usize = 240;
/// Lines kept between two ticks.
const LINES: usize = 32;
/// ns of the context's time per line, in the long run.
const PERIOD: u64 = 1_000_000_000 / 20;

/// The levels, from 0, as messages name them and as the parameter `log` spells them.
pub const LEVELS: &[&str] = &["error", "warning", "info", "debug"];

#[derive(Clone, Copy)]
struct Line {
    level: u8,
    len: u8,
    text: [u8; LINE],
}

/// A rate-limited log.
pub struct Log {
    /// Lines up to this level are kept.
    most: u32,
    lines: Box<[Line; LINES]>,
    kept: usize,
    /// Lines wanted and not kept since the last flush.
    suppressed: u64,
    /// Time of the context up to which lines are paid for.
    paid: u64,
}

impl Log {
    /// Make an empty log that keeps lines up to level `most`.
    pub fn new(most: u32) -> Log {
        let lines = Box::new([Line { level: 0, len: 0, text: [0; LINE] }; LINES]);
        Log { most, lines, kept: 0, suppressed: 0, paid: 0 }
    }

    /// Return whether a line would be kept; one that would not is counted.
    pub fn wants(&mut self, level: u32, now: u64) -> bool {
        if level > self.most {
            return false;
        }
        let room = self.kept < LINES && self.paid <= now.saturating_add(LINES as u64 * PERIOD);
        if !room {
            self.suppressed += 1;
        }
        room
    }

    /// Keep a line, cut to 240 bytes, if [`Self::wants`] it.
    pub fn add(&mut self, level: u32, now: u64, text: &[u8]) {
        if !self.wants(level, now) {
            return;
        }
        let len = text.len().min(LINE);
        let line = &mut self.lines[self.kept];
        line.text[..len].copy_from_slice(&text[..len]);
        (line.level, line.len) = (level as u8, len as u8);
        self.kept += 1;
        self.paid = self.paid.max(now) + PERIOD;
    }

    /// Return whether there is anything to write.
    pub fn is_silent(&self) -> bool {
        self.kept == 0 && self.suppressed == 0
    }

    /// Write all lines, each with the function's name. A log that cannot be written stops nothing.
    pub fn flush(&mut self, name: &str, out: &mut dyn Write) {
        for line in &self.lines[..self.kept] {
            let level = LEVELS.get(usize::from(line.level)).copied().unwrap_or("log");
            let text = String::from_utf8_lossy(&line.text[..usize::from(line.len)]);
            let shown: String = text.trim_end().chars().map(visible).collect();
            let _ = writeln!(out, "catena: {name}: {level}: {shown}");
        }
        if self.suppressed > 0 {
            let _ = writeln!(out, "catena: {name}: {} more lines suppressed", self.suppressed);
        }
        (self.kept, self.suppressed) = (0, 0);
    }
}

/// What comes from packets must not command a terminal: control characters become their Unicode pictures, or
/// the replacement character.
fn visible(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        0x80..0xa0 | 0x200e..=0x200f | 0x202a..=0x202e | 0x2066..=0x2069 => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(log: &mut Log) -> String {
        let mut out = Vec::new();
        log.flush("f", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_flood_is_counted_not_kept() {
        let mut log = Log::new(2);
        (0..100).for_each(|_| log.add(1, 1_000_000_000, b"x"));
        let out = flushed(&mut log);
        assert_eq!(out.lines().count(), 33);
        assert!(out.ends_with("catena: f: 68 more lines suppressed\n"), "{out}");
        // In the long run, twenty a second.
        let mut kept = 0;
        for ms in 1_001..11_000 {
            log.add(1, ms * 1_000_000, b"x");
            if log.kept == 1 {
                kept += 1;
            }
            flushed(&mut log);
        }
        assert!((195..240).contains(&kept), "{kept}");
    }

    #[test]
    fn levels_and_control_characters() {
        let mut log = Log::new(1);
        assert!(!log.wants(2, 1));
        log.add(3, 1, b"not this");
        assert!(log.is_silent());
        log.add(0, 1, b"a\x1b[2Jb\n");
        assert_eq!(flushed(&mut log), "catena: f: error: a\u{241b}[2Jb\n");
        log.add(0, 1, &[b'y'; 500]);
        assert_eq!(flushed(&mut log).len(), "catena: f: error: \n".len() + LINE);
    }
}
