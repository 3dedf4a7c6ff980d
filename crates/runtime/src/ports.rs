//! What packets come from and go to: captures, interfaces, a generator, and what the embedder made.

use std::fmt;
use std::path::Path;

use catena_dataplane::generator::{Generator, Spec, Time};
use catena_dataplane::port::{CaptureIn, CaptureOut, PacketSocket, Sink, Stream};
use catena_dataplane::{Module, Source};
use catena_packet::pcap::{Container, Error, Format};

use crate::Failure;
use crate::inode::Uses;
use crate::interface::{self, is_down};
use crate::names::Names;

/// Where packets come from, or where they go to.
#[derive(Debug)]
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
    /// A source that the embedder made; several workers get its packets from the first one.
    Source {
        /// What gives the packets.
        source: Given<dyn Source>,
        /// Whether they are there as fast as they are asked for, with times of their own.
        is_recorded: bool,
    },
    /// Where packets leave, as the embedder made it.
    Exit(Given<dyn Module>),
    /// Nowhere: packets are counted and discarded, and none come.
    Null,
}

/// What the embedder made, until it is taken into a pipeline.
pub struct Given<T: ?Sized>(Option<Box<T>>);

impl<T: ?Sized> fmt::Debug for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "given" } else { "taken" })
    }
}

/// The ports of a run.
#[derive(Debug)]
pub struct Ports {
    /// Where packets of side `in` come from, and where those that leave by it go to.
    pub inside: [Port; 2],
    /// The same for side `out`.
    pub outside: [Port; 2],
}

impl Ports {
    /// Take packets from `input` to `output`. An interface is both on its side: replies leave by `input`, and what comes in by
    /// `output` takes the chains' return direction.
    pub fn between(input: Port, output: Port) -> Ports {
        let (back_out, back_in) = (input.other_way(), output.other_way());
        Ports { inside: [input, back_out], outside: [back_in, output] }
    }

