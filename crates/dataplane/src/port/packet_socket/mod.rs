//! Interfaces of this machine, through Linux's packet sockets (packet(7)).
//!
//! The sending side has a socket of its own, which receives nothing; what it sends, the receiving side
//! does not see. Interface names are those of the opening thread's network namespace; once open, both
//! sides work from any thread.

mod burst;
mod receive;
mod ring;
mod send;
mod sys;

use std::{error, fmt, io};

use libc::{SOL_PACKET, SOL_SOCKET};

pub use receive::PacketSocketIn;
use ring::Ring;
pub use send::PacketSocketOut;
use sys::Socket;

/// Bytes of frames that may wait for the receiving side because they are longer than its ring's slots:
/// about a hundred super-packets.
const RECEIVE_BYTES: i32 = 8 << 20;
/// Bytes that may be on their way out.
const SEND_BYTES: i32 = 4 << 20;

/// An interface to be opened.
#[derive(Clone, Debug)]
pub struct PacketSocket {
    interface: String,
    port: u16,
    bypass: bool,
}

impl PacketSocket {
    /// Name the interface; packets from it get `port` as their input port.
    pub fn new(interface: &str, port: u16) -> Self {
        PacketSocket { interface: interface.to_owned(), port, bypass: false }
    }

    /// Send past the interface's queueing discipline: no traffic control applies, and a full device queue
    /// drops at once. It saves little, and nothing where there is no discipline, as on veth.
    #[must_use]
    pub fn bypass_queueing(mut self) -> Self {
        self.bypass = true;
        self
    }

    /// Open both directions.
    ///
    /// # Errors
    /// No such interface, no permission (`CAP_NET_RAW`), not an Ethernet interface, or the system's.
    pub fn open(&self) -> Result<(PacketSocketIn, PacketSocketOut), PacketSocketError> {
        let index = self.index()?;
        Ok((self.receiving(index, None)?.0, self.sending(index)?))
    }

    /// Open both directions once for each of `workers`, so that each flow's packets, in both directions of
    /// the flow, come to the same one.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_shared(&self, workers: usize) -> Result<Vec<(PacketSocketIn, PacketSocketOut)>, PacketSocketError> {
        let index = self.index()?;
        let mut group = Fanout::New;
        let mut opened = Vec::with_capacity(workers);
        for _ in 0..workers {
            let (receiving, joined) = self.receiving(index, Some(group))?;
            group = joined.map_or(group, Fanout::Join);
            opened.push((receiving, self.sending(index)?));
        }
        Ok(opened)
    }

    fn index(&self) -> Result<u32, PacketSocketError> {
        sys::interface_index(&self.interface).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => self.fails(Cause::NoInterface),
            _ => self.fails(Cause::System { step: "look it up", source }),
        })
    }

    fn receiving(
        &self,
        index: u32,
        fanout: Option<Fanout>,
    ) -> Result<(PacketSocketIn, Option<u16>), PacketSocketError> {
        let socket = self.socket()?;
        let set = |option, value, step| socket.set(SOL_PACKET, option, value).map_err(|e| self.system(step, e));
        set(libc::PACKET_VNET_HDR, 1, "ask for offload headers")?;
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32, "ask for its ring's version")?;
        set(libc::PACKET_COPY_THRESH, 1, "ask for long frames")?;
        set(libc::PACKET_IGNORE_OUTGOING, 1, "leave out what is sent (Linux 4.20 or later can)")?;
        // Beyond the system's limit with CAP_NET_ADMIN, up to it without.
        let _ = socket
            .set(SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)
            .or_else(|_| socket.set(SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BYTES));
        let ring = Ring::map(&socket).map_err(|e| self.system("set up a ring for its frames", e))?;
        socket.bind(index, libc::ETH_P_ALL as u16).map_err(|e| self.system("bind to it", e))?;
        match socket.hardware().map_err(|e| self.system("look at it", e))? {
            Some(libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) => {}
            Some(_) => return Err(self.fails(Cause::NotEthernet)),
            None => return Err(self.fails(Cause::NoInterface)),
        }
        socket.be_promiscuous(index).map_err(|e| self.system("make it promiscuous", e))?;
        let mut group = None;
        if let Some(fanout) = fanout {
            set(libc::PACKET_FANOUT, fanout.value(), "share it among workers")?;
            group = Some(socket.fanout_group().map_err(|e| self.system("share it among workers", e))?);
        }
        Ok((PacketSocketIn::new(socket, ring, &self.interface, self.port), group))
    }

    fn sending(&self, index: u32) -> Result<PacketSocketOut, PacketSocketError> {
        let socket = self.socket()?;
        if self.bypass {
            let bypass = socket.set(SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1);
            bypass.map_err(|e| self.system("bypass its queueing", e))?;
        }
        let _ = socket
            .set(SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BYTES)
            .or_else(|_| socket.set(SOL_SOCKET, libc::SO_SNDBUF, SEND_BYTES));
        socket.bind(index, 0).map_err(|e| self.system("bind to it", e))?;
        Ok(PacketSocketOut::new(socket))
    }

    fn socket(&self) -> Result<Socket, PacketSocketError> {
        Socket::open().map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => self.fails(Cause::NotPermitted),
            _ => self.system("open a packet socket", source),
        })
    }

    fn system(&self, step: &'static str, source: io::Error) -> PacketSocketError {
        self.fails(Cause::System { step, source })
    }

    fn fails(&self, cause: Cause) -> PacketSocketError {
        PacketSocketError { interface: self.interface.clone(), cause }
    }
}

/// The group of sockets among which an interface's flows are shared.
#[derive(Clone, Copy)]
enum Fanout {
    /// A fresh one.
    New,
    /// The one with this number.
    Join(u16),
}

impl Fanout {
    /// Return the option's value: the number below, above it how to share: by the symmetric hash of the
    /// flow.
    fn value(self) -> i32 {
        let (group, flags) = match self {
            Fanout::New => (0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
            Fanout::Join(group) => (group, 0),
        };
        (((libc::PACKET_FANOUT_HASH | flags) << 16) | u32::from(group)) as i32
    }
}

/// Why an interface cannot be opened.
#[derive(Debug)]
pub struct PacketSocketError {
    /// Which interface.
    pub interface: String,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong with an interface that cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// There is none of this name here.
    NoInterface,
    /// The process lacks the capability `CAP_NET_RAW`.
    NotPermitted,
    /// Its frames do not begin with an Ethernet header.
    NotEthernet,
    /// The system refused.
    System {
        /// What was tried.
        step: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for PacketSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.interface;
        match &self.cause {
            Cause::NoInterface => write!(f, "there is no interface {name} here"),
            Cause::NotPermitted => write!(
                f,
                "interface {name} may not be opened without the capability CAP_NET_RAW: run as root, or give it to \
                 the program (setcap cap_net_raw,cap_net_admin+ep)"
            ),
            Cause::NotEthernet => write!(f, "interface {name} is not an Ethernet interface"),
            Cause::System { step, source } => write!(f, "interface {name}: cannot {step}: {source}"),
        }
    }
}

impl error::Error for PacketSocketError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.cause {
            Cause::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
