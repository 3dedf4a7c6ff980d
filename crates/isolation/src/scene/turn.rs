//! A turn of a scene: what its victim gets done while the others compute, or have traffic, without or with enforcement.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::actor::{Actor, PORT, Protocol, Role};
use super::{Container, INSIDE, OUTSIDE, Scene, SceneError, about};
use crate::{Enforced, Enforcer, Means, Meter, Port, Row, Status, Wanted};

/// How often quotas are rewritten, and how often a turn looks whether it is to end.
const PERIOD: Duration = Duration::from_millis(100);

/// Which way packets go, seen from the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They receive.
    In,
    /// They send.
    Out,
    /// They send and receive, by connections of their own.
    Both,
    /// They answer datagrams.
    Answers,
}

/// What the containers beside the victim do with the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// By which protocol.
    pub protocol: Protocol,
    /// Which way.
    pub way: Way,
    /// Datagrams a second to all receivers, or from each sender; 0 is as fast as it goes. For TCP: connections of each container.
    pub rate: u32,
    /// Bytes of a datagram.
    pub size: usize,
    /// How many of the containers beside the victim have it, the first ones; the others compute.
    pub count: usize,
}

/// How a turn goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// All compute: what the victim can get.
    Calm,
    /// There is traffic, and quotas are the kernel's.
    Without,
    /// There is traffic, and network work is part of quotas.
    Accounts,
    /// The same, and threads in the receivers' cgroups receive.
    Threads,
    /// The same as with accounts, and what receivers cannot pay for is dropped before the stack has it.
    EarlyDrop,
}

/// How long a turn is.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Before it is measured. What enforcement finds taken too much is paid by then.
    pub before: Duration,
    /// Measured.
    pub measured: Duration,
}

/// What was seen in a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// How it went.
    pub turn: Turn,
    /// The victim's pieces of work per second.
    pub work: f64,
    /// Datagrams that receivers took from their sockets, per second.
    pub received: f64,
    /// What was left of the containers' CPU, in percent.
    pub idle: f64,
    /// What threads of the kernel took to receive for containers, in percent of one CPU.
    pub threads: f64,
    /// The accounts.
    pub status: Status,
    /// Of the cgroups held to quotas, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<Vec<Enforced>>,
}

impl Seen {
    /// Return what a cgroup really cost, in percent of one CPU: its own time, without what ran in it for others, with what ran
    /// elsewhere for it.
    pub fn cost(&self, cgroup: &str) -> f64 {
        let row = self.status.cgroups.iter().find(|row| row.name == cgroup);
        row.map_or(0.0, |row| {
            let [own, network, hosted] =
                [row.cpu_ns.unwrap_or(0), row.softirq_ns.unwrap_or(0), row.hosted_ns].map(|ns| ns as f64);
            (own + network - hosted) * 100.0 / self.status.interval_ns.max(1) as f64
        })
    }
}

/// A journal that goes with the turn.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// How long the containers' CPU has been idle, in ns.
fn idle_ns() -> Result<u64, SceneError> {
    const STAT: &str = "/proc/stat";
    let text = about(STAT, fs::read_to_string(STAT))?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{INSIDE} ")));
    // User, nice, system, idle, and waiting for input and output, in hundredths of a second.
    let ticks = |line: &str| line.split(' ').skip(3).take(2).map(|word| word.parse::<u64>().ok()).sum::<Option<u64>>();
    let ticks = line.and_then(ticks).ok_or_else(|| std::io::Error::other("no line of the containers' CPU"));
    Ok(about(STAT, ticks)? * 10_000_000)
}

