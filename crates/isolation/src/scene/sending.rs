//! What a process of a scene does that sends.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use super::actor::{LARGEST, TOLD, ready};
use super::pace::Pace;

/// A sender that follows a receiver is ahead of what that has told by so many datagrams: fewer than its socket holds.
const AHEAD: u64 = 2 * TOLD;
/// What is not received so long after it was sent is lost.
const LOST: Duration = Duration::from_millis(10);

/// Send datagrams at a rate, or as fast as it goes; where answers come, take them.
pub(super) fn send_datagrams(rate: u32, size: usize, to: &[SocketAddr], receives: bool) -> io::Result<()> {
    let socket = |address: &SocketAddr| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(address)?;
        socket.set_nonblocking(receives)?;
        Ok(socket)
    };
    let sockets: Vec<UdpSocket> = to.iter().map(socket).collect::<io::Result<_>>()?;
    ready()?;
    wake_in_time()?;
    let (packet, mut answer) = (vec![7; size], [0; LARGEST]);
    let (began, mut pace, mut turn) = (Instant::now(), Pace::new(rate), sockets.iter().cycle());
    loop {
        let (number, next) = if rate > 0 { pace.due(began.elapsed()) } else { (1, Duration::ZERO) };
        for _ in 0..number {
            // Where nobody listens yet, an error of an earlier packet comes back; a full queue drops.
            _ = turn.next().map(|socket| socket.send(&packet));
        }
        for socket in sockets.iter().filter(|_| receives) {
            while socket.recv(&mut answer).is_ok() {}
        }
        if rate > 0 {
            thread::sleep(next.saturating_sub(began.elapsed()));
        }
    }
}

/// Send datagrams as fast as a receiver takes them. A sender that is faster would keep its core from taking any.
pub(super) fn feed(taken: &str, size: usize, to: SocketAddr) -> io::Result<()> {
    let taken = File::open(taken)?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    ready()?;
    let (packet, mut sent, mut known, mut at) = (vec![7; size], 0_u64, 0_u64, Instant::now());
    loop {
        while sent < known + AHEAD {
            _ = socket.send(&packet);
            sent += 1;
        }
        let mut bytes = [0; 8];
        taken.read_exact_at(&mut bytes, 0)?;
        let now = u64::from_ne_bytes(bytes);
        if now != known {
            (known, at) = (now, Instant::now());
        } else if at.elapsed() > LOST {
            // What is lost is not waited for.
            (sent, at) = (known, Instant::now());
        }
    }
}

/// Let this thread wake up when it wants to, and not 50 us later, with others.
fn wake_in_time() -> io::Result<()> {
    // SAFETY: the call takes numbers.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Send by so many connections to each, as fast as they take it.
pub(super) fn send_connections(connections: u32, to: &[SocketAddr]) -> io::Result<()> {
    let mut streams = Vec::new();
    for address in to {
        for _ in 0..connections.max(1) {
            streams.push(TcpStream::connect(address)?);
        }
    }
    ready()?;
    let send = |mut stream: TcpStream| {
        thread::spawn(move || {
            let bytes = vec![7; 1 << 16];
            while stream.write_all(&bytes).is_ok() {}
        })
    };
    let threads: Vec<_> = streams.into_iter().map(send).collect();
    threads.into_iter().for_each(|thread| _ = thread.join());
    Ok(())
}
