//! What a process of a scene does: computes, receives or sends, in a cgroup, a network namespace and on a core.
//!
//! It is this program once more, so that its sockets are of the cgroup from the start. It ends with the process that started it,
//! however that ends: its standard input is closed then.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;

use super::sending::{feed, send_connections, send_datagrams};
use super::{Container, NAMESPACES, Scene, SceneError};

/// Where receivers listen.
pub const PORT: u16 = 9000;
/// Bytes of a datagram, as in Khalid's dissertation, section 2.1.3.
pub const DATAGRAM: usize = 1400;
/// Bytes of the largest datagram.
pub(super) const LARGEST: usize = 2048;
/// A receiver tells its count after so many datagrams.
pub(super) const TOLD: u64 = 32;
/// Steps of arithmetic in a piece of work: some 20 us.
const PIECE: u32 = 20_000;

/// By what packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

/// What a process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Compute, and count pieces of work.
    Compute,
    /// Compute when nobody else wants the core.
    Fill,
    /// Nothing.
    Rest,
    /// Receive all that comes.
    Receive(Protocol),
    /// Answer each datagram with one of [`DATAGRAM`] bytes.
    Answer,
    /// Send to these addresses in turn: so many datagrams a second of so many bytes, 0 as fast as it goes; so many connections
    /// to each.
    Send(Protocol, u32, usize, Vec<SocketAddr>),
    /// The same by datagrams, and receive what is answered.
    Ask(u32, usize, Vec<SocketAddr>),
    /// Send datagrams of so many bytes as fast as a receiver takes them, whose count this file has.
    Feed(String, usize, SocketAddr),
    /// Send datagrams to itself, and receive each before the next is sent: each has a softirq of its own, in this process' time.
    Exchange,
    /// Run a command again and again, and count its ends. Its words have no spaces.
    Run(Vec<String>),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |protocol: &Protocol| if *protocol == Protocol::Udp { "udp" } else { "tcp" };
        match self {
            Role::Compute => f.write_str("compute"),
            Role::Fill => f.write_str("fill"),
            Role::Rest => f.write_str("rest"),
            Role::Receive(protocol) => write!(f, "receive {}", word(protocol)),
            Role::Answer => f.write_str("answer"),
            Role::Send(protocol, rate, size, to) => {
                write!(f, "send {} {rate} {size}", word(protocol))?;
                to.iter().try_for_each(|address| write!(f, " {address}"))
            }
            Role::Ask(rate, size, to) => {
                write!(f, "ask udp {rate} {size}")?;
                to.iter().try_for_each(|address| write!(f, " {address}"))
            }
            Role::Feed(counter, size, to) => write!(f, "feed {counter} {size} {to}"),
            Role::Exchange => f.write_str("exchange"),
            Role::Run(words) => write!(f, "run {}", words.join(" ")),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let protocol = || match words.get(1) {
            Some(&"udp") => Ok(Protocol::Udp),
            Some(&"tcp") => Ok(Protocol::Tcp),
            _ => Err(format!("`{text}`: expected udp or tcp")),
        };
        match words[0] {
            "compute" => Ok(Role::Compute),
            "fill" => Ok(Role::Fill),
            "rest" => Ok(Role::Rest),
            "receive" => Ok(Role::Receive(protocol()?)),
            "answer" => Ok(Role::Answer),
            "exchange" => Ok(Role::Exchange),
            "run" if words.len() > 1 => Ok(Role::Run(words[1..].iter().map(|word| (*word).to_owned()).collect())),
            "feed" => match words[..] {
                [_, counter, size, to] => {
                    let size =
                        size.parse().ok().filter(|size| *size <= LARGEST).ok_or("expected a datagram's bytes")?;
                    let to = to.parse().map_err(|_| "expected an address")?;
                    Ok(Role::Feed(counter.to_owned(), size, to))
                }
                _ => Err("expected a count, a size, and an address".to_owned()),
            },
            how @ ("send" | "ask") => {
                let [_, _, rate, size, to @ ..] = &words[..] else {
                    return Err("expected a rate and a size".to_owned());
                };
                let rate = rate.parse().map_err(|_| "expected a rate")?;
                let size = size.parse().ok().filter(|size| *size <= LARGEST).ok_or("expected a datagram's bytes")?;
                let to: Result<Vec<SocketAddr>, _> = to.iter().map(|address| address.parse()).collect();
                let to = to.ok().filter(|to| !to.is_empty()).ok_or("expected addresses")?;
                let protocol = protocol()?;
                Ok(if how == "ask" { Role::Ask(rate, size, to) } else { Role::Send(protocol, rate, size, to) })
            }
            _ => Err(format!("`{text}`: expected what a process of a scene does")),
        }
    }
}

