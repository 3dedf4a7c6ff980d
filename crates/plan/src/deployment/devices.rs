//! What each device has to hold: its tables or programs, and the tunnels that join it to the switch.
//!
//! All packets come and go by the switch, and from it to servers and cards and back (Lemur, §4.1: "the PISA switch coordinates
//! execution of the NF chain via routing"). Whoever sends a packet over a link says in it which path it is on, and which hop comes
//! next; from the last one it goes back to the switch with an index below that of all hops. Where there is no header for both, as with
//! OpenFlow (§5.3), a number stands for them, on one link in one direction. A number keeps its meaning from one plan to the next, so
//! that packets on their way arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use catena_plan_model::placement::Site;
use catena_plan_model::rack::Wrap;
use catena_plan_model::switch::Feasible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::{Next, Path};
use super::{Deployment, segment_name};
use crate::plan::{Device, Plan, ServerPlan, WorkerPart, WorkerPlan};
use crate::policy::fnv_of;
use crate::tasks::TaskPlan;

/// A device that takes part, and what it has to hold beside its instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Holds {
    /// The device's name.
    pub on: String,
    /// What it is.
    pub device: Device,
    /// The stages of a P4 switch, as estimated, or the tables of an OpenFlow switch, in the order in which packets pass them; those
    /// that functions have something in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// The segments of which a SmartNIC runs a program each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// What stands for how the cores of a server work: their numbers, the tasks, and whose turn it is. Absent on other
    /// devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl Holds {
    fn new(on: &str, device: Device) -> Holds {
        Holds { on: on.to_owned(), device, tables: Vec::new(), programs: Vec::new(), schedule: None }
    }
}

/// A stage or table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it is called.
    pub name: String,
    /// The functions that have something in it, as `chain/function`.
    pub functions: Vec<String>,
    /// Blocks of SRAM that they take, of P4.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sram: u64,
    /// Blocks of TCAM that they take, of P4.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tcam: u64,
    /// Logical tables that they take, of P4.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tables: u64,
    /// Flow entries that they take, of OpenFlow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entries: u64,
}

/// Packets between the switch and another device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The link: the server and its card, `nf1.eth0`.
    pub link: String,
    /// The device at its other end.
    pub on: String,
    /// How packets say where they are.
    pub by: Wrap,
    /// The addresses of the switch's end and of the other one, where these are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<[IpAddr; 2]>,
    /// What they say: ascending by path, falling by index, to the device first.
    pub says: Vec<Says>,
}

/// What packets on a link say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Says {
    /// The path that they are on.
    pub spi: u32,
    /// Below the hops' indices: that they are at the path's end.
    pub si: u8,
    /// Whether they come from the switch; the others go to it.
    pub from_switch: bool,
    /// What comes next: a hop, or an end.
    pub next: Next,
    /// What stands for path and index on this link in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's interface")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Path {
    /// The index that packets have on the way to what comes next; None: they are nowhere on the way then.
    #[must_use]
    pub fn index(&self, next: &Next) -> Option<u8> {
        let last = self.hops.last().map_or(super::paths::FIRST_INDEX, |hop| hop.si);
        match next {
            Next::Hop(si) => Some(*si),
            Next::Out => last.checked_sub(1),
            Next::In => last.checked_sub(2),
            Next::Function(_) | Next::Drop => None,
        }
    }
}

/// Where a segment is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The device's name.
    pub(super) on: String,
    /// The link that packets come by; None on a switch, and where there is none.
    pub(super) link: Option<String>,
}

impl Deployment {
    /// Add what devices have to hold.
    ///
    /// # Errors
    /// Why that cannot be: for people.
    pub(super) fn equip(&mut self, plan: &Plan, switch: &dyn Feasible, old: Option<&Deployment>) -> Result<(), String> {
        self.tunnels = self.joined(plan, old)?;
        self.devices = self.held(plan, switch);
        Ok(())
    }

    fn held(&self, plan: &Plan, switch: &dyn Feasible) -> Vec<Holds> {
        let mut devices: Vec<Holds> = Vec::new();
        let is_used = self.segments.iter().any(|segment| segment.device.is_switch()) || !self.tunnels.is_empty();
        if let (Some(about), true) = (&plan.problem.switch, is_used) {
            devices.push(Holds { tables: tables(plan, switch), ..Holds::new(&about.name, Device::of(&about.kind)) });
        }
        for instance in &self.instances {
            let Some(segment) = self.segments.iter().find(|segment| segment.name == instance.segment) else { continue };
            if segment.device.is_switch() {
                continue;
            }
            let at = devices.iter().position(|device| device.on == instance.on).unwrap_or_else(|| {
                let server = plan.servers.iter().find(|server| server.name == instance.on);
                let schedule = server.filter(|_| segment.device == Device::Server).map(schedule);
                devices.push(Holds { schedule, ..Holds::new(&instance.on, segment.device) });
                devices.len() - 1
            });
            if let (Some(holds), Device::SmartNic) = (devices.get_mut(at), segment.device) {
                holds.programs.push(segment.name.clone());
            }
        }
        devices
    }

    /// Where each segment is.
    pub(super) fn places(&self, plan: &Plan) -> BTreeMap<String, Place> {
        let groups = plan.servers.iter().flat_map(|server| &server.subgroups);
        let links: BTreeMap<String, &String> =
            groups.map(|group| (segment_name(&group.chain, &group.functions), &group.link)).collect();
        let is_joined = plan.problem.switch.is_some();
        let place = |segment: &super::Segment| {
            let on = self.of(&segment.name).next()?.on.clone();
            let link = match segment.device {
                Device::Server => links.get(&segment.name).map(|link| (*link).clone()),
                Device::SmartNic => Some(on.clone()),
                _ => None,
            };
            Some((segment.name.clone(), Place { on, link: link.filter(|_| is_joined) }))
        };
        self.segments.iter().filter_map(place).collect()
    }

