//! A scene to measure interference in: containers that share a core, and who sends to them from another.
//!
//! A container is a cgroup with a quota and a network namespace, whose device `veth` ends in a namespace outside. Everything has a
//! name with this process's number in it: what a killed process left is known by that, and removed by the next scene.

pub mod actor;
mod cores;
mod pace;
mod sending;
mod threads;
pub mod traced;
pub mod turn;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::enter;
use crate::{EnforceError, Hierarchies, Tracer};
use actor::Role;

/// How all names begin. Then comes the number of the process that made it.
pub const PREFIX: &str = "catena-scene-";
/// Where named network namespaces are.
const NAMESPACES: &str = "/run/netns";
/// The core of those who send to containers and receive from them.
pub const OUTSIDE: usize = 0;
/// The core of all containers.
pub const INSIDE: usize = 1;
/// Period of quotas as they are given first, in us.
const PERIOD_US: u64 = 100_000;
/// Most containers: each has a network of its own, 10.78.N.0, and on another device 10.79.N.0.
const MOST: usize = 200;
const DEVICES: u8 = 78;
const OTHERS: u8 = 79;

/// Why there is no scene.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum SceneError {
    /// Network namespaces and cgroups are root's.
    NotRoot,
    /// Containers and senders must not share a core.
    OneCore,
    /// A core that this process must not use, and those that it may.
    Core { core: usize, allowed: Vec<usize> },
    /// What accounts or enforcement lack.
    Enforce(EnforceError),
    /// `ip` does not do it.
    Ip { words: String, said: String },
    /// A file of the system.
    File { what: String, error: io::Error },
    /// A process of the scene does not do what it is for.
    Actor { role: String, said: String },
    /// It was to end.
    Interrupted,
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SceneError::NotRoot => f.write_str(
                "needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) to make network namespaces and cgroups: run it with sudo",
            ),
            SceneError::OneCore => f.write_str("needs two CPUs: one for the containers, one for who sends to them"),
            SceneError::Core { core, allowed } => {
                let cores: Vec<String> = allowed.iter().map(usize::to_string).collect();
                let many = if cores.len() == 1 { "" } else { "s" };
                let cores = cores.join(", ");
                write!(f, "needs CPU {core}, and this process may use CPU{many} {cores} only: look at its cpuset")
            }
            SceneError::Enforce(error) => error.fmt(f),
            SceneError::Ip { words, said } => write!(f, "ip {words}: {said} (needs iproute2 and network namespaces)"),
            SceneError::File { what, error } => write!(f, "{what}: {error}"),
            SceneError::Actor { role, said } => write!(f, "the process that is to {role} did not start: {said}"),
            SceneError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for SceneError {}

impl<T: Into<EnforceError>> From<T> for SceneError {
    fn from(error: T) -> Self {
        SceneError::Enforce(error.into())
    }
}

/// Name what a failed call was about.
fn about<T>(what: impl fmt::Display, done: io::Result<T>) -> Result<T, SceneError> {
    done.map_err(|error| SceneError::File { what: what.to_string(), error })
}

/// A cgroup and a network namespace.
#[derive(Debug)]
pub struct Container {
    name: String,
    cgroup: String,
    /// Its folders: in cgroup2, and in the cpu controller's hierarchy where that is another.
    folders: Vec<PathBuf>,
    namespace: String,
    device: String,
    number: usize,
    /// The device that its traffic takes instead, where that is another.
    other: Option<String>,
}

impl Container {
    /// Return the name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Return the path of its cgroup, as accounts name it.
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// Return its network namespace's name.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Return its device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Return the device that its packets leave by.
    pub fn sends_by(&self) -> &str {
        self.other.as_deref().unwrap_or(&self.device)
    }

    /// Return its address, of its other device where there is one.
    pub fn address(&self) -> Ipv4Addr {
        self.host(2)
    }

    /// Return the address at the other end of that device.
    pub fn outside(&self) -> Ipv4Addr {
        self.host(1)
    }

    fn host(&self, host: u8) -> Ipv4Addr {
        network(if self.other.is_some() { OTHERS } else { DEVICES }, self.number, host)
    }

    fn peer(&self) -> String {
        format!("peer{}", self.number)
    }
}

fn network(kind: u8, number: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, kind, u8::try_from(number).unwrap_or(u8::MAX), host)
}

/// Containers on one core, removed at the end.
#[derive(Debug)]
pub struct Scene {
    /// Among those of this process.
    number: u32,
    prefix: String,
    containers: Vec<Container>,
    /// Words by which this program does a part of the scene.
    act: Vec<String>,
    /// What the first container does.
    victim: Role,
}

