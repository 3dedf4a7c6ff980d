//! What a user may choose: who decides a plan, and with whose functions.

/// Who decides a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The best plan there is, with proof, by a mixed-integer program
    Exact,
    /// Lemur's heuristic: few bounces, spare cores where they carry most
    Lemur,
    /// As much as possible on the switch
    Hw,
    /// As much as possible on the servers
    Sw,
    /// The fewest ways between switch and servers
    MinBounce,
    /// As much as possible on the switch, then spare cores chain by chain
    Greedy,
    /// Lemur's heuristic without knowing what functions cost
    NoProfiling,
    /// Lemur's heuristic with one core for each group of functions
    NoCores,
    /// Every placement tried
    Brute,
    /// E2's steps: the least traffic between servers, then to the switch what stands next to a port
    E2,
    /// What runs stays where it is, as far as promises allow; others go around it (with --from, where it is the default)
    Keep,
}

impl Strategy {
    /// What it is called in tables.
    pub fn title(self) -> &'static str {
        match self {
            Strategy::Exact => "exact",
            Strategy::Lemur => "lemur",
            Strategy::Hw => "hw",
            Strategy::Sw => "sw",
            Strategy::MinBounce => "min-bounce",
            Strategy::Greedy => "greedy",
            Strategy::NoProfiling => "no-profiling",
            Strategy::NoCores => "no-cores",
            Strategy::Brute => "brute",
            Strategy::E2 => "e2",
            Strategy::Keep => "keep",
        }
    }
}

/// A paper whose functions a plan is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Paper {
    /// Lemur's: Table 3 says where they run, Table 4 and the published placer what they cost; IPv4Fwd on the switch only
    Lemur,
}
