//! The command line's grammar.

mod isolate;

use std::path::PathBuf;

use catena_planner::{Paper, Strategy};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use isolate::{DemoOptions, EnforceOptions, GuardOptions, IsolateCommand, StatusOptions, TableOptions};

/// Runs network functions as chains.
#[derive(Debug, Parser)]
#[command(name = "catena", version, about, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a chain file on packets: captures, interfaces, or generated traffic
    Run(RunOptions),
    /// Check a chain file and say what is wrong with it
    Check(CheckOptions),
    /// Write a chain file in its canonical layout
    Fmt(FmtOptions),
    /// Show a stage of a chain file's way to packets: as text, JSON, Graphviz or SVG
    Show(ShowOptions),
    /// List the functions of the library, or show one's manual page
    Functions(FunctionsOptions),
    /// Decide where every function runs, on how many cores, and say why
    Plan(PlanOptions),
    /// Write the folder of a new function: code, manual, tests and benchmark, ready to build
    New(NewOptions),
    /// Measure what functions cost on this machine, for plans
    Profile(ProfileOptions),
    /// Find the state of a network function in C or C++, from its LLVM bitcode or its build
    #[command(disable_help_flag = true)]
    Analyze(Passed),
    /// Remove from a network function in C what its configuration makes redundant: as a program, or for a chain
    #[command(disable_help_flag = true)]
    Reduce(Passed),
    /// Show which cgroups the CPU time of network work belongs to, and hold them to quotas that include it
    #[command(subcommand)]
    Isolate(IsolateCommand),
    /// Draw tables and plots from benchmark results
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// What `analyze` and `reduce` pass on to `catena-analyze` and `catena-reduce`.
#[derive(Args, Debug)]
pub struct Passed {
    /// Bitcode files and options, and behind `--` the command to build the program, or the reduced function's own command
    /// line; `--help` lists the options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "FILE.bc")]
    pub arguments: Vec<std::ffi::OsString>,
}

/// What to do with benchmark results.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Print a table of results, or compare them with another revision's
    Report(ReportOptions),
}

/// Options of `bench report`.
#[derive(Args, Debug)]
pub struct ReportOptions {
    /// The results
    #[arg(default_value = "bench/results/dataplane.jsonl")]
    pub files: Vec<PathBuf>,
    /// Compare with the results committed at this revision
    #[arg(long, value_name = "REVISION")]
    pub compare: Option<String>,
    /// Draw an SVG picture: the figures that results are points of, or else bars of the first unit's results
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Put the table into a Markdown file, between `<!-- NAME -->` and `<!-- /NAME -->`, NAME being the benchmark's
    #[arg(long, value_name = "FILE.md")]
    pub into: Option<PathBuf>,
    /// Only results of this unit
    #[arg(long)]
    pub unit: Option<String>,
}

/// Where packets come from and go to, for side `in` and side `out` of the chains.
const PORTS: &str = "\
Ports:
  FILE.pcap, FILE.pcapng (also .gz, .zst)   a capture; `-` is standard input or output
  FILE.pcapng,clocks                        a capture with packets' logical clocks as comments (only outputs)
  eth0                                      an interface (both ways; needs CAP_NET_RAW)
  gen:flows=1000,size=imix,count=1000000    generated traffic (only --in; see the book for all keys)
  null                                      nowhere: packets are counted and given back (only --out)

With an interface on both sides, packets that come in by `out` take the chains' way back.";

/// Options of `run`.
#[derive(Args, Debug)]
#[command(after_help = PORTS)]
pub struct RunOptions {
    /// The chain file
    pub file: PathBuf,
    /// Where packets come from, on side `in` of the chains
    #[arg(long = "in", value_name = "PORT")]
    pub input: String,
    /// Where packets go to, on side `out` of the chains
    #[arg(long = "out", value_name = "PORT", default_value = "null")]
    pub output: String,
    /// A capture of packets that come in by side `out`, for the chains' way back
    #[arg(long, value_name = "FILE")]
    pub back_in: Option<String>,
    /// A capture to write packets to that leave by side `in`
    #[arg(long, value_name = "FILE")]
    pub back_out: Option<String>,
    /// Workers to spread the packets over, all packets of an inside address to the same one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// Let slots of flows go from busy workers to idle ones while packets flow; for traffic by the wall's time
    #[arg(long)]
    pub rebalance: bool,
    /// Let chains that a `cpu` relation names pay out of their parts for receiving and dropping their packets, too
    #[arg(long)]
    pub tenants: bool,
    /// Run the chains as a plan divides them: its workers, tasks and scheduler tree (`catena plan … -o FILE`)
    #[arg(long, value_name = "FILE", conflicts_with = "workers")]
    pub plan: Option<PathBuf>,
    /// The first worker's core; the others take the next ones (default: not pinned)
    #[arg(long, value_name = "CORE")]
    pub core: Option<usize>,
    /// Stop after this long, for example 10s, 2min
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<std::time::Duration>,
    /// Makes all that is random repeatable
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Do all work that the chains' functions do, also what `catena show --stage reduced` finds redundant
    #[arg(long)]
    pub no_reduce: bool,
    /// Drop packets that are certain to be dropped as early as can be: which function counts them may differ
    #[arg(long, conflicts_with = "no_reduce")]
    pub early_drops: bool,
    /// Print the closing table as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress line
    #[arg(long, short)]
    pub quiet: bool,
}