impl Scene {
    /// Make containers, with a name and a quota in percent of one CPU each. The first is the victim. `act` are the words by
    /// which the running program calls [`actor::act`].
    ///
    /// # Errors
    /// What is missing, by name; nothing is left then.
    pub fn new(containers: &[(String, f64)], act: &[&str]) -> Result<Scene, SceneError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err(SceneError::NotRoot);
        }
        cores::check()?;
        assert!(!containers.is_empty() && containers.len() <= MOST, "{} containers", containers.len());
        drop(Tracer::start()?);
        let hierarchies = Hierarchies::find().map_err(EnforceError::from)?;
        sweep(&hierarchies);
        let number = NEXT.fetch_add(1, Relaxed);
        let prefix = format!("{PREFIX}{}-{number}-", std::process::id());
        // From here on what was made is removed.
        let act = act.iter().map(|word| (*word).to_owned()).collect();
        let mut scene = Scene { number, prefix, containers: Vec::new(), act, victim: Role::Compute };
        ip(&[], &format!("netns add {}\n", scene.outside()))?;
        for (number, (name, percent)) in containers.iter().enumerate() {
            scene.add(&hierarchies, number, name, *percent)?;
        }
        Ok(scene)
    }

    /// Let a container keep what it does not want of its quota, up to one period's.
    ///
    /// # Errors
    /// The kernel's, which has no `burst` before Linux 5.14.
    pub fn keep(&self, number: usize) -> Result<(), SceneError> {
        let hierarchies = Hierarchies::find().map_err(EnforceError::from)?;
        let cgroup = hierarchies.cgroup(&self.containers[number].cgroup).map_err(EnforceError::from)?;
        let now = cgroup.read().map_err(EnforceError::from)?;
        let burst_us = now.quota_us.unwrap_or(0);
        Ok(cgroup.write(&crate::Bandwidth { burst_us, ..now }).map_err(EnforceError::from)?)
    }

    /// Return the containers; the first is the victim.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// Return the name of the network namespace outside of all containers.
    pub fn outside(&self) -> String {
        format!("{}outside", self.prefix)
    }

    /// Let the victim do this instead of computing: of a command, its work is how often it ends.
    pub fn set_victim(&mut self, role: Role) {
        self.victim = role;
    }

    fn add(&mut self, hierarchies: &Hierarchies, number: usize, name: &str, percent: f64) -> Result<(), SceneError> {
        let cgroup = format!("{}{name}", self.prefix);
        let folders = hierarchies.folders(&cgroup);
        // A device's name has at most 15 bytes, and its threads are known by it.
        let (process, scene) = (std::process::id(), self.number);
        let namespace = cgroup.clone();
        let device = format!("s{process:x}x{scene}x{number}");
        self.containers.push(Container {
            name: name.to_owned(),
            cgroup: format!("/{cgroup}"),
            folders,
            namespace,
            device,
            number,
            other: None,
        });
        let container = &self.containers[number];
        for folder in &container.folders {
            about(format_args!("cgroup {}", folder.display()), fs::create_dir(folder))?;
        }
        let quota = hierarchies.cgroup(&container.cgroup).map_err(EnforceError::from)?;
        // A percent of the period's microseconds.
        let quota_us = (percent / 100.0 * PERIOD_US as f64) as u64;
        let bandwidth = crate::Bandwidth { quota_us: Some(quota_us), period_us: PERIOD_US, burst_us: 0 };
        quota.write(&bandwidth).map_err(EnforceError::from)?;
        let Container { namespace, device, .. } = container;
        let (outside, peer) = (self.outside(), container.peer());
        ip(&[], &format!("netns add {namespace}\n"))?;
        let lines = [
            format!("link add {peer} type veth peer name {device} netns {namespace}"),
            format!("addr add {}/24 dev {peer}", container.outside()),
            format!("link set {peer} up"),
        ];
        ip(&["-n", &outside], &(lines.join("\n") + "\n"))?;
        let inside =
            format!("addr add {}/24 dev {device}\nlink set {device} up\nlink set lo up\n", container.address());
        ip(&["-n", namespace], &inside)
    }

    /// Reach all containers through tunnels by VXLAN: their packets pass the stack twice.
    ///
    /// # Errors
    /// What `ip` says, such as of a kernel without VXLAN.
    pub fn tunnel(&mut self) -> Result<(), SceneError> {
        let outside = self.outside();
        for container in &mut self.containers {
            let (inner, outer) = (container.address(), container.outside());
            let (peer, device) = (container.peer(), container.device.clone());
            container.other = Some(format!("tunnel{}", container.number));
            let ends = [
                (&outside, peer, outer, inner, container.outside()),
                (&container.namespace, device, inner, outer, container.address()),
            ];
            for (namespace, device, local, remote, address) in ends {
                let (number, port) = (container.number, 4789);
                let tunnel = format!("tunnel{number}");
                let lines = [
                    format!(
                        "link add {tunnel} type vxlan id {number} local {local} remote {remote} dev {device} dstport {port}"
                    ),
                    format!("addr add {address}/24 dev {tunnel}"),
                    format!("link set {tunnel} up"),
                ];
                ip(&["-n", namespace], &(lines.join("\n") + "\n"))?;
            }
        }
        Ok(())
    }

    /// Let what containers send end at a device, as on a network card that has it sent: nobody receives it on this machine.
    ///
    /// # Errors
    /// What `ip` says, such as of a kernel without `ifb`.
    pub fn sink(&mut self) -> Result<(), SceneError> {
        for container in &mut self.containers {
            let sink = format!("sink{}", container.number);
            container.other = Some(sink.clone());
            let lines = [
                // It drops all that was not handed to it by a filter. With a queue as long as other devices' a sender waits.
                format!("link add {sink} txqueuelen 1000 type ifb"),
                format!("addr add {}/24 dev {sink}", container.address()),
                format!("link set {sink} up"),
            ];
            ip(&["-n", &container.namespace], &(lines.join("\n") + "\n"))?;
        }
        Ok(())
    }

    /// Let a container's packets be received by NAPI, which threads can do, or on the containers' core as a card's interrupts
    /// would have it; and let those that come back outside be received there.
    fn steer(&self, container: &Container, by_napi: bool) -> Result<(), SceneError> {
        let (inside, outside) = (mask(if by_napi { None } else { Some(INSIDE) }), mask(Some(OUTSIDE)));
        let (device, peer) = (container.device.clone(), container.peer());
        within(&container.namespace, || {
            steer(&device, &inside)?;
            about(&device, ethtool(&device, ETHTOOL_SGRO, u32::from(by_napi)))
        })?;
        within(&self.outside(), || {
            steer(&peer, &outside)?;
            about(&peer, ethtool(&peer, ETHTOOL_STSO, u32::from(!by_napi)))
        })
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Threads that receive go with their devices, before their cgroups.
        self.containers.iter().for_each(|container| _ = ip(&[], &format!("netns del {}\n", container.namespace)));
        _ = ip(&[], &format!("netns del {}\n", self.outside()));
        self.containers.iter().flat_map(|container| &container.folders).for_each(|folder| remove(folder));
    }
}

