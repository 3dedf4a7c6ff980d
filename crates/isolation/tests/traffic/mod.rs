//! Cgroups, processes in them, and what these send and receive.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use catena_isolation::{Enforcer, Tracer, Wanted};
use catena_testing::namespace::{Place, Testbed};
use catena_testing::skip_kernel;

/// What a process of a test is to do: the cgroup's folder, then the role.
const TASK: &str = "CATENA_ISOLATION_TEST";
/// Longest that a process of a test lives.
const LONGEST: Duration = Duration::from_secs(20);
/// Bytes that a client sends in one go.
const SENT: usize = 64 << 20;
/// How often quotas are rewritten.
pub const PERIOD: Duration = Duration::from_millis(100);
/// Requests that a client sends, each after the answer to the one before.
pub const REQUESTS: u64 = 2000;

/// Wait until no other test here sends: nobody's accounts are everybody's.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing half done behind.
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A cgroup of the test, removed at its end.
pub struct Group {
    path: PathBuf,
    name: String,
    /// The folder with the quota; the same as `path` where cgroup2 has the cpu controller.
    quotas: PathBuf,
}

impl Group {
    /// Make cgroups; `None`, with a message, where that is not possible.
    pub fn several(count: usize) -> Option<Vec<Group>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[2] == "cgroup2");
        let Some(mount) = mount else {
            skip_kernel("cgroup2 is not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified");
            return None;
        };
        let mut groups = Vec::new();
        for _ in 0..count {
            let name = format!("/catena-t-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
            let path = PathBuf::from(format!("{}{name}", mount[1]));
            if let Err(error) = fs::create_dir(&path) {
                skip_kernel(&format!("no cgroup can be made, which root can where cgroup2 is writable: {error}"));
                return None;
            }
            groups.push(Group { quotas: path.clone(), path, name });
        }
        Some(groups)
    }

    /// Make cgroups with quotas, in percent of one CPU; `None`, with a message, where that is not possible.
    pub fn with_quotas(percents: &[u64]) -> Option<Vec<Group>> {
        let mut groups = Group::several(percents.len())?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let words = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut cpu = words.filter(|words| words[2] == "cgroup" && words[3].split(',').any(|option| option == "cpu"));
        let cpu = cpu.next().map(|words| PathBuf::from(words[1]));
        for (group, percent) in groups.iter_mut().zip(percents) {
            let written = match &cpu {
                Some(mount) => {
                    group.quotas = mount.join(&group.name[1..]);
                    let made = fs::create_dir(&group.quotas);
                    made.and_then(|()| fs::write(group.quotas.join("cpu.cfs_quota_us"), (percent * 1000).to_string()))
                }
                None => fs::write(group.quotas.join("cpu.max"), format!("{} 100000", percent * 1000)),
            };
            if let Err(error) = written {
                skip_kernel(&format!("no quota can be given, which needs the cpu controller: {error}"));
                return None;
            }
        }
        Some(groups)
    }

    /// Make a cgroup below it with a quota, in percent of one CPU, where the kernel has cgroup v1's rule for such; else says so.
    pub fn below(&self, percent: u64) -> Option<Group> {
        if self.quotas == self.path {
            skip_kernel("quotas of nested cgroups depend on each other with cgroup v1 only");
            return None;
        }
        let [path, quotas] = [&self.path, &self.quotas].map(|folder| folder.join("below"));
        let below = Group { path, quotas, name: format!("{}/below", self.name) };
        [&below.path, &below.quotas].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        below.set(percent * 1000, 100_000).unwrap();
        Some(below)
    }

    /// Write its quota and its period, in us, in the order in which the kernel takes them; needs v1.
    pub fn set(&self, quota: u64, period: u64) -> std::io::Result<()> {
        let write = |file, value: u64| fs::write(self.quotas.join(file), value.to_string());
        if write("cpu.cfs_quota_us", quota).is_err() {
            write("cpu.cfs_period_us", period)?;
            write("cpu.cfs_quota_us", quota)?;
        }
        write("cpu.cfs_period_us", period)
    }

    /// Write its quota alone, in us; needs v1.
    pub fn set_quota(&self, quota: u64) {
        fs::write(self.quotas.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }

    /// Return the line of a journal that has its quota as a killed run left it; needs v1.
    pub fn left(&self, was: u64, wrote: u64) -> String {
        let inode = fs::metadata(&self.quotas).unwrap().ino();
        format!("quota\t{}\t{inode}\t{was}\t100000\t0\t1000000\t{wrote:20}\t{wrote:20}\n", self.quotas.display())
    }

    /// Give it a quota of 30% of one CPU, of the longest period that the kernel takes.
    pub fn give_long_quota(&self) {
        if self.quotas.join("cpu.max").exists() {
            return fs::write(self.quotas.join("cpu.max"), "300000 1000000").unwrap();
        }
        fs::write(self.quotas.join("cpu.cfs_period_us"), "1000000").unwrap();
        fs::write(self.quotas.join("cpu.cfs_quota_us"), "300000").unwrap();
    }

    /// Remove its folders and make others of the same name.
    pub fn remake(&self) {
        let folders = [&self.path, &self.quotas];
        let folders = &folders[..if self.path == self.quotas { 1 } else { 2 }];
        folders.iter().for_each(|folder| fs::remove_dir(folder).unwrap());
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    }

    pub fn id(&self) -> u64 {
        fs::metadata(&self.path).unwrap().ino()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Return the files that say its quota, one after the other.
    pub fn quota(&self) -> String {
        let files = ["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"].map(|file| self.quotas.join(file));
        files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        _ = fs::write(self.path.join("cgroup.kill"), "1");
        let end = Instant::now() + Duration::from_secs(2);
        while fs::remove_dir(&self.path).is_err() && self.path.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        while self.quotas != self.path && fs::remove_dir(&self.quotas).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Receive what comes to a port.
    Receive(u16),
    /// Open a port, and never read.
    Drop(u16),
    /// Open a port, and burn CPU.
    Spin(u16),
    /// Receive what comes to a port for a multicast group that others receive, too.
    Join(u16),
    /// Let others connect, and accept none.
    Listen(u16),
    /// Accept connections, and send back what comes.
    Serve(u16),
    /// Connect, send requests, and end.
    Connect(u16),
    /// Accept connections, and read what comes.
    Sink(u16),
    /// Connect, send much in one go, and end.
    Pour(u16),
    /// Send datagrams.
    Send(u16),
    /// Open a port, and burn CPU on this core.
    SpinOn(u16, usize),
    /// Trace; say the programs' ids.
    Trace,
    /// Enforce the cgroup's quota, from outside.
    Enforce,
}

impl Role {
    fn words(self) -> (&'static str, u16) {
        match self {
            Role::Receive(port) => ("receive", port),
            Role::Drop(port) => ("drop", port),
            Role::Spin(port) => ("spin", port),
            Role::Join(port) => ("join", port),
            Role::Listen(port) => ("listen", port),
            Role::Serve(port) => ("serve", port),
            Role::Connect(port) => ("connect", port),
            Role::Sink(port) => ("sink", port),
            Role::Pour(port) => ("pour", port),
            Role::Send(port) => ("send", port),
            Role::SpinOn(port, _) => ("spin", port),
            Role::Trace => ("trace", 0),
            Role::Enforce => ("enforce", 0),
        }
    }
}

/// A process in a cgroup and a network namespace, ended with the test.
pub struct Process {
    child: Child,
    said: String,
    // Open, so that it may write.
    _output: BufReader<ChildStdout>,
}

impl Process {
    /// Start a process, and wait until it does what it is for.
    pub fn start(bed: &Testbed, place: Place, group: &Group, role: Role) -> Process {
        let (what, port) = role.words();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "traffic::a_process", "--nocapture", "--test-threads=1"]);
        let core = if let Role::SpinOn(_, core) = role { core.to_string() } else { String::new() };
        let (path, quotas) = (group.path.display(), group.quotas.display());
        command.env(TASK, format!("{path} {quotas} {what} {port} {core}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = bed.within(place, move || command.spawn()).unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        // The harness may have begun the line.
        let said = lines.find_map(|line| line.split_once("ready ").map(|(_, said)| said.to_owned()));
        let said = said.unwrap_or_else(|| panic!("{role:?}: the process is not ready: {:?}", child.wait()));
        Process { child, said, _output: output }
    }

    /// Return what it said when it was ready.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Kill it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Wait for its end.
    pub fn wait(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Not a test: what a process of one does.
#[test]
fn a_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [group, quotas, what, port, core] = task.split(' ').collect::<Vec<_>>()[..] else { panic!("{task}") };
    if what == "enforce" {
        return enforce(group);
    }
    // Sockets belong to the cgroup of the process that opens them.
    for folder in [group, quotas] {
        fs::write(format!("{folder}/cgroup.procs"), "0").unwrap();
    }
    if let Ok(core) = core.parse() {
        pin(core);
    }
    let port: u16 = port.parse().unwrap();
    let end = Instant::now() + LONGEST;
    if what == "trace" {
        let tracer = Tracer::start().unwrap();
        let ids: Vec<String> = tracer.programs().iter().map(u32::to_string).collect();
        ready(&ids.join(" "));
        std::thread::sleep(LONGEST);
        return;
    }
    if what == "listen" {
        let _listener = TcpListener::bind(("0.0.0.0", port)).unwrap();
        ready("");
        std::thread::sleep(LONGEST);
        return;
    }
    if what == "serve" || what == "sink" {
        let listener = TcpListener::bind(("0.0.0.0", port)).unwrap();
        ready("");
        let mut bytes = vec![0; 1 << 16];
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                if what == "serve" {
                    stream.write_all(&bytes[..count]).unwrap();
                }
            }
        }
        return;
    }
    if what == "send" {
        ready("");
        flood(&[address(port)], 3000);
        // What is queued by then still has its socket, until the test ends this.
        std::thread::sleep(LONGEST);
        return;
    }
    if what == "pour" {
        ready("");
        let mut stream = TcpStream::connect(address(port)).unwrap();
        stream.write_all(&vec![7; SENT]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // The other side closes when it has read all.
        _ = stream.read(&mut [0]);
        return;
    }
    if what == "connect" {
        ready("");
        let mut stream = TcpStream::connect(address(port)).unwrap();
        stream.set_nodelay(true).unwrap();
        for _ in 0..REQUESTS {
            stream.write_all(&[7; 100]).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
        }
        return;
    }
    let socket = if what == "join" { joined(port) } else { UdpSocket::bind(("0.0.0.0", port)).unwrap() };
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    ready("");
    let mut packet = [0; 2048];
    while Instant::now() < end {
        match what {
            "receive" | "join" => _ = socket.recv(&mut packet),
            "spin" => std::hint::spin_loop(),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Enforce a cgroup's quota until killed.
fn enforce(group: &str) {
    let cgroup = format!("/{}", group.rsplit('/').next().unwrap());
    let journal = journal(&cgroup);
    let wanted = [Wanted { cgroup, quota: None }];
    let mut enforcer = Enforcer::start(&wanted, &[], PERIOD, &journal).unwrap();
    enforcer.step().unwrap();
    ready("");
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        std::thread::sleep(PERIOD);
        enforcer.step().unwrap();
    }
}

/// The journal of who enforces the quota of a cgroup of the test.
pub fn journal(cgroup: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{}.journal", &cgroup[1..]))
}

/// Keep this thread on a core.
pub fn pin(core: usize) {
    // SAFETY: the set is plain data, of the size that is said.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(pinned, 0, "core {core}");
}

fn ready(what: &str) {
    println!("ready {what}");
    std::io::stdout().flush().unwrap();
}

/// Give the middle an address beside host `a`, which both know: packets that wait for a neighbour to be known may be dropped.
pub fn joined_middle(bed: &Testbed) {
    bed.ip(Place::Middle, "addr add 10.77.0.100/24 dev a0");
    let card = |place, name| bed.exec(place, &format!("ip -br link show {name}"));
    for (place, name, peer, address) in [
        (Place::Middle, "a0", card(Place::A, "eth0"), "10.77.0.1"),
        (Place::A, "eth0", card(Place::Middle, "a0"), "10.77.0.100"),
    ] {
        let mac = peer.split_whitespace().find(|word| word.matches(':').count() == 5).unwrap().to_owned();
        bed.ip(place, &format!("neigh replace {address} lladdr {mac} dev {name}"));
    }
}

/// A group that host `a` is in.
pub const MULTICAST: Ipv4Addr = Ipv4Addr::new(239, 77, 0, 1);

/// A socket of the group, at a port that others have, too.
fn joined(port: u16) -> UdpSocket {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(MULTICAST).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: the descriptor is new and owned by nobody else; address and option are plain data of the sizes that are said.
    let socket = unsafe {
        let new = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        assert!(new >= 0, "{}", std::io::Error::last_os_error());
        let (yes, size) = (1i32, size_of::<i32>() as u32);
        let reuse = libc::setsockopt(new, libc::SOL_SOCKET, libc::SO_REUSEADDR, (&raw const yes).cast(), size);
        let bound = libc::bind(new, (&raw const address).cast(), size_of_val(&address) as u32);
        assert_eq!((reuse, bound), (0, 0), "{}", std::io::Error::last_os_error());
        UdpSocket::from_raw_fd(new)
    };
    socket.join_multicast_v4(&MULTICAST, &Ipv4Addr::new(10, 77, 0, 1)).unwrap();
    socket
}

/// A port of host `a`.
pub fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, 1], port))
}

/// Send so many packets, to these addresses in turn.
pub fn flood(to: &[SocketAddr], count: usize) {
    let sockets: Vec<UdpSocket> = to
        .iter()
        .map(|address| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(address).unwrap();
            socket
        })
        .collect();
    for number in 0..count {
        // Where nobody listens, an error of an earlier packet comes back.
        while sockets[number % sockets.len()].send(&[7; 100]).is_err() {}
    }
}