/// Options of `check`.
#[derive(Args, Debug)]
pub struct CheckOptions {
    /// The chain files; racks too, whose names end in `.toml`
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The chain files have a paper's functions, as `catena plan --as` takes them: nothing here builds those
    #[arg(long = "as", value_enum, value_name = "PAPER")]
    pub paper: Option<Paper>,
}

/// Options of `fmt`.
#[derive(Args, Debug)]
pub struct FmtOptions {
    /// The chain files, rewritten in place; `-` formats standard input to standard output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not in its canonical layout
    #[arg(long)]
    pub check: bool,
}

/// A stage of a chain file's way to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// The policy graph: what the chains say
    Policy,
    /// The plan by which `catena run` runs them on this machine, as traffic comes
    Plan,
    /// The host pipeline: modules, gates and links
    Host,
    /// What is redundant in the host pipeline and why, and the pipeline without it, as `catena run` runs it
    Reduced,
}

/// How a stage is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading
    Text,
    /// For programs
    Json,
    /// For Graphviz
    Dot,
    /// A picture (needs Graphviz's `dot`)
    Svg,
}

/// Options of `show`.
#[derive(Args, Debug)]
pub struct ShowOptions {
    /// The chain file; with the stage `plan` also a plan that `catena plan --output` wrote
    pub file: PathBuf,
    /// Which stage
    #[arg(long, value_enum, default_value = "policy")]
    pub stage: Stage,
    /// With the stage `plan`: for so many workers (default: 1; a plan that was written says its own)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: Option<u32>,
    /// With the stage `plan`: as a run is planned whose packets come by this port (default: by any, as fast as they may)
    #[arg(long = "in", value_name = "PORT")]
    pub input: Option<String>,
    /// With the stage `plan`: seed of the hash that numbers flows (default: nobody can know)
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// With the stage `reduced`: as `catena run --early-drops` runs it
    #[arg(long)]
    pub early_drops: bool,
    /// How
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Options of `functions`.
#[derive(Args, Debug)]
pub struct FunctionsOptions {
    /// The function whose manual page to show
    pub name: Option<String>,
    /// As JSON: parameters, attributes and state objects of one or all functions
    #[arg(long)]
    pub json: bool,
    /// Write the manual pages of all functions to this folder, as a part of the book
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "json"])]
    pub book: Option<PathBuf>,
    /// With --book: write nothing; fail if the pages there are not those that would be written
    #[arg(long, requires = "book")]
    pub check: bool,
}

/// What a plan makes as large as possible once all promises are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveName {
    /// What all chains carry beyond their promises
    Marginal,
    /// The same, each chain weighted by the `share` relations of the chain files
    Weighted,
    /// What the chain that gets least beyond its promise gets, relative to its weight
    Fair,
}

/// What decides among the ways to divide a worker into tasks that keep what chains were promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TasksName {
    /// As few as possible
    Fewest,
    /// Those with which most packets leave, by what queues and batches cost
    MostPackets,
}

impl PlanOptions {
    /// Who decides.
    pub fn strategy(&self) -> Strategy {
        let usual = if self.from.is_some() { Strategy::Keep } else { Strategy::Exact };
        self.strategy.unwrap_or(usual)
    }
}