/// Remove a cgroup with the processes in it.
fn remove(folder: &Path) {
    _ = fs::write(folder.join("cgroup.kill"), "1");
    let end = Instant::now() + Duration::from_secs(2);
    while fs::remove_dir(folder).is_err() && folder.exists() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Remove what scenes of processes left that are gone.
fn sweep(hierarchies: &Hierarchies) {
    let is_left = |name: &str| {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        // One that is dead, but not yet waited for, has no program any more.
        let is_gone = |process: &str| fs::read_link(format!("/proc/{process}/exe")).is_err();
        process.is_some_and(|process| process.parse::<u32>().is_ok() && is_gone(process))
    };
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_left(name)).collect()
    };
    for name in names(Path::new(NAMESPACES)) {
        _ = ip(&[], &format!("netns del {name}\n"));
    }
    for root in hierarchies.folders("") {
        names(&root).iter().for_each(|name| remove(&root.join(name)));
    }
    names(&std::env::temp_dir()).iter().for_each(|name| _ = fs::remove_file(std::env::temp_dir().join(name)));
}

/// Run `ip` on lines of its own language.
fn ip(words: &[&str], lines: &str) -> Result<(), SceneError> {
    let failed = |said: String| SceneError::Ip { words: lines.trim().replace('\n', "; "), said };
    let mut command = Command::new("ip");
    command.args(words).args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let input = child.stdin.take();
    input.map_or(Ok(()), |mut input| input.write_all(lines.as_bytes())).map_err(|error| failed(error.to_string()))?;
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(failed(said)) }
}

/// Do `work` in a network namespace that has a name, with its devices in `/sys`.
fn within(namespace: &str, work: impl FnOnce() -> Result<(), SceneError> + Send) -> Result<(), SceneError> {
    let path = Path::new(NAMESPACES).join(namespace);
    let file = about(path.display(), File::open(&path))?;
    // A thread that ends with what it has changed of itself.
    thread::scope(|scope| {
        let entered = scope.spawn(|| about(path.display(), enter(&file)).and_then(|()| work()));
        entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A set of CPUs as the kernel reads it.
fn mask(core: Option<usize>) -> String {
    core.map_or_else(|| "0".to_owned(), |core| format!("{:x}", 1_u32 << core))
}

/// Let a device's packets be worked on by these CPUs.
fn steer(device: &str, mask: &str) -> Result<(), SceneError> {
    let file = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
    about(format_args!("{file} (needs CONFIG_RPS)"), fs::write(&file, mask))
}

/// Turns merging of received packets on or off, as `ethtool -K DEV gro on` does: a veth with it receives by NAPI,
const ETHTOOL_SGRO: u32 = 0x2c;
/// and this one splitting of sent ones, as `tso off` does: a veth's peer with it passes NAPI by.
const ETHTOOL_STSO: u32 = 0x1f;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Set a feature of a device of this thread's network namespace.
fn ethtool(device: &str, command: u32, value: u32) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut value = [command, value];
    // SAFETY: the request is plain data; the name ends with 0, and the value lives during the call.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name.iter_mut().take(room).zip(device.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
