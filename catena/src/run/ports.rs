//! What stands behind `--in` and `--out`.

use std::ffi::{CStr, CString};
use std::path::Path;

use catena_dataplane::generator::{Generator, Spec, Time};
use catena_dataplane::port::{CaptureIn, CaptureOut, PacketSocket, Sink, Stream};
use catena_dataplane::{Module, Source};
use catena_packet::pcap::{Container, Error, Format};

use crate::Failure;
use crate::arguments::RunOptions;
use crate::inode::Uses;

/// A port, as the command line names it.
#[derive(Clone, Debug)]
pub enum Port {
    /// A capture file that is read, or standard input.
    Capture(String),
    /// A capture file that is written, or standard output.
    Recording {
        /// Its name.
        path: String,
        /// Whether each packet has its logical clock as a comment.
        clocks: bool,
    },
    /// An interface of this machine.
    Interface(String),
    /// Generated traffic.
    Generator(Box<Spec>),
    /// Nowhere.
    Null,
}

/// The ports of a run.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where packets of side `in` come from, and where those that leave by it go to.
    pub inside: [Port; 2],
    /// The same for side `out`.
    pub outside: [Port; 2],
}

impl Ports {
    /// Read the options.
    ///
    /// # Errors
    /// What is wrong with an option.
    pub fn parse(options: &RunOptions) -> Result<Self, Failure> {
        let input = source(&options.input, "--in")?;
        let output = sink(&options.output, "--out")?;
        let back_in = match (&options.back_in, &output) {
            (Some(path), _) => Port::Capture(path.clone()),
            (None, Port::Interface(name)) => Port::Interface(name.clone()),
            (None, _) => Port::Null,
        };
        let back_out = match (&options.back_out, &input) {
            (Some(path), _) if is_nowhere(path) => Port::Null,
            (Some(path), _) => recording(path, "--back-out")?.ok_or_else(|| {
                format!("--back-out {path}: not the name of a capture (.pcap or .pcapng, also with .gz or .zst)")
            })?,
            (None, Port::Interface(name)) => Port::Interface(name.clone()),
            (None, _) => Port::Null,
        };
        if let (Port::Interface(from), Port::Interface(to)) = (&input, &output)
            && from == to
        {
            let (from, to) = (&options.input, &options.output);
            return Err(format!("--in {from}, --out {to}: one interface would take in again what it sends").into());
        }
        Ok(Ports { inside: [input, back_out], outside: [back_in, output] })
    }

    /// Add the captures to what the run reads and writes.
    ///
    /// # Errors
    /// When one would be written over another, or over something that is read.
    pub fn add_to(&self, uses: &mut Uses) -> Result<(), Failure> {
        for (option, port) in [("--in", &self.inside[0]), ("--back-in", &self.outside[0])] {
            if let Port::Capture(path) = port {
                uses.reads(option, Path::new(path))?;
            }
        }
        for (option, port) in [("--out", &self.outside[1]), ("--back-out", &self.inside[1])] {
            if let Port::Recording { path, .. } = port {
                uses.writes(option, Path::new(path))?;
            }
        }
        Ok(())
    }

    /// Return the names of the captures that are written.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        [&self.outside[1], &self.inside[1]].into_iter().filter_map(|port| match port {
            Port::Recording { path, .. } => Some(Path::new(path)),
            _ => None,
        })
    }

    /// Return the interfaces that are down: nothing comes from them or leaves by them until they are up.
    pub fn down(&self) -> Vec<&str> {
        let ports = self.inside.iter().chain(&self.outside);
        let interfaces = ports.filter_map(|port| if let Port::Interface(name) = port { Some(&**name) } else { None });
        let mut down: Vec<&str> = interfaces.filter(|name| is_down(name)).collect();
        down.dedup();
        down
    }

    /// Return which sides' packets come from an interface while others come from what has an end: the run ends with these.
    pub fn follow(&self) -> [bool; 2] {
        let sources = [&self.inside[0], &self.outside[0]];
        let has_end = sources.iter().any(|port| matches!(port, Port::Capture(_) | Port::Generator(_)));
        sources.map(|port| has_end && matches!(port, Port::Interface(_)))
    }

    /// Return which sides' packets come from an interface.
    pub fn live(&self) -> [bool; 2] {
        [&self.inside[0], &self.outside[0]].map(|port| matches!(port, Port::Interface(_)))
    }

    /// Return whether time must come from the wall: packets of an interface carry no other, and a generator on the
    /// wall's clock waits for it.
    pub fn is_live(&self) -> bool {
        [&self.inside[0], &self.outside[0]].into_iter().any(|port| match port {
            Port::Interface(_) => true,
            Port::Generator(spec) => spec.time == Time::Wall,
            Port::Capture(_) | Port::Recording { .. } | Port::Null => false,
        })
    }
}