    fn joined(&self, plan: &Plan, old: Option<&Deployment>) -> Result<Vec<Tunnel>, String> {
        let Some(switch) = &plan.problem.switch else { return Ok(Vec::new()) };
        let places = self.places(plan);
        let of: BTreeMap<&str, &str> = self
            .segments
            .iter()
            .flat_map(|segment| segment.functions.iter().map(|function| (function.as_str(), segment.name.as_str())))
            .collect();
        let place = |function: &str| {
            let Place { on, link } = places.get(*of.get(function)?)?;
            Some((link.as_ref()?, on))
        };
        let mut found: BTreeMap<(&String, &String), Vec<Says>> = BTreeMap::new();
        for path in &self.paths {
            for rule in &path.rules {
                let Some(si) = path.index(&rule.to) else { continue };
                let hop = path.hops.iter().find(|hop| rule.to == Next::Hop(hop.si));
                let ends = [(place(&rule.from), false), (hop.and_then(|hop| place(&hop.function)), true)];
                for (end, from_switch) in ends {
                    let Some(end) = end else { continue };
                    let says = found.entry(end).or_default();
                    let one = Says { spi: path.spi, si, from_switch, next: rule.to.clone(), id: None };
                    if !says.contains(&one) {
                        says.push(one);
                    }
                }
            }
        }
        let tunnel = |((link, on), mut says): ((&String, &String), Vec<Says>)| {
            says.sort_by_key(|one| (!one.from_switch, one.spi, std::cmp::Reverse(one.si)));
            let ends = [&switch.name, link].map(|name| switch.addresses.get(name).copied());
            let addresses = if let [Some(own), Some(other)] = ends { Some([own, other]) } else { None };
            let before = old.and_then(|old| old.tunnels.iter().find(|own| (&own.link, &own.on) == (link, on)));
            number(&mut says, switch.tunnels, before).map_err(|why| format!("the tunnels of {link} {why}"))?;
            Ok(Tunnel { link: link.clone(), on: on.clone(), by: switch.tunnels, addresses, says })
        };
        found.into_iter().map(tunnel).collect()
    }
}

/// Give what packets say in each direction a number of its own, where there is no room for more. What had one keeps it; others get
/// the least that nobody has, and nobody had.
///
/// # Errors
/// Why there are not enough: for people.
fn number(says: &mut [Says], by: Wrap, before: Option<&Tunnel>) -> Result<(), String> {
    let Some(ids) = by.ids() else { return Ok(()) };
    let before = before.filter(|before| before.by == by).map_or(&[][..], |before| &before.says);
    for from_switch in [true, false] {
        let told = || before.iter().filter(move |one| one.from_switch == from_switch);
        let mut taken: BTreeSet<u32> = told().filter_map(|one| one.id).collect();
        let mut next = *ids.start();
        let mut own: Vec<&mut Says> = says.iter_mut().filter(|one| one.from_switch == from_switch).collect();
        let needed = own.len();
        for one in &mut own {
            if let Some(same) = told().find(|old| (old.spi, old.si, &old.next) == (one.spi, one.si, &one.next)) {
                one.id = same.id;
                continue;
            }
            while taken.contains(&next) {
                next += 1;
            }
            if !ids.contains(&next) {
                let most = ids.end();
                return Err(if needed > *most as usize {
                    format!("need {needed} numbers in one direction, and there are {most}")
                } else {
                    format!(
                        "need {needed} numbers in one direction beside those that are in use: plan anew, without --from"
                    )
                });
            }
            taken.insert(next);
            one.id = Some(next);
        }
    }
    Ok(())
}

/// What stands for how the cores of a server work: of two plans with the same, nothing has to be changed there.
pub(crate) fn schedule(server: &ServerPlan) -> String {
    let group = |part: &WorkerPart| server.subgroups.get(part.subgroup).map(|own| (&own.chain, &own.functions));
    let parts = |worker: &WorkerPlan| worker.parts.iter().map(group).collect::<Vec<_>>();
    let workers: Vec<_> = server.workers.iter().map(|worker| (worker.core, parts(worker), &worker.tree)).collect();
    let begins =
        |plan: &TaskPlan| plan.tasks.iter().map(|task| (task.start.clone(), task.modules.clone())).collect::<Vec<_>>();
    let tasks = server.tasks.as_ref().map(|plan| (begins(plan), &plan.tree));
    fnv_of(&(&server.steering, workers, tasks))
}

/// What the switch's tables hold.
fn tables(plan: &Plan, switch: &dyn Feasible) -> Vec<Table> {
    let Some(placement) = &plan.placement else { return Vec::new() };
    let on_switch: Vec<Vec<bool>> =
        placement.sites.iter().map(|sites| sites.iter().map(|site| *site == Site::Switch).collect()).collect();
    let name = |(chain, node): (usize, usize)| {
        let chain = plan.problem.chains.get(chain)?;
        Some(format!("{}/{}", chain.name, chain.nodes.get(node)?.name))
    };
    let stages = switch.layout(&plan.problem, &on_switch).into_iter().filter(|stage| !stage.holds.is_empty());
    let table = |stage: catena_plan_model::switch::Stage| Table {
        functions: stage.holds.iter().filter_map(|held| name(*held)).collect(),
        sram: stage.sram.used,
        tcam: stage.tcam.used,
        tables: stage.tables.used,
        entries: stage.entries.used,
        name: stage.name,
    };
    stages.map(table).collect()
}
