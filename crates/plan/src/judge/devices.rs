//! Whether devices hold what runs on them, and whether packets between two devices say what the paths need: every way that a rule
//! leads over a link, once, in words that mean one thing there.

use std::collections::{BTreeMap, BTreeSet};

use catena_plan_model::placement::Site;
use catena_plan_model::rack::SwitchKind;
use catena_plan_model::switch::Feasible;

use super::Judge;
use crate::deployment::Deployment;
use crate::deployment::devices::{Holds, Tunnel, schedule};
use crate::deployment::paths::{Next, Path};
use crate::plan::Device;

/// What somebody says on a link: to which device, whether from the switch, the path and what comes next.
type Word = (String, bool, u32, String);

impl Judge<'_> {
    pub(super) fn devices(&mut self, says: &Deployment, switch: &dyn Feasible) {
        let mut is: BTreeMap<&str, Device> = BTreeMap::new();
        for instance in &says.instances {
            let segment = says.segments.iter().find(|segment| segment.name == instance.segment);
            is.extend(segment.map(|segment| (instance.on.as_str(), segment.device)));
        }
        if let Some(about) = self.problem.switch.as_ref().filter(|_| !says.tunnels.is_empty()) {
            is.insert(&about.name, Device::of(&about.kind));
        }
        let said: BTreeMap<&str, Device> = says.devices.iter().map(|own| (own.on.as_str(), own.device)).collect();
        self.same("deployment.devices: each once", &said.len(), &says.devices.len());
        self.same("deployment.devices", &said, &is);
        for holds in &says.devices {
            let own = |segment: &&crate::deployment::Segment| says.of(&segment.name).any(|i| i.on == holds.on);
            let segments = says.segments.iter().filter(own).map(|segment| segment.name.clone());
            let programs: Vec<String> = segments.filter(|_| holds.device == Device::SmartNic).collect();
            self.same(format!("deployment.devices: programs of {}", holds.on), &holds.programs, &programs);
            self.tables(holds, switch);
            let server = self.plan.servers.iter().find(|server| server.name == holds.on);
            let schedule = server.filter(|_| holds.device == Device::Server).map(schedule);
            self.same(format!("deployment.devices: schedule of {}", holds.on), &holds.schedule, &schedule);
        }
        self.tunnels(says);
    }

    /// Each function on the switch is in a table, those of a path further and further down, and no table is too full.
    fn tables(&mut self, holds: &Holds, switch: &dyn Feasible) {
        let at = format!("deployment.devices: tables of {}", holds.on);
        let on_switch: Vec<Vec<bool>> =
            self.placement.sites.iter().map(|sites| sites.iter().map(|site| *site == Site::Switch).collect()).collect();
        let known = holds.device.is_switch() && !switch.layout(self.problem, &on_switch).is_empty();
        if !known {
            return self.same(format!("{at}: where none are known"), &holds.tables.len(), &0);
        }
        let place = |name: &str| -> Vec<usize> {
            let own = |(n, table): (usize, &crate::deployment::devices::Table)| {
                table.functions.iter().any(|own| own == name).then_some(n)
            };
            holds.tables.iter().enumerate().filter_map(own).collect()
        };
        let mut held = BTreeSet::new();
        for (chain, on) in self.problem.chains.iter().zip(&on_switch) {
            let name = |node: usize| format!("{}/{}", chain.name, chain.nodes[node].name);
            for node in (0..on.len()).filter(|node| on[*node]) {
                held.insert(name(node));
                if place(&name(node)).is_empty() {
                    self.wrong(at.clone(), format!("{} is in none", name(node)));
                }
            }
            for edge in chain.edges.iter().filter(|edge| on[edge.from] && on[edge.to]) {
                let (before, behind) = (place(&name(edge.from)), place(&name(edge.to)));
                if before.last() >= behind.first() {
                    self.wrong(at.clone(), format!("{} is not before {}", name(edge.from), name(edge.to)));
                }
            }
        }
        let other = holds.tables.iter().flat_map(|table| &table.functions).find(|own| !held.contains(*own));
        if let Some(other) = other {
            self.wrong(at.clone(), format!("{other} is not on the switch"));
        }
        for table in &holds.tables {
            let once: BTreeSet<&String> = table.functions.iter().collect();
            self.same(format!("{at}: functions in {}, each once", table.name), &table.functions.len(), &once.len());
        }
        match self.problem.switch.as_ref().map(|switch| &switch.kind) {
            Some(SwitchKind::Pisa(_)) => self.stages(&at, holds),
            Some(SwitchKind::OpenFlow { .. }) => self.flow_tables(&at, holds),
            Some(SwitchKind::Plain { .. }) | None => {}
        }
    }

    fn stages(&mut self, at: &str, holds: &Holds) {
        let Some(SwitchKind::Pisa(stages)) = self.problem.switch.as_ref().map(|switch| &switch.kind) else { return };
        let number = |name: &str| name.strip_prefix("stage ").and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
        let numbers: Vec<u32> = holds.tables.iter().map(|table| number(&table.name)).collect();
        let ascend = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || numbers.iter().any(|n| *n == 0 || *n > stages.stages) {
            self.wrong(at, format!("they are called {numbers:?}"));
        }
        for table in &holds.tables {
            let room = [stages.sram_blocks, stages.tcam_blocks, stages.tables].map(u64::from);
            if [table.sram, table.tcam, table.tables].iter().zip(room).any(|(used, room)| *used > room)
                || table.entries > 0
                || table.functions.is_empty()
            {
                self.wrong(at, format!("{} cannot hold that", table.name));
            }
        }
        for table in &holds.tables {
            let stage = self.report.stages.iter().find(|stage| stage.name == table.name);
            let tables = stage.map_or(0, |stage| stage.tables.used);
            self.same(format!("{at}: tables in {}", table.name), &table.tables, &tables);
        }
        let sum = |of: fn(&crate::deployment::devices::Table) -> u64| holds.tables.iter().map(of).sum::<u64>();
        let verdict = &self.report.switch;
        let is = (verdict.sram.used, verdict.tcam.used);
        self.same(format!("{at}: blocks"), &(sum(|table| table.sram), sum(|table| table.tcam)), &is);
    }

    fn flow_tables(&mut self, at: &str, holds: &Holds) {
        let Some(SwitchKind::OpenFlow { tables }) = self.problem.switch.as_ref().map(|switch| &switch.kind) else {
            return;
        };
        let mut functions = 0;
        let mut order = Vec::new();
        for held in &holds.tables {
            let Some((n, table)) = tables.iter().enumerate().find(|(_, table)| table.name == held.name) else {
                self.wrong(at, format!("there is no table {}", held.name));
                continue;
            };
            order.push(n);
            functions += held.functions.len();
            let mut entries: u64 = 0;
            for name in &held.functions {
                let nodes = self.problem.chains.iter().flat_map(|chain| {
                    chain.nodes.iter().filter(move |node| format!("{}/{}", chain.name, node.name) == *name)
                });
                for node in nodes {
                    entries += node.openflow.unwrap_or(0) as u64;
                    if !table.functions.contains(&node.function) {
                        self.wrong(at, format!("{} cannot hold {name}", held.name));
                    }
                }
            }
            self.same(format!("{at}: entries of {}", held.name), &held.entries, &entries);
            if entries > u64::from(table.entries) || held.sram + held.tcam + held.tables > 0 {
                self.wrong(at, format!("{} cannot hold that", held.name));
            }
        }
        let all: BTreeSet<&String> = holds.tables.iter().flat_map(|table| &table.functions).collect();
        self.same(format!("{at}: each function in one"), &functions, &all.len());
        if !order.is_sorted_by(|a, b| a < b) {
            self.wrong(at, "they are not in the switch's order");
        }
    }

    /// The link of each function that is not on the switch, and its device.
    pub(super) fn ends(&self) -> BTreeMap<String, (String, String)> {
        let mut links = BTreeMap::new();
        for chain in &self.plan.chains {
            for function in chain.functions.iter().filter(|function| !function.device.is_switch()) {
                let server = self.plan.servers.iter().find(|server| server.name == function.on);
                let group = server.zip(function.subgroup).and_then(|(server, group)| server.subgroups.get(group));
                let link = group.map_or_else(|| function.on.clone(), |group| group.link.clone());
                links.insert(format!("{}/{}", chain.name, function.name), (link, function.on.clone()));
            }
        }
        links
    }

    fn tunnels(&mut self, says: &Deployment) {
        let Some(switch) = &self.problem.switch else {
            return self.same("deployment.tunnels: without a switch", &says.tunnels.len(), &0);
        };
        let links = self.ends();
        let mut needed: BTreeSet<Word> = BTreeSet::new();
        for path in &says.paths {
            for rule in &path.rules {
                let to = match &rule.to {
                    Next::Drop | Next::Function(_) => continue,
                    Next::Hop(si) => {
                        path.hops.iter().find(|hop| hop.si == *si).and_then(|hop| links.get(&hop.function))
                    }
                    Next::In | Next::Out => None,
                };
                let word = |place: &(String, String), from_switch| {
                    (format!("{} at {}", place.1, place.0), from_switch, path.spi, format!("{:?}", rule.to))
                };
                needed.extend(links.get(&rule.from).map(|place| word(place, false)));
                needed.extend(to.map(|place| word(place, true)));
            }
        }
        let mut said: BTreeSet<Word> = BTreeSet::new();
        let mut count = 0;
        for tunnel in &says.tunnels {
            count += tunnel.says.len();
            let place = format!("{} at {}", tunnel.on, tunnel.link);
            said.extend(tunnel.says.iter().map(|s| (place.clone(), s.from_switch, s.spi, format!("{:?}", s.next))));
            let at = format!("deployment.tunnels: {}", tunnel.link);
            self.same(format!("{at}: by"), &tunnel.by, &switch.tunnels);
            let ends = [&switch.name, &tunnel.link].map(|name| switch.addresses.get(name).copied());
            let ends = ends.iter().copied().collect::<Option<Vec<_>>>();
            self.same(format!("{at}: addresses"), &tunnel.addresses.map(|ends| ends.to_vec()), &ends);
            self.words(&at, says, tunnel);
        }
        self.same("deployment.tunnels: each once", &count, &said.len());
        self.same("deployment.tunnels: what packets say", &said, &needed);
    }

    /// What is said on a link means one thing, and is said as the tunnel says things.
    fn words(&mut self, at: &str, says: &Deployment, tunnel: &Tunnel) {
        let (mut ids, mut indices) = (BTreeSet::new(), BTreeSet::new());
        for one in &tunnel.says {
            let path: Option<&Path> = says.paths.iter().find(|path| path.spi == one.spi);
            let lowest = path.and_then(|path| path.hops.iter().map(|hop| hop.si).min()).unwrap_or(u8::MAX);
            let fits = match one.next {
                Next::Hop(si) => one.si == si,
                // Below all hops, so that nobody takes it for one; each end has its own (see [`Path::index`]).
                Next::Out => one.si > 0 && lowest.checked_sub(1) == Some(one.si),
                Next::In => one.si > 0 && lowest.checked_sub(2) == Some(one.si),
                Next::Function(_) | Next::Drop => false,
            };
            if !fits || !indices.insert((one.from_switch, one.spi, one.si)) {
                self.wrong(at, format!("index {} of path {} is not that of {:?}", one.si, one.spi, one.next));
            }
            let is_id = match (tunnel.by.ids(), one.id) {
                (None, None) => true,
                (Some(range), Some(id)) => range.contains(&id) && ids.insert((one.from_switch, id)),
                _ => false,
            };
            if !is_id {
                self.wrong(at, format!("{:?} stands for index {} of path {}", one.id, one.si, one.spi));
            }
        }
        // An end has the same index on each link of its path.
        for other in says.tunnels.iter().flat_map(|tunnel| &tunnel.says) {
            let differs = |one: &&crate::deployment::devices::Says| {
                (one.spi, &one.next) == (other.spi, &other.next) && one.si != other.si
            };
            if let Some(one) = tunnel.says.iter().find(differs) {
                self.wrong(at, format!("path {} ends with index {} and {}", one.spi, one.si, other.si));
            }
        }
    }
}
