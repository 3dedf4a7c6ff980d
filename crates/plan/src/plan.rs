//! A whole plan as data: what `catena plan --json` prints, `-o` writes and `catena run --plan` reads.
//!
//! Times are nanoseconds, rates bits per second, costs cycles per packet. What has no limit is absent.

mod bound;
mod device;
mod digests;
mod names;
mod remedies;
mod why;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::delta::Delta;
use crate::deployment::Deployment;
use crate::policy::{Policy, fnv_of};
use crate::tasks::TaskPlan;
use catena_plan_alpine::tree::SchedulerTree;
use catena_plan_model::placement::Placement;
use catena_plan_model::plain;
use catena_plan_model::problem::{Chain, Edge, Objective, Problem, Replication};
use catena_plan_model::profile::Profile;
use catena_plan_model::rack::Rack;
use catena_plan_model::switch::for_problem;

pub use bound::{Bound, CoreLimit};
pub use device::Device;
pub use digests::Digests;
pub use remedies::Remedies;
pub use why::Why;

/// The JSON schema of plans.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Plan).to_value();
    schema["title"] = format!("A plan of Catena, version {VERSION}").into();
    schema
}

/// The format's version; files of another one are refused.
pub const VERSION: u32 = 13;

/// Where everything runs, at which rates, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`VERSION`].
    pub version: u32,
    /// The rack's name.
    pub rack: String,
    /// Who decided. Nothing else in a plan shows it: a digest tells whether it was changed.
    pub strategy: String,
    /// The changes to rack and chains that it was made with, as they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub what_if: Vec<String>,
    /// What was maximised.
    pub objective: Objective,
    /// What might be replicated.
    pub replication: Replication,
    /// Bytes of a packet, on average.
    pub packet_bytes: f64,
    /// Whether the promises are kept, and how well that is known.
    pub verdict: Verdict,
    /// The part of each promised rate that was planned for, where all of it is more than the rack can carry: above 0, below 1.
    /// Absent: all. What is said of promises is said of this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<f64>,
    /// What the file promises and this is no plan of, each with the reason, in words: what is said of promises is said of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The chains, in the order of the files.
    pub chains: Vec<ChainPlan>,
    /// The servers, in the order of the rack.
    pub servers: Vec<ServerPlan>,
    /// The links between switch and servers.
    pub links: Vec<LinkPlan>,
    /// The SmartNICs.
    pub smart_nics: Vec<SmartNicPlan>,
    /// The switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchPlan>,
    /// Functions whose figures nobody measured here, with where they come from.
    pub borrowed: Vec<Borrowed>,
    /// Relations of the file that the planners' model does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The chain file that it is for; absent where chains are known in numbers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Digests of what it was made of; absent where that is known in numbers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<MadeOf>,
    /// Digests of what else nobody could see to have been changed; [`Plan::from_json`] refuses a file without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digests: Option<Digests>,
    /// What runs of it; absent if nothing is placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// What has to be done where the deployment runs that this one follows; absent if it follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// The decision in the planners' own form; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What had to be decided, in the planners' own form: a plan is held against it whenever it is read.
    pub problem: Problem,
}

impl Plan {
    /// Read a plan. Anybody may have written it, so that it is judged: see [`crate::judge`].
    ///
    /// # Errors
    /// When the text is none, or of another version, or something in it is not so.
    pub fn from_json(text: &str) -> Result<Plan, String> {
        let plan = Plan::without_digests(text)?;
        // Without them nobody would see what was changed in its problem, or that something is proven.
        match plan.digests {
            Some(_) => Ok(plan),
            None => Err("the plan has no digests: `catena plan … --output FILE` plans anew".to_owned()),
        }
    }

    /// The same, whether it has digests or not.
    pub(crate) fn without_digests(text: &str) -> Result<Plan, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let broken = |error: serde_json::Error| {
            let what = plain::json(&error);
            format!("line {}: {what}; `catena plan … --output FILE` writes plans", error.line().max(1))
        };
        let version = serde_json::from_str::<Versioned>(text).map_err(broken)?.version;
        if version != VERSION {
            return Err(format!(
                "this is a plan of version {version}; version {VERSION} is expected: `catena plan … --output FILE` plans anew"
            ));
        }
        let plan: Plan = serde_json::from_str(text).map_err(broken)?;
        names::check(&plan)?;
        plan.judge(&*for_problem(&plan.problem)).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
            format!("the plan says what is not so:{}", lines.concat())
        })?;
        Ok(plan)
    }

    /// Whether all promises are kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self.verdict, Verdict::Kept { .. })
    }

    /// Cores that functions take, on all servers.
    #[must_use]
    pub fn cores_used(&self) -> f64 {
        self.servers.iter().map(|server| server.cores_used).sum()
    }

    /// Cores for functions there are.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.servers.iter().map(|server| server.cores).sum()
    }

    /// Bits per second of all chains.
    #[must_use]
    pub fn rate_bps(&self) -> f64 {
        self.chains.iter().map(|chain| chain.rate_bps).sum()
    }
}