impl Port {
    /// Check that packets come whenever they are asked for, as often as they are asked for.
    ///
    /// # Errors
    /// Why not.
    pub fn can_be_profiled(&self) -> Result<(), Failure> {
        match self {
            Port::Interface(name) => {
                Err(format!("--in {name}: packets of an interface come when they come; try a capture, or gen:").into())
            }
            Port::Capture(path) if path == "-" => Err("--in -: standard input comes once; try a file".into()),
            _ => Ok(()),
        }
    }
}

/// Open a source by its name.
///
/// # Errors
/// What cannot be opened.
pub fn open_source(text: &str) -> Result<Box<dyn Source>, String> {
    let opened = source(text, "--in").and_then(|port| {
        let file = file(&port, false)?;
        open(&[port, Port::Null], 0, file.as_ref())
    });
    let (source, _) = opened.map_err(|Failure(text)| text)?;
    source.ok_or_else(|| format!("{text}: nothing comes from there"))
}

/// Read the name of a source.
///
/// # Errors
/// What is wrong with it.
pub fn source(text: &str, option: &str) -> Result<Port, Failure> {
    if let Some(spec) = text.strip_prefix("gen:").or((text == "gen").then_some("")) {
        let spec = spec.parse::<Spec>().map_err(|error| format!("{option}: {error}"))?;
        return Ok(Port::Generator(Box::new(spec)));
    }
    if text == "-" || Path::new(text).is_file() {
        return Ok(Port::Capture(text.to_owned()));
    }
    if let Some(name) = interface(text) {
        return Ok(Port::Interface(name));
    }
    if Path::new(text).exists() {
        return Ok(Port::Capture(text.to_owned()));
    }
    Err(format!(
        "{option} {text}: neither a file nor an interface of this machine; try FILE.pcap, an interface, or gen:"
    )
    .into())
}

fn sink(text: &str, option: &str) -> Result<Port, Failure> {
    if is_nowhere(text) {
        return Ok(Port::Null);
    }
    if text != "-"
        && let Some(name) = interface(text)
    {
        return Ok(Port::Interface(name));
    }
    recording(text, option)?.ok_or_else(|| {
        format!(
            "{option} {text}: neither the name of a capture (.pcap or .pcapng, also with .gz or .zst) nor an interface \
             of this machine"
        )
        .into()
    })
}

/// Read the name of a capture to write, and what is asked of it behind a comma; `None` where it is no such name.
fn recording(text: &str, option: &str) -> Result<Option<Port>, Failure> {
    let format = |path: &str| Format::from_path(Path::new(path)).ok();
    // A file's own name may have commas in it.
    if format(text).is_some() {
        return Ok(Some(Port::Recording { path: text.to_owned(), clocks: false }));
    }
    let Some((path, asked)) = text.rsplit_once(',') else { return Ok(None) };
    match (format(path).map(|format| format.container), asked) {
        (None, _) => Ok(None),
        (Some(Container::Pcapng), "clocks") => Ok(Some(Port::Recording { path: path.to_owned(), clocks: true })),
        (Some(Container::Pcap), "clocks") => Err(format!(
            "{option} {text}: clocks are written as comments of packets, and pcap has none; try FILE.pcapng,clocks"
        )
        .into()),
        (Some(_), _) => Err(format!("{option} {text}: `{asked}` is no option of a capture; there is `clocks`").into()),
    }
}

