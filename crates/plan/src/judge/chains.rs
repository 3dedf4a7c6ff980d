//! What a plan says of chains and their functions.

use super::Judge;
use crate::plan::{ChainPlan, Device, FunctionPlan, Why};
use crate::tasks::Start;
use catena_plan_alpine::tree::{SchedulerTree, Unit};
use catena_plan_model::check::at_sites;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, Node, NodeId};
use catena_plan_model::profile::QUEUE_PACKETS;
use catena_plan_model::rack::SwitchKind;

impl Judge<'_> {
    /// Promises are those of the problem, rates those of the placement, functions where they are placed, in their order.
    pub(super) fn chains(&mut self) {
        let (plan, problem, report) = (self.plan, self.problem, self.report);
        if !self.as_many("chains", plan.chains.len(), problem.chains.len()) {
            return;
        }
        for (id, says) in plan.chains.iter().enumerate() {
            let (is, checked, at) = (&problem.chains[id], &report.chains[id], format!("chains[{id}]"));
            let finite = |figure: f64| figure.is_finite().then_some(figure);
            self.same(format!("{at}.name"), &says.name, &is.name);
            self.same(format!("{at}.t_min_bps"), &says.t_min_bps, &is.t_min_bps);
            self.same(format!("{at}.t_max_bps"), &says.t_max_bps, &finite(is.t_max_bps));
            self.same(format!("{at}.d_max_ns"), &says.d_max_ns, &finite(is.d_max_ns));
            self.close(format!("{at}.rate_bps"), says.rate_bps, checked.rate_bps, checked.rate_bps);
            self.close(format!("{at}.slack_bps"), says.slack_bps, checked.marginal_bps, checked.rate_bps);
            self.close(format!("{at}.latency_ns"), says.latency_ns, checked.latency.used, checked.latency.used);
            self.close(format!("{at}.batch_ns"), says.batch_ns, checked.batch_ns, checked.batch_ns);
            let (waits, told) = (self.waits(&says.name), says.queue_ns.unwrap_or(-1.0));
            self.close(format!("{at}.queue_ns"), told, waits.unwrap_or(-1.0), waits.unwrap_or(1.0));
            self.close(format!("{at}.bounces"), says.bounces, checked.visits, checked.visits);
            self.same(format!("{at}.edges"), &says.edges, &is.edges);
            self.functions(id, says);
            self.bounds(id, says);
        }
        for (id, says) in plan.borrowed.iter().enumerate() {
            let mut all = problem.chains.iter().flat_map(|chain| &chain.nodes);
            if !all.any(|node| node.function == says.function) {
                self.wrong(format!("borrowed[{id}]"), format!("no chain has {}", says.function));
            }
        }
    }

    /// Nanoseconds of the full queues on a chain's way; None: there are none.
    fn waits(&self, chain: &str) -> Option<f64> {
        let policy = self.plan.policy.as_ref()?;
        let mut sum = None;
        for tasks in self.plan.servers.iter().filter_map(|server| server.tasks.as_ref()) {
            let mut most = vec![0.0; tasks.tasks.len()];
            limits(&tasks.tree, f64::INFINITY, 8.0 * self.plan.packet_bytes, &mut most);
            for (task, most) in tasks.tasks.iter().zip(most) {
                let of = match &task.start {
                    Start::Port => continue,
                    Start::Function { chain, .. } => Some(chain),
                    Start::Class(class) => policy.chains.iter().find(|c| c.classes.contains(class)).map(|c| &c.name),
                };
                if of.is_some_and(|name| name == chain) {
                    let taken = if most < task.packets { most } else { task.packets };
                    let wait = if taken > 0.0 { 1e9 * QUEUE_PACKETS as f64 / taken } else { f64::MAX };
                    sum = Some((sum.unwrap_or(0.0) + wait).min(f64::MAX));
                }
            }
        }
        sum
    }

    /// Reasons that the problem alone tells are so; those that ask what another placement would do are not judged.
    fn why(&mut self, at: &str, says: &FunctionPlan, is: &Node, site: Site) -> bool {
        let kind = self.problem.switch.as_ref().map(|switch| &switch.kind);
        let runs = match kind {
            Some(SwitchKind::Pisa(_)) => is.pisa.is_some(),
            Some(SwitchKind::OpenFlow { .. }) => is.openflow.is_some(),
            Some(SwitchKind::Plain { .. }) | None => false,
        };
        let so = match (&says.why, site) {
            (Why::OnlyThere, Site::Switch) => is.server.is_none() && is.smart_nic.is_none(),
            (Why::OnlyThere, Site::SmartNic(_)) => is.server.is_none(),
            (Why::NoCore { server_cycles }, Site::Switch) => *server_cycles == is.server,
            (Why::CardForCore { card_cycles, server_cycles }, Site::SmartNic(_)) => {
                (Some(*card_cycles), Some(*server_cycles)) == (is.smart_nic, is.server)
            }
            (Why::Guarded, Site::Server(_)) => is.guarded,
            (Why::NoSwitch, Site::Server(_)) => kind.is_none(),
            (Why::Forwards, Site::Server(_)) => matches!(kind, Some(SwitchKind::Plain { .. })),
            (Why::NotOnSwitch, Site::Server(_)) => kind.is_some() && !runs,
            (
                Why::TableOrder
                | Why::SwitchFull { .. }
                | Why::Late { .. }
                | Why::Bounces { .. }
                | Why::Core { .. }
                | Why::NoGain,
                Site::Server(_),
            ) => runs,
            _ => false,
        };
        if !so {
            self.wrong(format!("{at}.why"), format!("`{}` is not so", says.why));
        }
        so
    }

    /// What a reason says of the same chain with the function on the switch is so.
    fn why_not(&mut self, at: &str, id: ChainId, node: NodeId, why: &Why) {
        if !matches!(why, Why::Late { .. } | Why::Bounces { .. } | Why::Core { .. } | Why::NoGain) {
            return;
        }
        let (sites, chain) = (&self.placement.sites[id], &self.problem.chains[id]);
        let mut moved = sites.clone();
        moved[node] = Site::Switch;
        let (now, then) = (at_sites(self.problem, id, sites), at_sites(self.problem, id, &moved));
        let group = self.placement.subgroups.iter().find(|group| group.chain == id && group.nodes.contains(&node));
        let others = group.map_or(&[][..], |group| &group.nodes).iter().filter(|other| **other != node);
        let others: Vec<&str> = others.map(|other| chain.nodes[*other].name.as_str()).collect();
        let near = |says: f64, is: f64| (says - is).abs() <= super::TOLERANCE * is.abs().max(1e-3);
        let more = |then: f64, now: f64| then > now * (1.0 - super::TOLERANCE);
        let so = match why {
            Why::Late { then_ns, most_ns } => {
                near(*then_ns, then.latency_ns) && *most_ns == chain.d_max_ns && more(then.latency_ns, chain.d_max_ns)
            }
            Why::Bounces { beside, now: says_now, then: says_then } => {
                let more = then.visits > now.visits;
                beside.iter().eq(&others) && near(*says_now, now.visits) && near(*says_then, then.visits) && more
            }
            Why::Core { beside } => beside.iter().eq(&others) && then.subgroups > now.subgroups,
            _ => then.subgroups <= now.subgroups && more(chain.d_max_ns, then.latency_ns),
        };
        if !so {
            self.wrong(format!("{at}.why"), format!("`{why}` is not so"));
        }
    }

    fn functions(&mut self, id: ChainId, chain: &ChainPlan) {
        let (nodes, sites) = (&self.problem.chains[id].nodes, &self.placement.sites[id]);
        let place = format!("chains[{id}].functions");
        if !self.as_many(&place, chain.functions.len(), nodes.len()) {
            return;
        }
        for (n, (says, (is, site))) in chain.functions.iter().zip(nodes.iter().zip(sites)).enumerate() {
            let at = format!("{place}[{n}]");
            self.same(format!("{at}.name"), &says.name, &is.name);
            self.same(format!("{at}.function"), &says.function, &is.function);
            self.same(format!("{at}.share"), &says.share, &is.share);
            if self.why(&at, says, is, *site) {
                self.why_not(&at, id, n, &says.why);
            }
            let (device, on, cycles) = match *site {
                Site::Switch => {
                    let switch = self.problem.switch.as_ref();
                    (switch.map_or(Device::PlainSwitch, |s| Device::of(&s.kind)), switch.map(|s| s.name.clone()), None)
                }
                Site::Server(s) => (Device::Server, Some(self.problem.servers[s].name.clone()), is.server),
                Site::SmartNic(c) => (Device::SmartNic, Some(self.problem.smart_nics[c].name.clone()), is.smart_nic),
            };
            self.same(format!("{at}.device"), &says.device, &device);
            self.same(format!("{at}.on"), &says.on, &on.unwrap_or_default());
            self.same(format!("{at}.cycles"), &says.cycles, &cycles);
            let borrowed = self.plan.borrowed.iter().any(|one| one.function == is.function);
            self.same(format!("{at}.borrowed"), &says.borrowed, &borrowed);
            self.cores_of(&at, &chain.name, says, *site);
        }
    }

    /// A function on a server is in the subgroup that it names, and has that subgroup's cores.
    fn cores_of(&mut self, at: &str, chain: &str, function: &FunctionPlan, site: Site) {
        let Site::Server(server) = site else {
            self.same(format!("{at}.subgroup"), &function.subgroup, &None);
            self.same(format!("{at}.cores"), &function.cores, &Vec::new());
            return;
        };
        let subgroups = self.plan.servers.get(server).map_or(&[][..], |server| &server.subgroups);
        let mine = subgroups.iter().position(|g| g.chain == chain && g.functions.contains(&function.name));
        self.same(format!("{at}.subgroup"), &function.subgroup, &mine);
        if let Some(mine) = mine {
            self.same(format!("{at}.cores"), &function.cores, &subgroups[mine].on);
        }
    }
}

/// The packets per second, of `bits` each, that limits let each task take, `above` those over `tree`; a task may stand at several
/// places.
fn limits(tree: &SchedulerTree, above: f64, bits: f64, most: &mut [f64]) {
    match tree {
        SchedulerTree::Task(task) => most.get_mut(*task).into_iter().for_each(|most| *most += above),
        SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
            children.iter().for_each(|child| limits(child, above, bits, most));
        }
        SchedulerTree::Fair(children) => children.iter().for_each(|(_, child)| limits(child, above, bits, most)),
        SchedulerTree::Limit { unit, rate, child, .. } => {
            let packets = if *unit == Unit::Bits { *rate as f64 / bits } else { *rate as f64 };
            limits(child, if packets < above { packets } else { above }, bits, most);
        }
    }
}
