//! What Alpine plans: trees of modules, the classes of traffic that go through them, and their figures.
//!
//! Lan's dissertation, §5.3.1 (Table 5.2): `N` modules with cost `c_i`, `M` classes with input rate `r_j`,
//! each class a path from a source to an exit (§5.2.1), each module with at most one upstream.

use serde::{Deserialize, Serialize};

use catena_plan_model::profile::FULL_BATCH;

/// What the module is called that finds a packet's chain.
pub const CLASSIFY: &str = "classify";

/// Index of a module in [`Graph::modules`].
pub type ModuleId = usize;
/// Index of a class in [`Graph::classes`].
pub type ClassId = usize;

/// A dataflow graph in which every module has at most one upstream, and its traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The modules; an upstream comes before what is downstream of it.
    pub modules: Vec<Module>,
    /// The classes.
    pub classes: Vec<Class>,
    /// Cycles per second of one worker.
    pub hz: f64,
    /// Cycles per packet that a queue in front of a module adds to the task it begins.
    pub queue_cycles: f64,
    /// What of that each end takes, by the packets of a batch; only the most throughput reckons with it.
    pub queue_ends: Ends,
    /// Cycles per packet of finding the class up front, where a classifier has to be put there: of all classes.
    pub classify_cycles: f64,
    /// Of that, each class that is tried, one after the other: a classifier that tells fewer apart costs less.
    pub classify_each: f64,
}

/// The two ends of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ends {
    /// Putting a packet in: work of the task in front.
    pub entrance: Cost,
    /// Cycles per packet that dropping it takes more, where there is no room: work of the task in front.
    pub drop: f64,
    /// Taking it out: work of the task behind.
    pub exit: Cost,
}

/// Cycles of a packet, and of a batch however few packets it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Cycles per packet.
    pub packet: f64,
    /// Cycles per batch.
    pub batch: f64,
}

impl Cost {
    /// Cycles per packet in batches of so many.
    #[must_use]
    pub fn in_batches(&self, packets: f64) -> f64 {
        self.packet + self.batch / packets
    }
}

/// A module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// What it is called; copies of one module bear the same name.
    pub name: String,
    /// Cycles per packet, when everything runs to completion.
    pub cycles: f64,
    /// Of that, cycles that a batch takes however few packets it has. Behind a queue batches are full: there it costs
    /// less. Only the most throughput reckons with it.
    pub per_batch: f64,
    /// Packets of a batch when everything runs to completion.
    pub batch: f64,
    /// Where its packets come from; None: from outside.
    pub upstream: Option<ModuleId>,
    /// How it comes to run.
    pub kind: Kind,
    /// Whether a queue may be put in front of it.
    pub cuttable: bool,
    /// Whether several workers may each have one.
    pub replicable: bool,
    /// Which module of the original graph it is; equal in modules that are the same one on different paths.
    pub origin: usize,
}

/// How a module comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads packets from outside, or finds their class for the framework: work that is done for everybody
    /// before anyone knows for whom. Its cycles load the worker but count for no class. Always begins a task
    /// if it has no upstream.
    Port,
    /// A function that is schedulable by itself (a queue of its own); always begins a task.
    Scheduled,
    /// Runs when its upstream calls it, or begins a task if a queue is put in front of it.
    Function,
}

/// A class of traffic: the path from a source to one exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// The last module of its path.
    pub exit: ModuleId,
    /// Packets per second that come in for it.
    pub packets: f64,
    /// Whether its packets can be told by their headers before any module has seen them (Lan's dissertation,
    /// §5.2.2: "it is often not feasible to classify traffic up front").
    pub known_in_front: bool,
}

/// Something that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A module's upstream does not come before it.
    Upstream(ModuleId),
    /// A module without an upstream that is neither a port nor schedulable.
    Source(ModuleId),
    /// A class names a module that does not exist.
    Exit(ClassId),
    /// A cost, a rate or the clock is negative or not finite, or the clock or a rate is 0.
    Figure(String),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Upstream(m) => write!(f, "module {m} stands before its upstream"),
            Malformed::Source(m) => write!(f, "module {m} has no upstream and nothing that runs it"),
            Malformed::Exit(class) => write!(f, "class {class} ends at a module that does not exist"),
            Malformed::Figure(what) => write!(f, "{what} is not a number that can be"),
        }
    }
}

