//! The grammar of `catena isolate`.

use std::path::PathBuf;
use std::time::Duration;

use catena_isolation::Wanted;
use clap::{Args, Subcommand};

use super::duration;

/// What to do about network CPU.
#[derive(Debug, Subcommand)]
pub enum IsolateCommand {
    /// Measure network softirqs and show each cgroup's part (needs CAP_BPF and CAP_PERFMON, or root)
    Status(StatusOptions),
    /// Hold cgroups to their CPU quotas, network work included (needs root)
    ///
    /// Each period the quota of each cgroup is rewritten: what network softirqs did for its packets in others' time is taken
    /// off, what ran in its time for others is added. What a period cannot pay is owed, and shown as debt. At the end, by
    /// Ctrl-C or SIGTERM, all quotas are restored. If it is killed, a guard restores them from its journal, a child that waits for its
    /// end; if both are, the next start does.
    #[command(after_help = ENFORCE_EXAMPLES)]
    Enforce(EnforceOptions),
    /// Show on this machine what a flooded container does to one beside it, without and with enforcement (needs root)
    ///
    /// Makes two containers of its own, which share CPU 1, and floods one of them from CPU 0, for some ten seconds. All is removed
    /// at the end, by Ctrl-C or SIGTERM too; what a killed run left is removed by the next one.
    Demo(DemoOptions),
    /// What the guard of `isolate enforce` does
    #[command(hide = true, disable_help_flag = true)]
    Guard(GuardOptions),
    /// What processes of `isolate demo` do
    #[command(hide = true, disable_help_flag = true)]
    Act(ActOptions),
}

/// Options of `isolate demo`.
#[derive(Args, Debug)]
pub struct DemoOptions {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// How long to measure each of three turns, from 500ms
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    pub interval: Duration,
    /// Packets a second, of 1,400 bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..=10_000_000), default_value = "150000")]
    pub rate: u32,
}

/// What a process of a scene does.
#[derive(Args, Debug)]
pub struct ActOptions {
    /// As the demo says it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Whose end a guard waits for.
#[derive(Args, Debug)]
pub struct GuardOptions {
    /// The journal of who started it
    pub journal: PathBuf,
}

/// How `isolate enforce` is used.
const ENFORCE_EXAMPLES: &str = "\
Examples:
  catena isolate enforce                          each cgroup that has a quota
  catena isolate enforce /tenants/a=30% /tenants/b  one with this quota, one with its own
  catena isolate enforce /tenants/a --napi eth0@blue=/tenants/a
                                                  and eth0 of network namespace blue receives at a's expense
  catena isolate enforce /tenants/a --early-drop eth0@blue=/tenants/a
                                                  and drops what a's quota cannot pay for";

/// Options of `isolate enforce`.
#[derive(Args, Debug)]
pub struct EnforceOptions {
    /// Cgroups by their paths, as `catena isolate status` shows them, with quotas in percent of one CPU (default quota: the one
    /// that the cgroup has; default cgroups: each that has a quota)
    #[arg(value_name = "CGROUP[=QUOTA%]", value_parser = wanted)]
    pub cgroups: Vec<Wanted>,
    /// Let kernel threads receive a device's packets (threaded NAPI), in the cgroup that they are for: DEV, or DEV@NAMESPACE, the
    /// name of a network namespace or the number of a process in it (may be repeated, each device once). CGROUP must be one of those that
    /// are enforced; with --napi alone these are all that have a quota, as without it
    #[arg(long, value_name = "DEV=CGROUP", value_parser = device)]
    pub napi: Vec<(String, String)>,
    /// Drop a device's packets before the stack has them (XDP), where the quota of the cgroup that they are for cannot pay for them: as
    /// for --napi, and a device has one of the two
    #[arg(long, value_name = "DEV=CGROUP", value_parser = device)]
    pub early_drop: Vec<(String, String)>,
    /// How often quotas are rewritten, from 10ms to 500ms
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100ms")]
    pub period: Duration,
    /// Journal of what quotas were, to restore them; one run at a time has it open
    #[arg(long, value_name = "FILE", default_value = "/run/catena/isolate.journal")]
    pub journal: PathBuf,
    /// What it prints
    #[command(flatten)]
    pub tables: TableOptions,
}

/// Options of `isolate status`.
#[derive(Args, Debug)]
pub struct StatusOptions {
    /// What it prints
    #[command(flatten)]
    pub tables: TableOptions,
}

/// What is printed of intervals: as what, how often, and how many times.
#[derive(Args, Debug)]
pub struct TableOptions {
    /// Print a line of JSON an interval
    #[arg(long)]
    pub json: bool,
    /// Instead of tables, write metrics for Prometheus to a file that is replaced each interval, as node_exporter's textfile collector
    /// reads them; `-` prints them
    #[arg(long, value_name = "FILE.prom", conflicts_with = "json")]
    pub prometheus: Option<PathBuf>,
    /// How long to measure before each table
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,
    /// Stop after so many tables (default: go on until interrupted)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
}

/// Parse a cgroup, and its quota in percent of one CPU.
fn wanted(text: &str) -> Result<Wanted, String> {
    let Some((cgroup, quota)) = text.rsplit_once('=') else {
        return Ok(Wanted { cgroup: text.to_owned(), quota: None });
    };
    let percent = quota.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let percent = percent.filter(|percent| (1.0..=100_000.0).contains(percent));
    let percent =
        percent.ok_or_else(|| format!("quota `{quota}`: expected percent of one CPU, at least 1%, such as 30%"))?;
    // A percent of a second's nanoseconds.
    let ns = (percent * 1e7) as u64;
    Ok(Wanted { cgroup: cgroup.to_owned(), quota: Some(ns) })
}

/// Parse a device, and the cgroup that its packets are for.
fn device(text: &str) -> Result<(String, String), String> {
    let (device, cgroup) = text.split_once('=').ok_or("expected DEV=CGROUP, such as eth0@blue=/tenants/a")?;
    Ok((device.to_owned(), cgroup.to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotas_are_percent_of_one_cpu() {
        let of = |text| super::wanted(text).map(|wanted| (wanted.cgroup, wanted.quota));
        assert_eq!(of("/a"), Ok(("/a".to_owned(), None)));
        assert_eq!(of("/a=b=12.5%"), Ok(("/a=b".to_owned(), Some(125_000_000))));
        for text in ["/a=30", "/a=0%", "/a=x%", "/a=nan%", "/a=-5%"] {
            assert!(of(text).unwrap_err().contains("expected percent of one CPU"), "{text}");
        }
    }
}