/// Digests of what a plan was made of: with another digest it is another thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MadeOf {
    /// What the chain files say, promises too.
    pub policy: String,
    /// The rack. Whoever reads a plan may have another one: a digest of this digest tells whether it was changed here.
    pub rack: String,
    /// What functions and the framework cost; as with the rack, only a change of this digest is found.
    pub profile: String,
}

impl MadeOf {
    /// The digests of a policy with the promises of a problem, of a rack and a profile.
    #[must_use]
    pub fn of(policy: &Policy, problem: &Problem, rack: &Rack, profile: &Profile) -> MadeOf {
        // Plain data, which always has a text.
        MadeOf { policy: MadeOf::policy(policy, problem), rack: fnv_of(rack), profile: fnv_of(profile) }
    }

    /// The digest of a policy with the promises of a problem.
    #[must_use]
    pub fn policy(policy: &Policy, problem: &Problem) -> String {
        let promise = |chain: &Chain| (chain.t_min_bps, chain.t_max_bps, chain.d_max_ns);
        let promises: Vec<_> = problem.chains.iter().map(promise).collect();
        fnv_of(&(policy, promises))
    }

    /// What differs from `old`, in words.
    #[must_use]
    pub fn changed(&self, old: &MadeOf) -> Vec<&'static str> {
        let parts = [
            ("the chain files", self.policy != old.policy),
            ("the rack", self.rack != old.rack),
            ("what functions cost", self.profile != old.profile),
        ];
        parts.into_iter().filter_map(|(what, changed)| changed.then_some(what)).collect()
    }
}

/// Whether the promises are kept, and how well that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Verdict {
    /// They are.
    Kept {
        /// The objective's value, bits per second beyond the promises: of all chains; by weight; or, for a fair
        /// division, of the chain that has least relative to its weight.
        marginal_bps: f64,
        /// No plan has more; absent: nothing is proven.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound_bps: Option<f64>,
    },
    /// They are not.
    Broken {
        /// Whether it is proven that none can; otherwise this strategy found none.
        proven: bool,
        /// What is in the way.
        why: String,
        /// What would help, and which promises conflict; absent if nobody asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedies: Option<Box<Remedies>>,
    },
}

impl Verdict {
    /// The part that a better plan might have more, 0 if this is proven to be the best; None: nothing is proven.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        match self {
            Verdict::Kept { marginal_bps, bound_bps: Some(bound) } if *bound > 0.0 => {
                Some(((bound - marginal_bps) / bound).max(0.0))
            }
            Verdict::Kept { bound_bps: Some(_), .. } => Some(0.0),
            _ => None,
        }
    }
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainPlan {
    /// Its name.
    pub name: String,
    /// Guaranteed.
    pub t_min_bps: f64,
    /// Allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_max_bps: Option<f64>,
    /// The longest delay allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_max_ns: Option<f64>,
    /// What it will carry.
    pub rate_bps: f64,
    /// Beyond what is guaranteed.
    pub slack_bps: f64,
    /// Of the longest path, forward, for a packet that waits for no other: what `d_max_ns` is held against.
    pub latency_ns: f64,
    /// The same where servers have full batches: a packet goes on with the last one of its batch.
    pub batch_ns: f64,
    /// What a packet waits more, at most, in the queues of its chain's tasks: where more comes than the tasks take, they are
    /// full. Absent: there are no queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<f64>,
    /// Visits to servers and SmartNICs per packet.
    pub bounces: f64,
    /// What keeps it from carrying more, most telling first; empty: nothing but the other chains' shares.
    pub bounds: Vec<Bound>,
    /// Its functions, in the order of the policy graph.
    pub functions: Vec<FunctionPlan>,
    /// Which function hands packets to which: indices, and the part of the chain's packets.
    pub edges: Vec<Edge>,
}

