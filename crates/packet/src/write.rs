//! Writing of which it is known how far it came: what a full disk did not take can be counted.

use std::io::{self, ErrorKind, Write};

/// Write all bytes from `taken` on, and add to it those that the sink took, also when it does not take all.
///
/// # Errors
/// The sink's, but for interruptions; [`ErrorKind::WriteZero`] when it takes nothing more.
pub fn write_all(sink: &mut impl Write, bytes: &[u8], taken: &mut usize) -> io::Result<()> {
    while *taken < bytes.len() {
        match sink.write(&bytes[*taken..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(more) => *taken += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes two bytes at a time, every other time after an interruption, and has room for five.
    #[derive(Default)]
    struct Narrow {
        kept: Vec<u8>,
        calls: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls % 2 == 1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let more = bytes.len().min(2).min(5 - self.kept.len());
            self.kept.extend(&bytes[..more]);
            Ok(more)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn it_is_known_how_far_it_came() {
        let (mut sink, mut taken) = (Narrow::default(), 0);
        assert!(write_all(&mut sink, b"abc", &mut taken).is_ok());
        assert_eq!((taken, &*sink.kept), (3, &b"abc"[..]));
        taken = 1;
        let error = write_all(&mut sink, b"-defg", &mut taken).unwrap_err();
        assert_eq!((error.kind(), taken, &*sink.kept), (ErrorKind::WriteZero, 3, &b"abcde"[..]));
    }
}