/// Options of `plan`.
#[derive(Args, Debug)]
pub struct PlanOptions {
    /// The chain files; their chains are planned together
    #[arg(required_unless_present = "schema")]
    pub files: Vec<PathBuf>,
    /// The rack: servers, network cards, switch
    #[arg(long, value_name = "RACK.toml", required_unless_present = "schema")]
    pub rack: Option<PathBuf>,
    /// Plan nothing; print the JSON schema of plans
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// What functions cost, as `catena profile` measured it; what it lacks is taken from papers, and marked. Without it the
    /// file's functions are measured now, roughly, and that is kept; `none`: by papers alone
    #[arg(long, value_name = "PROFILE.json")]
    pub profile: Option<PathBuf>,
    /// Plan with a paper's functions instead of Catena's own: where its tables say they run, at their costs
    #[arg(long = "as", value_enum, value_name = "PAPER")]
    pub paper: Option<Paper>,
    /// Who decides (default: exact; with --from: keep)
    #[arg(long, value_enum)]
    pub strategy: Option<Strategy>,
    /// What runs: a plan that was written with --output. What can stay where it is does, and what has to be done is shown, step
    /// by step
    #[arg(long, value_name = "OLD.json", conflicts_with = "compare")]
    pub from: Option<PathBuf>,
    /// An instance that has more to do than it can: one more takes half of its flows, and nothing else moves
    #[arg(long, value_name = "INSTANCE", requires = "from", conflicts_with = "strategy")]
    pub overloaded: Option<String>,
    /// Seed of the hash that numbers flows (default: nobody can know; with --from: that of the old plan)
    #[arg(long, value_name = "NUMBER", conflicts_with = "from")]
    pub seed: Option<u64>,
    /// What is made as large as possible once all promises are kept
    #[arg(long, value_enum, default_value = "marginal")]
    pub objective: ObjectiveName,
    /// Which tasks a server's workers are divided into
    #[arg(long, value_enum, default_value = "fewest")]
    pub tasks: TasksName,
    /// Plan as if every cycle, of functions and of the framework, cost so much more: promises hold if the profile is that wrong
    #[arg(long, value_name = "PERCENT", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub margin: u32,
    /// Replicate only what Lemur does: no branches and merges, nothing that keeps state
    #[arg(long)]
    pub paper_replication: bool,
    /// Put all strategies side by side
    #[arg(long, conflicts_with = "strategy")]
    pub compare: bool,
    /// Plan as if: cores=8, stages=20, nic=100Gbps, servers=2, chain3.t_min=5Gbps, … (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub what_if: Vec<String>,
    /// How long planning may take: the exact planner's search for proof, the search for workers' tasks, and that for what would help
    /// where promises cannot be kept
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub time_limit: std::time::Duration,
    /// Draw the rack with the chains on it; with --compare the best plan's
    #[arg(long, value_name = "FILE.svg")]
    pub draw: Option<PathBuf>,
    /// Print the whole plan as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the whole plan as JSON, for `catena run --plan`; with --compare the best one
    #[arg(long, short, value_name = "PLAN.json")]
    pub output: Option<PathBuf>,
}

/// Options of `new`.
#[derive(Args, Debug)]
pub struct NewOptions {
    /// The function's name as chain files spell it, such as Normalizer
    pub name: String,
    /// Where Catena's source is
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub dir: PathBuf,
}

/// Options of `profile`.
#[derive(Args, Debug)]
pub struct ProfileOptions {
    /// The functions (default: all of the library)
    #[arg(value_name = "FUNCTION")]
    pub functions: Vec<String>,
    /// Runs in each setting at each size
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,
    /// Sizes to measure, such as 100,1000 rules (default: each function's own)
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub sizes: Vec<u64>,
    /// The core to measure on; packets from another core come from the one before (default: the last)
    #[arg(long, value_name = "CORE")]
    pub core: Option<usize>,
    /// Give each function the core's caches to itself, as if no other were in its chain
    #[arg(long)]
    pub alone: bool,
    /// The port that packets will come from, a capture or `gen:`: what bringing them in costs depends on it
    /// (default: few flows, from memory)
    #[arg(long = "in", value_name = "PORT")]
    pub input: Option<String>,
    /// A rough idea within a minute: three runs, at each function's usual size
    #[arg(long, conflicts_with_all = ["runs", "sizes"])]
    pub quick: bool,
    /// The file to write; of one that is there, other functions measured on such a machine are kept
    #[arg(long, value_name = "FILE", default_value = "profile.json")]
    pub output: PathBuf,
    /// Print the profile as JSON
    #[arg(long)]
    pub json: bool,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit `{unit}`; expected ms, s, min or h")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a number and a unit, such as 10s".to_owned())?;
    std::time::Duration::try_from_secs_f64(number * scale).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("1.5s"), Ok(std::time::Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(std::time::Duration::from_secs(120)));
        assert!(duration("5 parsecs").is_err() && duration("").is_err() && duration("99999999999999999999h").is_err());
    }
}
