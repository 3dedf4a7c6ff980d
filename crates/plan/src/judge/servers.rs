//! What a plan says of servers, their cores, links, SmartNICs and the switch.

use super::{Judge, TOLERANCE};
use crate::plan::{ServerPlan, SubgroupPlan};
use catena_plan_model::placement::Link;
use catena_plan_model::problem::ServerId;
use catena_plan_model::rack::SwitchKind;
use catena_plan_model::switch::Use;

impl Judge<'_> {
    /// Subgroups are those of the placement, and every part of a core is given once.
    pub(super) fn servers(&mut self) {
        let (plan, problem) = (self.plan, self.problem);
        if !self.as_many("servers", plan.servers.len(), problem.servers.len()) {
            return;
        }
        for (id, (says, is)) in plan.servers.iter().zip(&problem.servers).enumerate() {
            let at = format!("servers[{id}]");
            self.same(format!("{at}.name"), &says.name, &is.name);
            self.same(format!("{at}.clock_hz"), &says.clock_hz, &is.clock_hz);
            self.same(format!("{at}.cores"), &says.cores, &is.cores);
            let used = self.report.cores[id].used;
            self.close(format!("{at}.cores_used"), says.cores_used, used, used.max(1.0));
            self.steering(&at, says);
            self.subgroups(id, says);
            self.workers(&at, id, says);
        }
    }

    /// Cores for steering are the first ones of a socket, and then of the others.
    fn steering(&mut self, at: &str, says: &ServerPlan) {
        let (all, each) = (says.cores as usize + says.steering.len(), says.cores_per_socket.max(1));
        let is_so = (0..all.div_ceil(each as usize)).any(|socket| {
            let socket = socket as u32;
            let others = (0..all as u32).filter(|core| core / each != socket);
            (0..all as u32)
                .filter(|core| core / each == socket)
                .chain(others)
                .take(says.steering.len())
                .eq(says.steering.iter().copied())
        });
        if !is_so {
            self.wrong(format!("{at}.steering"), format!("{:?} are not the first cores of a socket", says.steering));
        }
    }

    fn subgroups(&mut self, server: ServerId, says: &ServerPlan) {
        let placed = self.placement.subgroups.iter().enumerate().filter(|(_, group)| group.server == server);
        let here: Vec<usize> = placed.map(|(index, _)| index).collect();
        let place = format!("servers[{server}].subgroups");
        if !self.as_many(&place, says.subgroups.len(), here.len()) {
            return;
        }
        for (n, (says, index)) in says.subgroups.iter().zip(here).enumerate() {
            self.subgroup(&format!("{place}[{n}]"), says, index);
        }
    }

    fn subgroup(&mut self, at: &str, says: &SubgroupPlan, index: usize) {
        let is = &self.placement.subgroups[index];
        let chain = &self.problem.chains[is.chain];
        let names: Vec<String> = is.nodes.iter().map(|&node| chain.nodes[node].name.clone()).collect();
        self.same(format!("{at}.chain"), &says.chain, &chain.name);
        self.same(format!("{at}.functions"), &says.functions, &names);
        self.same(format!("{at}.cores"), &says.cores, &is.cores);
        self.same(format!("{at}.replicable"), &says.replicable, &self.report.replicable[index]);
        let link = self.report.links.iter().position(|(server, link, _)| (*server, *link) == (is.server, is.link));
        let name = link.and_then(|link| self.plan.links.get(link)).map(|link| link.name.clone());
        self.same(format!("{at}.link"), &says.link, &name.unwrap_or_default());
        let [alone, spread] = self.report.cycles[index];
        // A core and next to nothing may be reckoned as one or as several; all figures are then of the same.
        let either = is.cores != 1.0 && (is.cores - 1.0).abs() <= 1e-5;
        let nearer_to_several = (says.cycles - spread).abs() < (says.cycles - alone).abs();
        let several = if either { nearer_to_several } else { is.cores > 1.0 };
        let cycles = if several { spread } else { alone };
        let clock_hz = self.problem.servers[is.server].clock_hz;
        let capacity = is.cores * clock_hz / cycles * chain.packet_bytes * 8.0;
        let rate = self.placement.rates_bps[is.chain];
        self.close(format!("{at}.cycles"), says.cycles, cycles, cycles);
        self.close(format!("{at}.capacity_bps"), says.capacity_bps, capacity, capacity);
        self.close(format!("{at}.load"), says.load, rate / capacity, 1.0);
    }

    /// Every core is one of the server's, and no more than one is given of it.
    fn workers(&mut self, at: &str, server: ServerId, says: &ServerPlan) {
        let cores = says.cores as usize + says.steering.len();
        let mut given = vec![0.0; says.subgroups.len()];
        let mut on: Vec<Vec<u32>> = vec![Vec::new(); says.subgroups.len()];
        for (n, worker) in says.workers.iter().enumerate() {
            let at = format!("{at}.workers[{n}]");
            if worker.core as usize >= cores || says.steering.contains(&worker.core) {
                self.wrong(format!("{at}.core"), format!("the server has no core {} for functions", worker.core));
            }
            if says.workers[..n].iter().any(|other| other.core >= worker.core) {
                self.wrong(format!("{at}.core"), format!("core {} comes twice, or not in its order", worker.core));
            }
            self.same(format!("{at}.socket"), &worker.socket, &(worker.core / says.cores_per_socket.max(1)));
            let mut sum = 0.0;
            for (p, part) in worker.parts.iter().enumerate() {
                let (Some(given), Some(on)) = (given.get_mut(part.subgroup), on.get_mut(part.subgroup)) else {
                    self.wrong(format!("{at}.parts[{p}]"), format!("there is no subgroup {}", part.subgroup));
                    continue;
                };
                *given += part.share;
                sum += part.share;
                on.push(worker.core);
                if !(part.share > 0.0 && part.share <= 1.0 + TOLERANCE) {
                    self.wrong(format!("{at}.parts[{p}]"), format!("{} of a core", part.share));
                }
            }
            if sum > 1.0 + TOLERANCE {
                self.wrong(format!("{at}.parts"), format!("{sum} of one core are given"));
            }
            self.same(format!("{at}.tree: there is one"), &worker.tree.is_some(), &says.tasks.is_none());
            if let (Some(tree), None) = (&worker.tree, &says.tasks) {
                self.worker_tree(&format!("{at}.tree"), server, worker, tree);
            }
        }
        for (n, (group, (given, on))) in says.subgroups.iter().zip(given.into_iter().zip(on)).enumerate() {
            self.same(format!("{at}.subgroups[{n}].on"), &group.on, &on);
            if !group.replicable && group.on.len() > 1 {
                let what = format!("{} may have one core, and are on {:?}", group.functions.join(" and "), group.on);
                self.wrong(format!("{at}.subgroups[{n}].on"), what);
            }
            self.close(format!("{at}.subgroups[{n}]: parts of cores"), given, group.cores, group.cores.max(1.0));
        }
    }

    /// Links and SmartNICs are those of the problem, and take what the checker found.
    pub(super) fn links(&mut self) {
        let (plan, problem, report) = (self.plan, self.problem, self.report);
        if self.as_many("links", plan.links.len(), report.links.len()) {
            for (n, (says, (server, link, carried))) in plan.links.iter().zip(&report.links).enumerate() {
                let (at, server) = (format!("links[{n}]"), &problem.servers[*server].name);
                self.same(format!("{at}.server"), &says.server, server);
                self.same(format!("{at}.smart"), &says.smart, &matches!(link, Link::SmartNic(_)));
                self.same(format!("{at}.bps"), &says.bps, &carried.available);
                self.close(format!("{at}.used_bps"), says.used_bps, carried.used, carried.available);
                match link {
                    Link::SmartNic(card) => {
                        self.same(format!("{at}.name"), &says.name, &problem.smart_nics[*card].name)
                    }
                    Link::Nic(_) if !says.name.starts_with(&format!("{server}.")) => {
                        self.wrong(format!("{at}.name"), format!("{} is no card of {server}", says.name));
                    }
                    Link::Nic(_) => {}
                }
                if plan.links[..n].iter().any(|other| other.name == says.name) {
                    self.wrong(format!("{at}.name"), format!("{} comes twice", says.name));
                }
            }
        }
        if self.as_many("smart_nics", plan.smart_nics.len(), problem.smart_nics.len()) {
            for (n, (says, is)) in plan.smart_nics.iter().zip(&problem.smart_nics).enumerate() {
                self.same(format!("smart_nics[{n}].name"), &says.name, &is.name);
                self.same(format!("smart_nics[{n}].cycles_hz"), &says.cycles_hz, &is.cycles_hz);
                self.close(format!("smart_nics[{n}].used_hz"), says.used_hz, report.smart_nics[n].used, is.cycles_hz);
            }
        }
    }

    /// The switch takes what it says itself that it would take.
    pub(super) fn switch(&mut self) {
        let (says, is) = match (&self.plan.switch, &self.problem.switch) {
            (Some(says), Some(is)) => (says, is),
            (None, None) => return,
            (says, is) => return self.same("switch: there is one", &says.is_some(), &is.is_some()),
        };
        self.same("switch.name", &says.name, &is.name);
        let kind = match &is.kind {
            SwitchKind::Plain { .. } => "forwards only".to_owned(),
            SwitchKind::Pisa(stages) => format!("programmable, {} stages", stages.stages),
            SwitchKind::OpenFlow { tables } => format!("OpenFlow, {} tables", tables.len()),
        };
        self.same("switch.kind", &says.kind, &kind);
        let verdict = &self.report.switch;
        let runs = !matches!(is.kind, SwitchKind::Plain { .. });
        let there = |used: Use| (used.available > 0).then_some((used.used, used.available));
        self.same("switch.stages", &says.stages, &there(verdict.stages).filter(|_| runs));
        self.same("switch.sram", &says.sram, &there(verdict.sram));
        self.same("switch.tcam", &says.tcam, &there(verdict.tcam));
        self.same("switch.entries", &says.entries, &there(verdict.entries));
    }
}
