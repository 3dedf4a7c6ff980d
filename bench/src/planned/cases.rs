//! The chains that are planned and run, and the rack.

use catena_functions::registry;
use catena_functions::workload::Setup;

/// Chains of one file.
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// Lines before the chains: classes.
    head: &'static str,
    /// Each chain's name with its class and what it is promised, and its functions with their sizes.
    chains: &'static [(&'static str, &'static [(&'static str, u64)])],
    /// Lines behind the chains: relations.
    pub tail: &'static str,
}

/// One chain alone, and chains that share a core.
pub const CASES: &[Case] = &[
    Case {
        name: "one chain",
        head: "",
        chains: &[("c", &[("ACL", 1_000), ("NAT", 1), ("LB", 1), ("Monitor", 1)])],
        tail: "",
    },
    Case {
        name: "two chains",
        head: TWO,
        chains: &[("a for low", &[("ACL", 1_000), ("NAT", 1)]), ("b for high", &[("IPv4Fwd", 1_000), ("Monitor", 1)])],
        tail: "throughput a : b = 1 : 1\n",
    },
    Case {
        name: "four chains",
        head: "class n0 = \"dst net 203.0.0.0/18\"\nclass n64 = \"dst net 203.0.64.0/18\"\n\
               class n128 = \"dst net 203.0.128.0/18\"\nclass n192 = \"dst net 203.0.192.0/18\"\n",
        chains: &[
            // Behind Limiter, which has nothing for most packets that are left, each would be the first of its flow.
            ("a for n0", &[("NAT", 1), ("Limiter", 1)]),
            ("b for n64", &[("ACL", 100), ("LB", 1)]),
            ("c for n128", &[("Monitor", 1)]),
            ("d for n192", &[("IPv4Fwd", 1_000)]),
        ],
        tail: "throughput a : b : c : d = 1 : 1 : 1 : 1\n",
    },
];

/// The classes of two chains.
const TWO: &str = "class low = \"dst net 203.0.0.0/17\"\nclass high = \"dst net 203.0.128.0/17\"\n";
const ACL: &[(&str, u64)] = &[("ACL", 1_000), ("Monitor", 1)];
const MONITOR: &[(&str, u64)] = &[("Monitor", 1)];

/// Chains of which more comes than can be done, in every relation that a file may have.
pub const OVERLOADED: &[Case] = &[
    Case {
        name: "overload, throughput 1 : 4",
        head: TWO,
        chains: &[("a for low", ACL), ("b for high", MONITOR)],
        tail: "throughput a : b = 1 : 4\n",
    },
    Case {
        name: "overload, share 3 : 1",
        head: TWO,
        chains: &[("a for low { promise 300Mbps..", ACL), ("b for high { promise 500Mbps..", MONITOR)],
        tail: "share a : b = 3 : 1\n",
    },
    Case {
        name: "overload, priority",
        head: TWO,
        chains: &[("a for low { promise 500Mbps..", ACL), ("b for high", MONITOR)],
        tail: "priority b > a\n",
    },
    Case {
        name: "overload, cpu 5 : 4",
        head: TWO,
        chains: &[("a for low", ACL), ("b for high", MONITOR)],
        tail: "cpu a : b = 5 : 4\n",
    },
];

impl Case {
    /// The functions of all chains.
    pub fn functions(&self) -> impl Iterator<Item = &'static str> {
        self.chains.iter().flat_map(|(_, functions)| functions.iter().map(|(name, _)| *name))
    }

    /// The first of the numbers of a ratio, of the second.
    pub fn ratio(&self) -> f64 {
        let numbers = self.tail.split_once('=').map_or("", |(_, numbers)| numbers);
        let mut numbers = numbers.split(':').filter_map(|number| number.trim().parse::<f64>().ok());
        numbers.next().unwrap_or(1.0) / numbers.next().unwrap_or(1.0)
    }

    /// The chain file, and the files that it names.
    ///
    /// # Errors
    /// A function that the library does not have, or cannot be measured.
    pub fn files(&self) -> Result<Vec<(String, String)>, String> {
        let (mut text, mut files) = (self.head.to_owned(), Vec::new());
        for (name, functions) in self.chains {
            let open = if name.contains('{') { "" } else { " {" };
            text += &format!("chain {name}{open} in -> ");
            for (function, size) in *functions {
                let setup = setup(function, *size)?;
                text += &format!("{} -> ", setup.call);
                files.extend(setup.file.map(|(name, content)| (name.to_owned(), content)));
            }
            text += "out }\n";
        }
        files.push(("case.catena".to_owned(), text + self.tail));
        Ok(files)
    }
}

fn setup(function: &str, size: u64) -> Result<Setup, String> {
    let workload = registry::find(function).and_then(|f| f.workload);
    workload.map(|workload| (workload.setup)(size)).ok_or_else(|| format!("{function} cannot be measured"))
}

/// A rack of one server, of one core with this clock in hertz.
pub fn rack(clock_hz: f64) -> String {
    format!(
        "name = \"this machine\"\npacket_bytes = 64\n\n[[server]]\nname = \"localhost\"\ncores = 1\nsteering_cores = 0\n\
         shared = true\nclock = \"{:.4}GHz\"\nnics = [\"40Gbps\"]\n",
        clock_hz / 1e9
    )
}
