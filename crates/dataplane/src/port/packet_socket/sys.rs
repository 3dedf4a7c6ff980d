//! Packet sockets as the system has them (packet(7)): opening, binding, options.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, socklen_t};

/// A packet socket for whole frames.
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Open a socket that receives nothing until it is bound to a protocol.
    pub(super) fn open() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is fresh, and nobody else has it.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Bind to an interface; frames of `protocol` (an EtherType, `ETH_P_ALL`; 0 for none) come in from
    /// now on.
    pub(super) fn bind(&self, interface: u32, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.to_be(),
            sll_ifindex: interface as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the address is a whole `sockaddr_ll` of the length given.
        check(unsafe { libc::bind(self.fd(), (&raw const address).cast(), length_of::<libc::sockaddr_ll>()) })
    }

    /// Return the hardware type (ARPHRD) of the interface that the socket is bound to; `None` when that
    /// interface is gone.
    pub(super) fn hardware(&self) -> io::Result<Option<u16>> {
        // SAFETY: an all-zero `sockaddr_ll` is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = length_of::<libc::sockaddr_ll>();
        // SAFETY: the address has room for the length given.
        check(unsafe { libc::getsockname(self.fd(), (&raw mut address).cast(), &raw mut length) })?;
        Ok((address.sll_ifindex > 0).then_some(address.sll_hatype))
    }

    /// Set an option to a number.
    pub(super) fn set(&self, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
        let (value, length) = ((&raw const value).cast(), length_of::<c_int>());
        // SAFETY: the value has the length given.
        check(unsafe { libc::setsockopt(self.fd(), level, option, value, length) })
    }

    /// Set an option of the packet level to a structure that is the system's own.
    fn set_structure<T: Copy>(&self, option: c_int, value: &T) -> io::Result<()> {
        let value = (value as *const T).cast::<c_void>();
        // SAFETY: the value has the length given.
        check(unsafe { libc::setsockopt(self.fd(), libc::SOL_PACKET, option, value, length_of::<T>()) })
    }

    /// Ask for a ring for received frames.
    pub(super) fn set_ring(&self, request: &libc::tpacket_req) -> io::Result<()> {
        self.set_structure(libc::PACKET_RX_RING, request)
    }

    /// See frames for all addresses, as long as the socket is open.
    pub(super) fn be_promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_structure(libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Return how many frames found no room in the socket's buffer since the last call.
    pub(super) fn dropped(&self) -> io::Result<u32> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        self.get(libc::PACKET_STATISTICS, &mut stats)?;
        Ok(stats.tp_drops)
    }

    /// Return the number of the fanout group that the socket has joined.
    pub(super) fn fanout_group(&self) -> io::Result<u16> {
        let mut fanout: c_int = 0;
        self.get(libc::PACKET_FANOUT, &mut fanout)?;
        Ok(fanout as u16)
    }

    /// Read an option of the packet level into `value`, a plain structure for which any bytes are valid.
    fn get<T: Plain>(&self, option: c_int, value: &mut T) -> io::Result<()> {
        let mut length = length_of::<T>();
        let value = (value as *mut T).cast();
        // SAFETY: the value has room for the length given, and any bytes are valid for it.
        check(unsafe { libc::getsockopt(self.fd(), libc::SOL_PACKET, option, value, &raw mut length) })
    }
}

/// Types for which any bytes are a value.
trait Plain: Copy {}
impl Plain for c_int {}
impl Plain for libc::tpacket_stats {}

/// Return the number of an interface in this thread's network namespace.
pub(super) fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the name ends with a zero byte.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

fn length_of<T>() -> socklen_t {
    size_of::<T>() as socklen_t
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