fn is_nowhere(text: &str) -> bool {
    matches!(text, "null" | "/dev/null")
}

/// Return the name of the interface that `text` names: it may have alternative names, and is one interface all the same.
fn interface(text: &str) -> Option<String> {
    let name = CString::new(text).ok()?;
    // SAFETY: the name ends with a zero byte and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let mut room = [0; libc::IF_NAMESIZE];
    // SAFETY: the room is as large as the call asks for. For an index of nothing, 0 as well, it returns null.
    let named = unsafe { libc::if_indextoname(index, room.as_mut_ptr()) };
    if named.is_null() {
        return None;
    }
    // SAFETY: the call has written a name there, which ends with a zero byte.
    Some(unsafe { CStr::from_ptr(named) }.to_string_lossy().into_owned())
}

/// Return whether somebody has set an interface down; where the system does not say, nobody has.
fn is_down(name: &str) -> bool {
    const IFF_UP: u32 = 1;
    let flags = std::fs::read_to_string(Path::new("/sys/class/net").join(name).join("flags"));
    let flags = flags.ok().and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    flags.is_some_and(|flags| flags & IFF_UP == 0)
}

/// The open directions of a side: the source of its packets, if it has any, and the exit by which packets
/// leave.
pub type Opened = (Option<Box<dyn Source>>, Box<dyn Module>);

/// Open the file of a port that reads one. What several workers read does not change meanwhile: `stays` as it is.
///
/// # Errors
/// When it cannot be opened.
pub fn file(port: &Port, stays: bool) -> Result<Option<Stream>, Failure> {
    let Port::Capture(path) = port else { return Ok(None) };
    let failed = |source| Failure::from(format!("{path}: {}", Error::Open { path: path.into(), source }));
    let mut stream = Stream::open(Path::new(path)).map_err(failed)?;
    if stays {
        stream.stays_as_it_is().map_err(failed)?;
    }
    Ok(Some(stream))
}

/// Begin to read what a port reads that is no interface, from its `file`.
///
/// # Errors
/// When it cannot be read.
pub fn read(port: &Port, number: u16, file: Option<&Stream>) -> Result<Option<Box<dyn Source>>, Failure> {
    Ok(match (port, file) {
        (Port::Capture(path), Some(file)) => {
            let again = file.again().map_err(|error| format!("{path}: {error}"))?;
            Some(Box::new(CaptureIn::of(again, number).map_err(|error| format!("{path}: {error}"))?))
        }
        (Port::Generator(spec), _) => {
            Some(Box::new(Generator::new(spec).map_err(|(key, problem)| format!("--in gen: {key}: {problem:?}"))?))
        }
        _ => None,
    })
}

/// Open the two directions of a side. A capture that is written is only named: it is created when the run starts.
///
/// # Errors
/// What cannot be opened.
pub fn open([from, to]: &[Port; 2], number: u16, file: Option<&Stream>) -> Result<Opened, Failure> {
    if let (Port::Interface(a), Port::Interface(b)) = (from, to)
        && a == b
    {
        let (receive, send) = PacketSocket::new(a, number).open()?;
        return Ok((Some(Box::new(receive)), Box::new(send)));
    }
    let source = match from {
        Port::Interface(name) => Some(Box::new(PacketSocket::new(name, number).open()?.0) as Box<dyn Source>),
        _ => read(from, number, file)?,
    };
    let exit: Box<dyn Module> = match to {
        Port::Recording { path, clocks } => {
            let out = CaptureOut::at(path).map_err(|error| format!("{path}: {error}"))?;
            Box::new(if *clocks { out.with_clocks() } else { out })
        }
        Port::Interface(name) => Box::new(PacketSocket::new(name, number).open()?.1),
        Port::Null | Port::Capture(_) | Port::Generator(_) => Box::new(Sink),
    };
    Ok((source, exit))
}