/// A process of a scene, ended when this is dropped.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    work: File,
    receives: bool,
}

impl Actor {
    /// Start a process in a container, or outside of all, on a core; wait until it does what it is for.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn start(scene: &Scene, container: Option<&Container>, core: usize, role: &Role) -> Result<Actor, SceneError> {
        let failed = |said: &str| SceneError::Actor { role: role.to_string(), said: said.to_owned() };
        let file = |error: io::Error| failed(&error.to_string());
        let work = memory().map_err(file)?;
        let mut command = Command::new(std::env::current_exe().map_err(file)?);
        let namespace = container.map_or_else(|| scene.outside(), |container| container.namespace.clone());
        let counter = path(&work);
        command.args(&scene.act).args([namespace, core.to_string(), counter, role.to_string()]);
        command.args(container.iter().flat_map(|container| &container.folders));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(file)?;
        let mut actor = Actor { child, work, receives: matches!(role, Role::Receive(_)) };
        let mut line = String::new();
        let output = actor.child.stdout.take().ok_or_else(|| failed("no output"))?;
        BufReader::new(output).read_line(&mut line).map_err(file)?;
        if line.trim() != "ready" {
            let mut said = String::new();
            actor.child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
            return Err(failed(said.trim()));
        }
        Ok(actor)
    }

    /// Return the file that has its count, as another process of a scene can open it.
    pub fn counter(&self) -> String {
        path(&self.work)
    }

    /// Return whether what it does is to receive.
    pub fn receives(&self) -> bool {
        self.receives
    }

    /// Return how many pieces of work it has done, datagrams received, or commands run.
    ///
    /// # Errors
    /// The system's.
    pub fn work(&self) -> io::Result<u64> {
        self.number(0)
    }

    /// Return when the last command ended, in ns of the monotonic clock; 0 for who runs none.
    ///
    /// # Errors
    /// The system's.
    pub fn ended(&self) -> io::Result<u64> {
        self.number(8)
    }

    /// Return what CPU its first thread has had, in ns.
    ///
    /// # Errors
    /// The system's.
    pub fn cpu(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let first = text.split(' ').next().and_then(|word| word.parse().ok());
        first.ok_or_else(|| io::Error::other("no schedstat (needs CONFIG_SCHED_INFO)"))
    }

    fn number(&self, offset: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.work.read_exact_at(&mut bytes, offset)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Return a path by which other processes can open a file of this one.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Make a file in memory that holds two numbers, 0.
fn memory() -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name ends with 0.
    let descriptor = unsafe { libc::memfd_create(c"work".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all_at(&[0; 16], 0)?;
    Ok(file)
}

/// Do a part of a scene, as [`Actor::start`] gave the words; returns only when something is wrong.
///
/// # Errors
/// What is wrong.
pub fn act(words: &[String]) -> Result<(), String> {
    let [namespace, core, counter, role, folders @ ..] = words else {
        return Err("expected what `isolate demo` starts processes with".to_owned());
    };
    let failed = |what: &str, error: io::Error| format!("{what}: {error}");
    for folder in folders {
        // Sockets belong to the cgroup of the process that opens them.
        fs::write(format!("{folder}/cgroup.procs"), "0").map_err(|error| failed(folder, error))?;
    }
    let path = Path::new(NAMESPACES).join(namespace);
    let namespace = File::open(&path).map_err(|error| failed(namespace, error))?;
    // SAFETY: the descriptor is open; this is the only thread.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(failed("setns", io::Error::last_os_error()));
    }
    pin(core.parse().map_err(|_| format!("core `{core}`"))?).map_err(|error| failed("core", error))?;
    let counter = OpenOptions::new().write(true).open(counter).map_err(|error| failed(counter, error))?;
    let role: Role = role.parse()?;
    thread::spawn(|| {
        _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let done = match role {
        Role::Compute => ready().and_then(|()| compute(&counter)),
        Role::Fill => yield_to_all().and_then(|()| ready()).and_then(|()| compute(&counter)),
        Role::Rest => ready().and_then(|()| rest()),
        Role::Receive(Protocol::Udp) => receive_datagrams(&counter),
        Role::Receive(Protocol::Tcp) => receive_connections(),
        Role::Answer => answer(),
        Role::Send(Protocol::Udp, rate, size, to) => send_datagrams(rate, size, &to, false),
        Role::Send(Protocol::Tcp, connections, _, to) => send_connections(connections, &to),
        Role::Ask(rate, size, to) => send_datagrams(rate, size, &to, true),
        Role::Feed(taken, size, to) => feed(&taken, size, to),
        Role::Exchange => exchange(&counter),
        Role::Run(words) => run(&words, &counter),
    };
    done.map_err(|error| error.to_string())
}

/// Keep this thread, and those that it starts, on a core.
///
/// # Errors
/// The system's, such as of a core that is not there.
pub fn pin(core: usize) -> io::Result<()> {
    // SAFETY: the set is plain data, of the size that is said.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if pinned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Let this thread, and those that it starts, have the core only when nobody else wants it.
fn yield_to_all() -> io::Result<()> {
    // SAFETY: the parameter is plain data that the call only reads.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &libc::sched_param { sched_priority: 0 }) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tell who started this that it does what it is for.
pub(super) fn ready() -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "ready").and_then(|()| output.flush())
}

fn rest() -> io::Result<()> {
    loop {
        thread::park();
    }
}

fn compute(counter: &File) -> io::Result<()> {
    let mut number = 1_u64;
    for pieces in 1_u64.. {
        for _ in 0..PIECE {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
        }
        std::hint::black_box(number);
        counter.write_all_at(&pieces.to_ne_bytes(), 0)?;
    }
    Ok(())
}

fn receive_datagrams(counter: &File) -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    ready()?;
    let mut packet = [0; LARGEST];
    for received in 1_u64.. {
        socket.recv(&mut packet)?;
        if received.is_multiple_of(TOLD) {
            counter.write_all_at(&received.to_ne_bytes(), 0)?;
        }
    }
    Ok(())
}

fn receive_connections() -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", PORT))?;
    ready()?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
        });
    }
    Ok(())
}

