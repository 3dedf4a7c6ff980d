//! What the user calls the parts of a run, for messages about them.

/// Names of the parts of a run. A command has those of its options here.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// What packets come from, by side.
    pub sources: [&'static str; 2],
    /// What they go to, by side.
    pub exits: [&'static str; 2],
    /// How many workers there are.
    pub workers: &'static str,
    /// The first worker's core.
    pub core: &'static str,
    /// Whether slots move between workers.
    pub rebalance: &'static str,
    /// Whether chains that share a core pay for all that their packets cost.
    pub tenants: &'static str,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            sources: ["inside", "back_in"],
            exits: ["back_out", "outside"],
            workers: "workers",
            core: "first_core",
            rebalance: "rebalance",
            tenants: "tenants",
        }
    }
}
