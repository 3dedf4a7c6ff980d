//! What a machine lacks, by name.

use std::fmt;

/// What is missing to measure, wholly or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The program was not built; why.
    Program(&'static str),
    /// The kernel does not describe its types.
    Btf(String),
    /// Capabilities, by name.
    Capabilities(Vec<&'static str>),
    /// A tracepoint that the kernel does not have.
    Tracepoint(&'static Tracepoint),
    /// A tracepoint's program, or all, that the kernel refuses; what it says.
    Refused(String),
    /// How long hard interrupts take outside of their handlers is not known.
    Outside,
    /// The kernel keeps the time of interrupts apart from that of processes.
    Apart,
    /// The cgroup2 file system is not mounted.
    Cgroup2,
    /// A map that cannot be read; what the kernel says.
    Map(String),
}

/// A tracepoint, and what depends on it.
#[derive(Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Programs for it, of which the first is taken that the kernel accepts.
    pub programs: &'static [&'static str],
    /// The version of Linux that has it first.
    pub since: &'static str,
    /// What is not known without it; `None` if nothing is known.
    pub without: Option<&'static str>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Program(why) => {
                write!(f, "this build has no BPF program ({why}): install clang and build Catena again")
            }
            Missing::Btf(what) => {
                write!(
                    f,
                    "no kernel type information ({what}): needs a kernel with CONFIG_DEBUG_INFO_BTF=y, Linux 5.15 or newer"
                )
            }
            Missing::Capabilities(names) => {
                let capabilities = if names.len() == 1 { "capability" } else { "capabilities" };
                write!(f, "missing {capabilities} {}: run as root, or grant them with `setcap`", names.join(" and "))
            }
            Missing::Tracepoint(Tracepoint { name, since, without, .. }) => {
                write!(f, "this kernel has no tracepoint `{name}` (Linux {since} or newer has it)")?;
                without.map_or(Ok(()), |what| write!(f, ": {what}"))
            }
            Missing::Refused(what) => write!(f, "the kernel refuses to load the BPF program: {what}"),
            Missing::Outside => write!(
                f,
                "what hard interrupts take before their handlers begin and after they end cannot be measured, and is in no account: \
                 it needs `local_timer_entry` (Linux on x86) and a CPU that is not always busy"
            ),
            Missing::Apart => write!(
                f,
                "this kernel keeps softirqs apart from processes (CONFIG_IRQ_TIME_ACCOUNTING): they are in nobody's own CPU, and nothing \
                 is hosted"
            ),
            Missing::Cgroup2 => {
                write!(
                    f,
                    "the cgroup2 file system is not mounted, so cgroups have no names and no CPU time: \
                           `mount -t cgroup2 none /sys/fs/cgroup/unified`"
                )
            }
            Missing::Map(what) => write!(f, "cannot read the accounts from the kernel: {what}"),
        }
    }
}

impl std::error::Error for Missing {}

/// An error and what is behind it, in one line without the verifier's log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text.lines().next().unwrap_or_default().to_owned()
}

/// Capabilities that loading and attaching need beside each other, with their numbers.
const NEEDED: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
/// The one that stands for both.
const SYS_ADMIN: u32 = 21;

/// Return the capabilities that this process lacks, from `/proc/self/status`.
pub fn capabilities(status: &str) -> Vec<&'static str> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    let has = |capability: u32| mask >> capability & 1 == 1;
    NEEDED.iter().filter(|(_, number)| !has(*number) && !has(SYS_ADMIN)).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::capabilities;

    #[test]
    fn lacking_capabilities_are_named() {
        assert_eq!(capabilities("Name:\tx\nCapEff:\t0000000000000000\n"), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(capabilities("CapEff:\t0000008000000000\n"), ["CAP_PERFMON"]);
        assert!(capabilities("CapEff:\t0000000000200000\n").is_empty());
        assert!(capabilities("CapEff:\t000001ffffffffff\n").is_empty());
    }
}