fn answer() -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    ready()?;
    let mut packet = [0; LARGEST];
    loop {
        let (_, from) = socket.recv_from(&mut packet)?;
        // A full queue drops.
        _ = socket.send_to(&[7; DATAGRAM], from);
    }
}

fn exchange(counter: &File) -> io::Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", PORT))?;
    socket.connect(("127.0.0.1", PORT))?;
    ready()?;
    let mut packet = [0; LARGEST];
    for exchanged in 1_u64.. {
        socket.send(&[7; DATAGRAM])?;
        socket.recv(&mut packet)?;
        if exchanged.is_multiple_of(TOLD) {
            counter.write_all_at(&exchanged.to_ne_bytes(), 0)?;
        }
    }
    Ok(())
}

fn run(words: &[String], counter: &File) -> io::Result<()> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    // SAFETY: the call takes numbers, and is one that a new process may make.
    unsafe {
        use std::os::unix::process::CommandExt;
        // When this process is killed, so is what it runs.
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    for ends in 0_u64.. {
        if ends > 0 {
            let [ends, now] = [ends, monotonic()?].map(u64::to_ne_bytes);
            counter.write_all_at(&[ends, now].concat(), 0)?;
        }
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("{}: {status}", words[0])));
        }
        if ends == 0 {
            // Only what runs to its end is ready.
            ready()?;
        }
    }
    Ok(())
}

/// Return the time of the clock that all processes have, in ns.
fn monotonic() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives during the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_back_from_their_words() {
        let to = vec!["10.78.1.2:9000".parse().unwrap(), "10.78.2.2:9000".parse().unwrap()];
        let run = Role::Run(["wc", "/tmp/a"].map(str::to_owned).to_vec());
        let feed = Role::Feed("/proc/7/fd/9".to_owned(), 64, to[0]);
        for role in [feed, Role::Answer, Role::Exchange, Role::Ask(9, 100, to.clone()), run] {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        let send = Role::Send(Protocol::Udp, 1000, 64, to);
        let roles = [Role::Compute, Role::Fill, Role::Rest, Role::Receive(Protocol::Tcp), send];
        for role in roles {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        for text in
            ["", "dance", "receive", "send udp", "send tcp 3 9", "send tcp 3 9 x", "send udp 1 4000 1.1.1.1:1", "run"]
        {
            assert!(text.parse::<Role>().is_err(), "{text}");
        }
    }
}