    /// Check that no interface takes in what it sends.
    ///
    /// # Errors
    /// That one would.
    pub fn check(&self, names: &Names) -> Result<(), Failure> {
        match [&self.inside[0], &self.outside[1]] {
            [Port::Interface(from), Port::Interface(to)] if from == to => Err(format!(
                "{} {from}, {} {to}: one interface would take in again what it sends",
                names.sources[0], names.exits[1]
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Add the captures to what the run reads and writes.
    ///
    /// # Errors
    /// When one would be written over another, or over something that is read.
    pub fn add_to(&self, uses: &mut Uses, names: &Names) -> Result<(), Failure> {
        for (name, port) in names.sources.iter().zip([&self.inside[0], &self.outside[0]]) {
            if let Port::Capture(path) = port {
                uses.reads(name, Path::new(path))?;
            }
        }
        for side in [1, 0] {
            if let Port::Recording { path, .. } = [&self.inside[1], &self.outside[1]][side] {
                uses.writes(names.exits[side], Path::new(path))?;
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
    pub(crate) fn follow(&self) -> [bool; 2] {
        let sources = [&self.inside[0], &self.outside[0]];
        let has_end = sources
            .iter()
            .any(|port| matches!(port, Port::Capture(_) | Port::Generator(_) | Port::Source { is_recorded: true, .. }));
        sources.map(|port| has_end && matches!(port, Port::Interface(_)))
    }

    /// Return which sides' packets come from an interface.
    pub(crate) fn live(&self) -> [bool; 2] {
        [&self.inside[0], &self.outside[0]].map(|port| matches!(port, Port::Interface(_)))
    }

    /// Return whether time must come from the wall: packets of an interface carry no other, and a generator on the
    /// wall's clock waits for it.
    pub fn is_live(&self) -> bool {
        [&self.inside[0], &self.outside[0]].into_iter().any(|port| match port {
            Port::Interface(_) => true,
            Port::Generator(spec) => spec.time == Time::Wall,
            Port::Source { is_recorded, .. } => !is_recorded,
            Port::Capture(_) | Port::Recording { .. } | Port::Exit(_) | Port::Null => false,
        })
    }

    /// Return whether packets come from anywhere.
    pub fn have_source(&self) -> bool {
        ![&self.inside[0], &self.outside[0]].into_iter().all(|port| matches!(port, Port::Null))
    }

    /// Return whether each of several workers can read all for itself: what the embedder made is there once.
    pub(crate) fn can_be_read_by_all(&self) -> bool {
        ![&self.inside[0], &self.outside[0]].into_iter().any(|port| matches!(port, Port::Source { .. }))
    }
}

impl Port {
    /// Read the name of what packets come from; `what` is what the user calls the port, such as `--in`.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn source(text: &str, what: &str) -> Result<Port, Failure> {
        if let Some(spec) = text.strip_prefix("gen:").or((text == "gen").then_some("")) {
            let spec = spec.parse::<Spec>().map_err(|error| format!("{what}: {error}"))?;
            return Ok(Port::Generator(Box::new(spec)));
        }
        if text == "-" || Path::new(text).is_file() {
            return Ok(Port::Capture(text.to_owned()));
        }
        if let Some(name) = interface::named(text) {
            return Ok(Port::Interface(name));
        }
        if Path::new(text).exists() {
            return Ok(Port::Capture(text.to_owned()));
        }
        Err(format!(
            "{what} {text}: neither a file nor an interface of this machine; try FILE.pcap, an interface, or gen:"
        )
        .into())
    }

    /// Read the name of what packets go to, as [`Port::source`] does of what they come from.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn exit(text: &str, what: &str) -> Result<Port, Failure> {
        if is_nowhere(text) {
            return Ok(Port::Null);
        }
        if text != "-"
            && let Some(name) = interface::named(text)
        {
            return Ok(Port::Interface(name));
        }
        recording(text, what)?.ok_or_else(|| {
            format!(
                "{what} {text}: neither the name of a capture (.pcap or .pcapng, also with .gz or .zst) nor an interface \
                 of this machine"
            )
            .into()
        })
    }

    /// Read the name of a capture to write, or of nowhere.
    ///
    /// # Errors
    /// That it names something else.
    pub fn capture_out(text: &str, what: &str) -> Result<Port, Failure> {
        if is_nowhere(text) {
            return Ok(Port::Null);
        }
        recording(text, what)?.ok_or_else(|| {
            format!("{what} {text}: not the name of a capture (.pcap or .pcapng, also with .gz or .zst)").into()
        })
    }

    /// Take packets from a source that the embedder made.
    pub fn from_source(source: Box<dyn Source>) -> Port {
        let is_recorded = source.is_recorded();
        Port::Source { source: Given(Some(source)), is_recorded }
    }

    /// Let packets leave by a module that the embedder made; it says that it [is an exit](Module::is_exit).
    pub fn to_module(exit: Box<dyn Module>) -> Port {
        Port::Exit(Given(Some(exit)))
    }

    /// What the other way by this port is: an interface has two.
    pub fn other_way(&self) -> Port {
        match self {
            Port::Interface(name) => Port::Interface(name.clone()),
            _ => Port::Null,
        }
    }

    /// Open what packets come from to try it, beside any run; `what` is what the user calls it.
    ///
    /// # Errors
    /// What is wrong with the name, or cannot be opened.
    pub fn open_source(text: &str, what: &str) -> Result<Box<dyn Source>, Failure> {
        let port = Port::source(text, what)?;
        let file = file(&port, false)?;
        let (source, _) = open(&mut [port, Port::Null], 0, file.as_ref())?;
        source.ok_or_else(|| format!("{text}: nothing comes from there").into())
    }
}

/// Read the name of a capture to write, and what is asked of it behind a comma; `None` where it is no such name.
fn recording(text: &str, what: &str) -> Result<Option<Port>, Failure> {
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
            "{what} {text}: clocks are written as comments of packets, and pcap has none; try FILE.pcapng,clocks"
        )
        .into()),
        (Some(_), _) => Err(format!("{what} {text}: `{asked}` is no option of a capture; there is `clocks`").into()),
    }
}

fn is_nowhere(text: &str) -> bool {
    matches!(text, "null" | "/dev/null")
}

/// The open directions of a side: the source of its packets, if it has any, and the exit by which packets
/// leave.
pub(crate) type Opened = (Option<Box<dyn Source>>, Box<dyn Module>);

/// Open the file of a port that reads one. What several workers read does not change meanwhile: `stays` as it is.
///
/// # Errors
/// When it cannot be opened.
pub(crate) fn file(port: &Port, stays: bool) -> Result<Option<Stream>, Failure> {
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
pub(crate) fn read(port: &Port, number: u16, file: Option<&Stream>) -> Result<Option<Box<dyn Source>>, Failure> {
    Ok(match (port, file) {
        (Port::Capture(path), Some(file)) => {
            let again = file.again().map_err(|error| format!("{path}: {error}"))?;
            Some(Box::new(CaptureIn::of(again, number).map_err(|error| format!("{path}: {error}"))?))
        }
        (Port::Generator(spec), _) => {
            Some(Box::new(Generator::new(spec).map_err(|(key, problem)| format!("gen: {key}: {problem:?}"))?))
        }
        _ => None,
    })
}

/// Open the two directions of a side. A capture that is written is only named: it is created when the run starts.
///
/// # Errors
/// What cannot be opened.
pub(crate) fn open([from, to]: &mut [Port; 2], number: u16, file: Option<&Stream>) -> Result<Opened, Failure> {
    if let (Port::Interface(a), Port::Interface(b)) = (&*from, &*to)
        && a == b
    {
        let (receive, send) = PacketSocket::new(a, number).open()?;
        return Ok((Some(Box::new(receive)), Box::new(send)));
    }
    let source = match from {
        Port::Interface(name) => Some(Box::new(PacketSocket::new(name, number).open()?.0) as Box<dyn Source>),
        Port::Source { source, .. } => source.0.take(),
        _ => read(from, number, file)?,
    };
    let exit: Box<dyn Module> = match to {
        Port::Recording { path, clocks } => {
            let out = CaptureOut::at(&**path).map_err(|error| format!("{path}: {error}"))?;
            Box::new(if *clocks { out.with_clocks() } else { out })
        }
        Port::Interface(name) => Box::new(PacketSocket::new(name, number).open()?.1),
        Port::Exit(exit) => exit.0.take().unwrap_or_else(|| Box::new(Sink)),
        Port::Null | Port::Capture(_) | Port::Generator(_) | Port::Source { .. } => Box::new(Sink),
    };
    Ok((source, exit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_both_ways_and_a_capture_one() {
        let ports =
            Ports::between(Port::Interface("a".to_owned()), Port::Recording { path: "b".to_owned(), clocks: false });
        assert!(matches!(&ports.inside, [Port::Interface(from), Port::Interface(to)] if from == to));
        assert!(matches!(&ports.outside, [Port::Null, Port::Recording { .. }]));
        assert!(ports.is_live() && ports.check(&Names::default()).is_ok());
        let turned = Ports::between(Port::Interface("a".to_owned()), Port::Interface("a".to_owned()));
        let why = turned.check(&Names::default()).expect_err("it would go round").to_string();
        assert_eq!(why, "inside a, outside a: one interface would take in again what it sends");
    }

    #[test]
    fn names_of_ports_are_read() {
        assert!(matches!(Port::source("gen:count=3", "in"), Ok(Port::Generator(spec)) if spec.count == Some(3)));
        assert!(matches!(Port::source("-", "in"), Ok(Port::Capture(path)) if path == "-"));
        assert!(matches!(Port::exit("null", "out"), Ok(Port::Null)));
        let clocks = Port::exit("a,b.pcapng,clocks", "out");
        assert!(matches!(clocks, Ok(Port::Recording { path, clocks: true }) if path == "a,b.pcapng"));
        let wrong = |port: Result<Port, Failure>| port.expect_err("it is no port").to_string();
        assert!(wrong(Port::source("none.pcap", "in")).starts_with("in none.pcap: neither a file nor an interface"));
        assert!(wrong(Port::exit("none.txt", "out")).starts_with("out none.txt: neither the name of a capture"));
        assert!(wrong(Port::capture_out("lo", "back")).starts_with("back lo: not the name of a capture"));
    }
}