impl Scene {
    /// Play a turn. It ends early when `is_over` says so.
    ///
    /// # Errors
    /// What is missing or went wrong, or [`SceneError::Interrupted`].
    pub fn turn(
        &self,
        traffic: Traffic,
        turn: Turn,
        times: Times,
        is_over: impl Fn() -> bool,
    ) -> Result<Seen, SceneError> {
        for container in &self.containers {
            self.steer(container, turn == Turn::Threads && traffic.way != Way::Out)?;
        }
        let mut meter = Meter::start()?;
        let journal = Kept(std::env::temp_dir().join(format!("{}journal", self.prefix)));
        let (victim, others) = self.cast(traffic, turn)?;
        let mut enforcer = match turn {
            Turn::Calm | Turn::Without => None,
            Turn::Accounts | Turn::Threads | Turn::EarlyDrop => Some(self.enforce(traffic, turn, &journal)?),
        };
        let mut spend = |time: Duration, enforcer: &mut Option<Enforcer>| {
            let end = Instant::now() + time;
            while Instant::now() < end {
                if is_over() {
                    return Err(SceneError::Interrupted);
                }
                thread::sleep(PERIOD.min(end.saturating_duration_since(Instant::now())));
                if let Some(enforcer) = enforcer {
                    enforcer.step()?;
                    if let [news, ..] = &enforcer.news()[..] {
                        let error = std::io::Error::other(news.to_string());
                        return Err(SceneError::File { what: "enforcement".to_owned(), error });
                    }
                }
            }
            Ok(match enforcer {
                Some(enforcer) => enforcer.report().map(|(status, enforced)| (status, Some(enforced)))?,
                None => (meter.read()?, None),
            })
        };
        let work = || {
            let received = others.iter().filter(|other| other.receives()).map(Actor::work).sum();
            let [work, ended] = [victim.work(), victim.ended()].map(|seen| about("the victim's work", seen));
            Ok::<_, SceneError>([work?, about("what came", received)?, idle_ns()?, ended?, self.threads_ns()])
        };
        spend(times.before, &mut enforcer)?;
        let (began, at) = (work()?, Instant::now());
        let (mut status, enforced) = spend(times.measured, &mut enforcer)?;
        let (ended, took) = (work()?, at.elapsed().as_secs_f64());
        let [mut work, received, idle, between, threads] =
            [0, 1, 2, 3, 4].map(|n| ended[n].saturating_sub(began[n]) as f64 / took);
        // Of commands there are few: they are counted from the end of one to the end of another.
        if between > 0.0 {
            work *= 1e9 / between / took;
        }
        if let Some(enforcer) = enforcer {
            enforcer.end()?;
        }
        for container in &self.containers {
            self.complete(&mut status, &meter, container.cgroup());
        }
        Ok(Seen { turn, work, received, idle: idle / 1e7, threads: threads / 1e7, status, enforced })
    }

    /// Start all who take part: the victim, and the others.
    fn cast(&self, traffic: Traffic, turn: Turn) -> Result<(Actor, Vec<Actor>), SceneError> {
        let inside = |number: usize, role: &Role| Actor::start(self, Some(&self.containers[number]), INSIDE, role);
        let victim = inside(0, &self.victim)?;
        let Traffic { protocol, way, rate, size, count } = traffic;
        // CPUs that share a core slow each other down: outside it is as busy in turns without traffic.
        let mut others = vec![Actor::start(self, None, OUTSIDE, &Role::Fill)?];
        let count = if turn == Turn::Calm { 0 } else { count.min(self.containers.len() - 1) };
        let port = |address| SocketAddr::from((address, PORT));
        if matches!(way, Way::Out | Way::Both) && count > 0 {
            others.push(Actor::start(self, None, OUTSIDE, &Role::Receive(protocol))?);
        }
        for (number, container) in self.containers.iter().enumerate().skip(1) {
            let send = || Role::Send(protocol, rate, size, vec![port(container.outside())]);
            let roles = match way {
                _ if number > count => vec![Role::Compute],
                Way::In => vec![Role::Receive(protocol)],
                Way::Out => vec![send()],
                Way::Both => vec![Role::Receive(protocol), send()],
                Way::Answers => vec![Role::Answer],
            };
            for role in roles {
                others.push(inside(number, &role)?);
            }
        }
        if count > 0 {
            let to = self.containers[1..=count].iter().map(|container| port(container.address())).collect();
            let role = match way {
                Way::In | Way::Both => Some(Role::Send(protocol, rate, size, to)),
                Way::Out => None,
                Way::Answers => Some(Role::Ask(rate, size, to)),
            };
            others.extend(role.map(|role| Actor::start(self, None, OUTSIDE, &role)).transpose()?);
        }
        Ok((victim, others))
    }

    fn enforce(&self, traffic: Traffic, turn: Turn, journal: &Kept) -> Result<Enforcer, SceneError> {
        let wanted = |cgroup: &str| Wanted { cgroup: cgroup.to_owned(), quota: None };
        let wanted: Vec<Wanted> = self.containers.iter().map(|container| wanted(container.cgroup())).collect();
        let means = match turn {
            Turn::Calm | Turn::Without | Turn::Accounts => None,
            Turn::Threads => Some(Means::Threads),
            Turn::EarlyDrop => Some(Means::EarlyDrop),
        };
        let flooded = self.containers.iter().skip(1).take(traffic.count);
        let port = |container: &Container| {
            let device = format!("{}@{}", container.device, container.namespace);
            Some(Port { device, cgroup: container.cgroup.clone(), means: means? })
        };
        let ports: Vec<Port> = flooded.filter_map(port).collect();
        Ok(Enforcer::start(&wanted, &ports, PERIOD, &journal.0)?)
    }

    /// Add a row for a cgroup without network work.
    fn complete(&self, status: &mut Status, meter: &Meter, cgroup: &str) {
        if status.cgroups.iter().any(|row| row.name == cgroup) {
            return;
        }
        let folder = self.containers.iter().find(|container| container.cgroup == cgroup).map(|c| &c.folders[0]);
        let id = folder.and_then(|folder| fs::metadata(folder).ok()).map(|of| std::os::unix::fs::MetadataExt::ino(&of));
        if let Some(id) = id {
            status.cgroups.push(Row::without_network(cgroup, id, meter.interval().own_cpu(id)));
        }
    }
}
