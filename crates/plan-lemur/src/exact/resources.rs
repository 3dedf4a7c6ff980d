//! What placements compete for: cores, links, the cycles of SmartNICs, and what the switch forwards.

use catena_plan_model::estimate::{all_links, direct};
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Problem, ServerId};

/// Bits per second in a unit of rate: solvers like numbers near 1.
pub const UNIT: f64 = 1e9;

/// Chains without any other limit carry at most this, in [`UNIT`]s.
pub const NO_LIMIT: f64 = 1e6;

/// How far sums may be off because numbers are rounded, relative.
pub const ROUNDING: f64 = 1e-10;

/// Something that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Cores of a server.
    Cores(ServerId),
    /// A server's ordinary network card, by its index in the server.
    Nic(ServerId, usize),
    /// The link of a SmartNIC.
    SmartLink(usize),
    /// The cycles of a SmartNIC, in thousands of millions a second.
    SmartCycles(usize),
    /// All links together, where packets come and go that no node sees: only without a switch.
    Cards,
    /// What the switch forwards; there is none without a switch.
    Switch,
}

impl Resource {
    /// A link of `server`.
    #[must_use]
    pub fn link(server: ServerId, link: Link) -> Resource {
        match link {
            Link::Nic(nic) => Resource::Nic(server, nic),
            Link::SmartNic(nic) => Resource::SmartLink(nic),
        }
    }
}

/// Everything that runs out in a problem, and how much of it there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    kinds: Vec<Resource>,
    /// In cores, [`UNIT`]s of rate and thousands of millions of cycles.
    pub capacity: Vec<f64>,
    first_nic: Vec<usize>,
    first_smart: usize,
    /// The only link of the rack.
    only: Option<Resource>,
}

impl Resources {
    /// Those of `problem`.
    #[must_use]
    pub fn of(problem: &Problem) -> Resources {
        let (mut kinds, mut capacity, mut first_nic) = (Vec::new(), Vec::new(), Vec::new());
        for (id, server) in problem.servers.iter().enumerate() {
            kinds.push(Resource::Cores(id));
            capacity.push(f64::from(server.cores));
        }
        for (id, server) in problem.servers.iter().enumerate() {
            first_nic.push(kinds.len());
            for (nic, &bps) in server.nics_bps.iter().enumerate() {
                kinds.push(Resource::Nic(id, nic));
                capacity.push(bps / UNIT);
            }
        }
        let first_smart = kinds.len();
        for (id, nic) in problem.smart_nics.iter().enumerate() {
            kinds.extend([Resource::SmartLink(id), Resource::SmartCycles(id)]);
            capacity.extend([nic.bps / UNIT, nic.cycles_hz / UNIT]);
        }
        if let Some(switch) = &problem.switch {
            kinds.push(Resource::Switch);
            capacity.push(switch.capacity_bps / UNIT);
        }
        let links = all_links(problem);
        let direct = problem.chains.iter().any(|chain| direct(problem, chain) > 0.0);
        let only = match links[..] {
            [(server, link, _)] => Some(Resource::link(server, link)),
            _ => None,
        };
        if direct && only.is_none() {
            kinds.push(Resource::Cards);
            capacity.push(links.iter().map(|(_, _, bps)| bps).sum::<f64>() / UNIT);
        }
        Resources { kinds, capacity, first_nic, first_smart, only }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Where packets go that no node sees, if chains have such: the only link, or all of them together.
    #[must_use]
    pub fn direct(&self) -> Option<Resource> {
        self.only.or(self.kinds.last().copied().filter(|last| *last == Resource::Cards))
    }

    /// What stands at `index`.
    #[must_use]
    pub fn kind(&self, index: usize) -> Resource {
        self.kinds[index]
    }

    /// Where `resource`, which must be one of the problem, stands.
    #[must_use]
    pub fn index(&self, resource: Resource) -> usize {
        match resource {
            Resource::Cores(server) => server,
            Resource::Nic(server, nic) => self.first_nic[server] + nic,
            Resource::SmartLink(nic) => self.first_smart + 2 * nic,
            Resource::SmartCycles(nic) => self.first_smart + 2 * nic + 1,
            // There is one of these, and it comes last.
            Resource::Switch | Resource::Cards => self.kinds.len() - 1,
        }
    }
}
