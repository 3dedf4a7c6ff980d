//! From a plan to what each of its devices needs.
//!
//! A [`Backend`] does that for one kind of device: it sees the policy, the whole plan and which device it is asked for, and
//! nobody else needs to know what it makes. [`lower`] asks, for each device that takes part, the one of its kind: also a switch that only
//! leads packets from device to device. Two of a kind are refused, for the second would never be asked.
//! [`OnHost`] is the one for servers. It makes a server do whole chains: where parts of a chain are on other devices, these have what they
//! need, and the server is refused.

mod as_planned;
mod on_host;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

use catena_plan::deployment::devices::{Holds, Tunnel};
use catena_plan::deployment::{Deployment, Instance, Segment};
use catena_plan::plan::{Device, Plan};
use catena_policy::PolicyGraph;

use crate::BuildError;
use crate::host::LowerError;
use crate::tasks::NotThere;

pub use on_host::{Hosted, OnHost};

/// Makes what devices of one kind need.
pub trait Backend {
    /// The kind of device.
    fn device(&self) -> Device;

    /// What a device needs to do its part of a plan.
    ///
    /// # Errors
    /// Why that cannot be made.
    fn lower(&self, part: &Part<'_>) -> Result<Box<dyn Artifact>, Unlowered>;
}

/// What a device needs: a pipeline, a program, rules. Whoever brings it there knows its type; as text it is for people.
pub trait Artifact: Any + Display {}

/// What the devices of a plan need, by their names.
#[derive(Default)]
pub struct Artifacts(BTreeMap<String, Box<dyn Artifact>>);

impl Artifacts {
    /// The devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What a device needs, as text.
    #[must_use]
    pub fn text(&self, on: &str) -> Option<String> {
        self.0.get(on).map(ToString::to_string)
    }

    /// Take what a device needs; None: there is no such device, or it needs something of another type.
    pub fn take<T: Artifact>(&mut self, on: &str) -> Option<T> {
        let there: &dyn Any = &**self.0.get(on)?;
        if !there.is::<T>() {
            return None;
        }
        let artifact: Box<dyn Any> = self.0.remove(on)?;
        artifact.downcast().ok().map(|artifact| *artifact)
    }
}

/// A device's part of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The policy that is planned.
    pub policy: &'a PolicyGraph,
    /// The plan.
    pub plan: &'a Plan,
    /// What runs of it.
    pub deployment: &'a Deployment,
    /// The device's name.
    pub on: &'a str,
}

impl<'a> Part<'a> {
    /// The instances on the device.
    pub fn instances(&self) -> impl Iterator<Item = &'a Instance> {
        let on = self.on;
        self.deployment.instances.iter().filter(move |instance| instance.on == on)
    }

    /// What it has to hold.
    #[must_use]
    pub fn holds(&self) -> Option<&'a Holds> {
        self.deployment.devices.iter().find(|holds| holds.on == self.on)
    }

    /// The tunnels that end there: of the switch, all.
    pub fn tunnels(&self) -> impl Iterator<Item = &'a Tunnel> {
        let part = *self;
        let is_switch = part.holds().is_some_and(|holds| holds.device.is_switch());
        part.deployment.tunnels.iter().filter(move |tunnel| is_switch || tunnel.on == part.on)
    }

    /// The segments that have instances there.
    pub fn segments(&self) -> impl Iterator<Item = &'a Segment> {
        let part = *self;
        self.deployment.segments.iter().filter(move |own| part.instances().any(|i| i.segment == own.name))
    }
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq)]
pub enum Unlowered {
    /// Nothing is placed.
    NothingRuns,
    /// Nobody makes anything for this device.
    NoBackend {
        /// Its name.
        on: String,
        /// Its kind.
        device: Device,
    },
    /// Two make something for devices of this kind.
    TwoBackends(Device),
    /// The server runs parts of chains, whose packets would come from and go to other devices.
    Partly {
        /// Its name.
        on: String,
        /// Why that is so.
        why: String,
    },
    /// The library lacks something.
    Library(LowerError),
    /// A list of rules cannot be read.
    Rules(Box<BuildError>),
    /// The plan's tasks are not this chain file's.
    Tasks(NotThere),
    /// Something else, in a back end's own words.
    Other(String),
}

impl Display for Unlowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlowered::NothingRuns => f.write_str("nothing is placed by this plan"),
            Unlowered::NoBackend { on, device } => {
                let a = if *device == Device::OpenFlowSwitch { "an" } else { "a" };
                write!(f, "{on} takes part, which is {a} {device}, and nothing is made for those yet")
            }
            Unlowered::TwoBackends(device) => {
                let a = if *device == Device::OpenFlowSwitch { "an" } else { "a" };
                write!(
                    f,
                    "two back ends make what {a} {device} needs: leave one of them out, for each kind of device has one"
                )
            }
            Unlowered::Partly { on, why } => {
                write!(f, "{on} is planned to run parts of chains ({why}), and nothing joins devices yet")
            }
            Unlowered::Library(error) => error.fmt(f),
            Unlowered::Rules(error) => error.fmt(f),
            Unlowered::Tasks(error) => error.fmt(f),
            Unlowered::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unlowered {}

/// Make what the devices of a plan need, each by the back end of its kind.
///
/// # Errors
/// The first device for which nothing can be made; or that two back ends are of one kind.
pub fn lower(policy: &PolicyGraph, plan: &Plan, backends: &[&dyn Backend]) -> Result<Artifacts, Unlowered> {
    let deployment = plan.deployment.as_ref().ok_or(Unlowered::NothingRuns)?;
    let kinds: Vec<Device> = backends.iter().map(|backend| backend.device()).collect();
    if let Some((_, twice)) = kinds.iter().enumerate().find(|(n, kind)| kinds[..*n].contains(kind)) {
        return Err(Unlowered::TwoBackends(*twice));
    }
    let mut made = Artifacts::default();
    for Holds { on, device, .. } in &deployment.devices {
        let backend = backends.iter().find(|backend| backend.device() == *device);
        let backend = backend.ok_or_else(|| Unlowered::NoBackend { on: on.clone(), device: *device })?;
        let artifact = backend.lower(&Part { policy, plan, deployment, on })?;
        made.0.insert(on.clone(), artifact);
    }
    Ok(made)
}