impl std::error::Error for Malformed {}

impl Module {
    /// Cycles per packet that count for the packet's class.
    #[must_use]
    pub fn charged(&self) -> f64 {
        if self.kind == Kind::Port { 0.0 } else { self.cycles }
    }

    /// Cycles per packet in batches of so many packets.
    #[must_use]
    pub fn in_batches(&self, packets: f64) -> f64 {
        (self.cycles + self.per_batch * (1.0 / packets - 1.0 / self.batch)).max(0.0)
    }

    /// Whether it begins a task whatever is decided.
    #[must_use]
    pub fn always_starts(&self) -> bool {
        self.upstream.is_none() || self.kind == Kind::Scheduled
    }
}

impl Graph {
    /// Check that it is what the documentation says.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> Result<(), Malformed> {
        let figure = |what: &str, value: f64, least: f64| match value.is_finite() && value >= least {
            true => Ok(()),
            false => Err(Malformed::Figure(what.to_owned())),
        };
        figure("the clock", self.hz, f64::MIN_POSITIVE)?;
        figure("the cost of a queue", self.queue_cycles, 0.0)?;
        figure("the cost of the classifier", self.classify_cycles, 0.0)?;
        figure("the cost of a class that is tried", self.classify_each, 0.0)?;
        let Ends { entrance, drop, exit } = self.queue_ends;
        for cycles in [entrance.packet, entrance.batch, drop, exit.packet, exit.batch] {
            figure("the cost of a queue's end", cycles, 0.0)?;
        }
        for (m, module) in self.modules.iter().enumerate() {
            figure(&format!("the cost of `{}`", module.name), module.cycles, 0.0)?;
            figure(&format!("the cost of a batch of `{}`", module.name), module.per_batch, 0.0)?;
            figure(&format!("the packets of a batch of `{}`", module.name), module.batch, 1.0)?;
            match module.upstream {
                Some(up) if up >= m => return Err(Malformed::Upstream(m)),
                None if module.kind == Kind::Function => return Err(Malformed::Source(m)),
                _ => {}
            }
        }
        for (j, class) in self.classes.iter().enumerate() {
            figure(&format!("the rate of `{}`", class.name), class.packets, f64::MIN_POSITIVE)?;
            if class.exit >= self.modules.len() {
                return Err(Malformed::Exit(j));
            }
        }
        Ok(())
    }

    /// The modules of a class's path, exit first.
    pub fn path(&self, class: ClassId) -> impl Iterator<Item = ModuleId> {
        self.up_from(self.classes[class].exit)
    }

    /// The first module of a class's path that works for it: behind ports and what finds the class.
    #[must_use]
    pub fn entry(&self, class: ClassId) -> ModuleId {
        let own = self.path(class).take_while(|m| self.modules[*m].kind != Kind::Port);
        own.last().unwrap_or(self.classes[class].exit)
    }

    /// A module and all upstream of it, nearest first.
    pub fn up_from(&self, module: ModuleId) -> impl Iterator<Item = ModuleId> {
        std::iter::successors(Some(module), |m| self.modules[*m].upstream)
    }

    /// Packets per second that come to each module if none is lost before it.
    #[must_use]
    pub fn packets(&self) -> Vec<f64> {
        let mut packets = vec![0.0; self.modules.len()];
        for class in &self.classes {
            packets[class.exit] += class.packets;
        }
        for (m, module) in self.modules.iter().enumerate().rev() {
            if let Some(up) = module.upstream {
                packets[up] += packets[m];
            }
        }
        packets
    }

    /// The modules right behind each module.
    #[must_use]
    pub fn downstream(&self) -> Vec<Vec<ModuleId>> {
        let mut downstream = vec![Vec::new(); self.modules.len()];
        for (m, module) in self.modules.iter().enumerate() {
            if let Some(up) = module.upstream {
                downstream[up].push(m);
            }
        }
        downstream
    }

    /// Without modules that no class goes through.
    #[must_use]
    pub fn pruned(&self) -> Graph {
        let mut used = vec![false; self.modules.len()];
        for j in 0..self.classes.len() {
            self.path(j).for_each(|m| used[m] = true);
        }
        let mut new = vec![0; self.modules.len()];
        let mut modules: Vec<Module> = Vec::new();
        for (m, module) in self.modules.iter().enumerate().filter(|(m, _)| used[*m]) {
            new[m] = modules.len();
            modules.push(Module { upstream: module.upstream.map(|up| new[up]), ..module.clone() });
        }
        let classes = self.classes.iter().map(|c| Class { exit: new[c.exit], ..c.clone() }).collect();
        Graph { modules, classes, ..*self }
    }

    /// Cycles per packet of a classifier that tells `apart` from each other and from all others: those with most packets
    /// are tried first.
    #[must_use]
    pub fn classifier(&self, apart: &[ClassId]) -> f64 {
        let all: Vec<ClassId> = (0..self.classes.len()).collect();
        (self.classify_cycles - self.classify_each * (self.tried(&all) - self.tried(apart))).max(0.0)
    }

    /// How many classes are tried for a packet on average.
    fn tried(&self, apart: &[ClassId]) -> f64 {
        let mut rates: Vec<f64> = apart.iter().map(|j| self.classes[*j].packets).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        let all: f64 = self.classes.iter().map(|class| class.packets).sum();
        let found: f64 = rates.iter().sum();
        let tries: f64 = rates.iter().enumerate().map(|(n, rate)| rate * (n + 1) as f64).sum();
        (tries + (all - found) * rates.len() as f64) / all
    }

    /// With a classifier in front of everything else, that gives the classes of `apart` ways of their own:
    /// copies of the modules on their paths. Behind ports, in front of other sources.
    ///
    /// On one worker a copy is the same module called from another task, so that nothing is duplicated but
    /// the way in.
    #[must_use]
    pub fn classified(&self, apart: &[ClassId]) -> Graph {
        let mut modules: Vec<Module> = Vec::new();
        let mut fronts = vec![0; self.modules.len()];
        let mut new = vec![0; self.modules.len()];
        for (m, module) in self.modules.iter().enumerate() {
            let classifier = Module {
                name: CLASSIFY.to_owned(),
                cycles: self.classifier(apart),
                per_batch: 0.0,
                batch: FULL_BATCH,
                upstream: None,
                kind: Kind::Port,
                cuttable: false,
                replicable: true,
                origin: usize::MAX - m,
            };
            match (module.upstream, module.kind) {
                (None, Kind::Port) => {
                    new[m] = modules.len();
                    modules.push(module.clone());
                    fronts[m] = modules.len();
                    modules.push(Module { upstream: Some(new[m]), ..classifier });
                }
                (None, _) => {
                    fronts[m] = modules.len();
                    modules.push(classifier);
                    new[m] = modules.len();
                    modules.push(Module { upstream: Some(fronts[m]), kind: Kind::Function, ..module.clone() });
                }
                (Some(up), _) => {
                    fronts[m] = fronts[up];
                    let behind_port = self.modules[up].upstream.is_none() && self.modules[up].kind == Kind::Port;
                    let upstream = Some(if behind_port { fronts[m] } else { new[up] });
                    new[m] = modules.len();
                    modules.push(Module { upstream, ..module.clone() });
                }
            }
        }
        let mut classes: Vec<Class> = self.classes.clone();
        for (j, class) in classes.iter_mut().enumerate() {
            if !apart.contains(&j) {
                class.exit = new[class.exit];
                continue;
            }
            let mut path: Vec<ModuleId> = self.path(j).collect();
            path.reverse();
            let (mut last, mut kept) = (fronts[class.exit], false);
            for m in path {
                let module = &self.modules[m];
                if module.upstream.is_none() && module.kind == Kind::Port {
                    continue;
                }
                // A source of its own behind a classifier is called by it.
                let kind = if module.upstream.is_none() { Kind::Function } else { module.kind };
                modules.push(Module { upstream: Some(last), kind, cuttable: true, ..module.clone() });
                last = modules.len() - 1;
                kept = true;
            }
            class.exit = if kept { last } else { new[class.exit] };
        }
        Graph { modules, classes, ..*self }.pruned()
    }
}
