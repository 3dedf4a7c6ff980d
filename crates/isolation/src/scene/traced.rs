//! What accounts cost those whose packets they are of: the same processes with accounts and without, in turn.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::actor::{Actor, DATAGRAM, PORT, Protocol, Role};
use super::turn::Times;
use super::{INSIDE, OUTSIDE, Scene, SceneError, about};
use crate::Tracer;

/// What is measured of the first container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It receives on its core as fast as it can what another core sends: datagrams a second.
    Full,
    /// It sends to itself, a packet a softirq: us of CPU a packet, with the calls that send and receive it.
    Lone,
}

impl Scene {
    /// Measure, without accounts and with them, so often. The order changes from one pair to the next, and the processes
    /// go on meanwhile: what differs is the accounts.
    ///
    /// # Errors
    /// What is missing or went wrong.
    pub fn pairs(&self, load: Load, times: Times, pairs: usize) -> Result<Vec<[f64; 2]>, SceneError> {
        let receiver = &self.containers[0];
        self.steer(receiver, false)?;
        let role = if load == Load::Full { Role::Receive(Protocol::Udp) } else { Role::Exchange };
        let measured = Actor::start(self, Some(receiver), INSIDE, &role)?;
        let to = SocketAddr::from((receiver.address(), PORT));
        let other = if load == Load::Full { Role::Feed(measured.counter(), DATAGRAM, to) } else { Role::Fill };
        let _other = Actor::start(self, None, OUTSIDE, &other)?;
        let mut seen = Vec::new();
        for pair in 0..pairs {
            let mut both = [0.0; 2];
            for is_traced in [pair % 2 == 1, pair % 2 == 0] {
                let tracer = if is_traced { Some(Tracer::start()?) } else { None };
                thread::sleep(times.before);
                both[usize::from(is_traced)] = once(&measured, load, times.measured)?;
                drop(tracer);
            }
            seen.push(both);
        }
        Ok(seen)
    }
}

fn once(measured: &Actor, load: Load, time: Duration) -> Result<f64, SceneError> {
    let look = || Ok::<_, SceneError>([about("work", measured.work())?, about("CPU", measured.cpu())?]);
    let (began, at) = (look()?, Instant::now());
    thread::sleep(time);
    let (ended, took) = (look()?, at.elapsed().as_secs_f64());
    let [packets, cpu_ns] = [0, 1].map(|n| ended[n].saturating_sub(began[n]) as f64);
    Ok(match load {
        Load::Full => packets / took,
        Load::Lone => cpu_ns / 1e3 / packets.max(1.0),
    })
}
