//! The formats that can be written, and which one a file's name asks for.

use std::path::Path;

use super::Error;

/// How records are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// pcap with times in nanoseconds (magic `a1b23c4d`), which tcpdump (since 2013), tshark,
    /// Wireshark, Zeek and Suricata read as they read the older microseconds. One link type.
    Pcap,
    /// pcapng with times in nanoseconds (`if_tsresol` 9) and one interface for each link type.
    Pcapng,
}

/// How the file is compressed as a whole. The readers above read both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip at its fastest level: any tool reads it.
    Gzip,
    /// zstd at its default level: smaller than gzip and several times as fast.
    Zstd,
}

/// A container and its compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// How records are laid out.
    pub container: Container,
    /// How the file is compressed.
    pub compression: Compression,
}

impl Format {
    /// Plain pcap: what a pipe gets.
    pub const PCAP: Format = Format { container: Container::Pcap, compression: Compression::None };

    /// Plain pcapng.
    pub const PCAPNG: Format = Format { container: Container::Pcapng, compression: Compression::None };

    /// The format that `path` asks for: `.pcap` (also `.cap`, `.dmp`) or `.pcapng` (also `.ntar`),
    /// then `.gz`, `.zst` or neither, in any case of letters; `-` is plain pcap.
    ///
    /// # Errors
    /// [`Error::UnknownSuffix`] for any other name.
    pub fn from_path(path: &Path) -> Result<Format, Error> {
        if path == Path::new("-") {
            return Ok(Format::PCAP);
        }
        let unknown = || Error::UnknownSuffix { path: path.to_owned() };
        let name = path.file_name().ok_or_else(unknown)?;
        let name = name.to_string_lossy().to_ascii_lowercase();
        let (name, compression) = if let Some(inner) = name.strip_suffix(".gz") {
            (inner, Compression::Gzip)
        } else if let Some(inner) = name.strip_suffix(".zst") {
            (inner, Compression::Zstd)
        } else {
            (&name[..], Compression::None)
        };
        let container = match name.rsplit_once('.') {
            Some((_, "pcap" | "cap" | "dmp")) => Container::Pcap,
            Some((_, "pcapng" | "ntar")) => Container::Pcapng,
            _ => return Err(unknown()),
        };
        Ok(Format { container, compression })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format() {
        use Compression as By;
        for (name, container, compression) in [
            ("a.pcap", Container::Pcap, By::None),
            ("dir.gz/a.b.PCAP", Container::Pcap, By::None),
            ("a.pcap.gz", Container::Pcap, By::Gzip),
            ("a.cap.zst", Container::Pcap, By::Zstd),
            ("a.pcapng", Container::Pcapng, By::None),
            ("a.pcapng.GZ", Container::Pcapng, By::Gzip),
            ("a.pcapng.zst", Container::Pcapng, By::Zstd),
            ("-", Container::Pcap, By::None),
        ] {
            let expected = Format { container, compression };
            assert_eq!(Format::from_path(Path::new(name)).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn a_name_that_tells_none_is_refused() {
        for name in ["a", "a.txt", "a.gz", "pcap", "a.pcap.bz2", "..", ""] {
            let error = Format::from_path(Path::new(name)).unwrap_err();
            assert!(matches!(error, Error::UnknownSuffix { .. }), "{name}");
        }
    }
}