impl ChainPlan {
    /// What is promised, in Gbit/s: `2 to 10`, `2 or more`, `2`, `up to 10`; `None` for nothing.
    #[must_use]
    pub fn promised(&self) -> Option<String> {
        let (least, most) = (gigabits(self.t_min_bps), self.t_max_bps.map(gigabits));
        match (self.t_min_bps > 0.0, most) {
            (false, None) => None,
            (false, Some(most)) => Some(format!("up to {most}")),
            (true, None) => Some(format!("{least} or more")),
            (true, Some(most)) if most == least => Some(least),
            (true, Some(most)) => Some(format!("{least} to {most}")),
        }
    }
}

/// A number with at most two digits behind the point.
#[must_use]
pub fn short(number: f64) -> String {
    // What is less than nothing by rounding alone has no sign.
    let text = format!("{:.2}", (number * 1e2).round() / 1e2 + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bits per second as a number of Gbit/s, with at most three digits behind the point.
#[must_use]
pub fn gigabits(bps: f64) -> String {
    let text = format!("{:.3}", (bps / 1e6).round() / 1e3 + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionPlan {
    /// Unique in the chain.
    pub name: String,
    /// The function's name.
    pub function: String,
    /// What it runs on.
    pub device: Device,
    /// Which of these.
    pub on: String,
    /// The part of the chain's packets that reaches it.
    pub share: f64,
    /// Cycles per packet that were reckoned with; absent on the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
    /// Index of its subgroup in the server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgroup: Option<usize>,
    /// Numbers of its cores.
    pub cores: Vec<u32>,
    /// Why it runs there.
    pub why: Why,
    /// Whether its figures are a paper's.
    pub borrowed: bool,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPlan {
    /// Its name.
    pub name: String,
    /// Cycles per second of a core.
    pub clock_hz: f64,
    /// Cores for functions.
    pub cores: u32,
    /// Cores of each socket, for steering too.
    pub cores_per_socket: u32,
    /// How many of its cores functions take.
    pub cores_used: f64,
    /// Numbers of the cores that read packets and steer them.
    pub steering: Vec<u32>,
    /// What runs to completion together.
    pub subgroups: Vec<SubgroupPlan>,
    /// One a core that functions run on, ascending.
    pub workers: Vec<WorkerPlan>,
    /// The tasks of each worker, where whole chains run on this server alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskPlan>,
}

/// Functions of a chain that run to completion together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubgroupPlan {
    /// Whose.
    pub chain: String,
    /// Its functions.
    pub functions: Vec<String>,
    /// Cores: on a server with shared cores a part.
    pub cores: f64,
    /// Numbers of its cores.
    pub on: Vec<u32>,
    /// By which link its packets come and go.
    pub link: String,
    /// Cycles per packet of the chain, the framework's included.
    pub cycles: f64,
    /// What its cores could carry of the chain.
    pub capacity_bps: f64,
    /// The part of its cores' cycles that the planned rate takes.
    pub load: f64,
    /// Whether it may have several cores.
    pub replicable: bool,
}

/// A core that functions run on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerPlan {
    /// Its number.
    pub core: u32,
    /// Its socket.
    pub socket: u32,
    /// What runs on it: a task each.
    pub parts: Vec<WorkerPart>,
    /// Who of them runs when; its tasks are indices of `parts`. Absent where the server's `tasks` have one for all workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<SchedulerTree>,
}

/// A subgroup's part of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerPart {
    /// Index in the server's subgroups.
    pub subgroup: usize,
    /// The part of the core, 0 to 1.
    pub share: f64,
}

/// A link between the switch and a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// The server and its card: `nf1.eth0`.
    pub name: String,
    /// The server.
    pub server: String,
    /// Whether the card is a SmartNIC.
    pub smart: bool,
    /// What it can carry each way.
    pub bps: f64,
    /// What it will carry each way.
    pub used_bps: f64,
}

/// A SmartNIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmartNicPlan {
    /// Its name.
    pub name: String,
    /// Cycles per second there are.
    pub cycles_hz: f64,
    /// Cycles per second that functions will take.
    pub used_hz: f64,
}

/// The switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPlan {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub kind: String,
    /// Stages (or tables) that functions and steering take, and there are; absent if it runs no functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<(u64, u64)>,
    /// SRAM blocks taken and there; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sram: Option<(u64, u64)>,
    /// TCAM blocks taken and there; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcam: Option<(u64, u64)>,
    /// Flow entries taken and there; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<(u64, u64)>,
}

/// A function whose figures come from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Borrowed {
    /// The function.
    pub function: String,
    /// The paper and its table.
    pub source: String,
}

/// Numbers, ascending, with runs put together: `2-5, 9`.
#[must_use]
pub fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}
