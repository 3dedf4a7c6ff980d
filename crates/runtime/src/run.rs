//! A run before it begins: a chain, its ports, workers and plan; and its beginning.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use catena_compile::backend::Hosted;
use catena_compile::{Counts, Host, Side};
use catena_dataplane::{Module, Source};

use crate::inode::Uses;
use crate::names::Names;
use crate::notes::{Listener, Note};
use crate::planned::Planned;
use crate::running::Running;
use crate::tenants;
use crate::trial::{self, Files};
use crate::weights::Weighed;
use crate::workers::{self, Layout};
use crate::{Chain, Failure, Planner, Port, Ports, Unplanned, cores, files, moving};

/// Without a plan flows are numbered by another seed than functions hash by.
const NUMBERING: u64 = 0x0073_7465_6572;

/// A run of a chain file, to be given its ports and started.
///
/// With nothing else said, one worker runs all, on whatever core, with random numbers that nobody can know, by a plan that `P`
/// makes.
pub struct Run<'a, P> {
    chain: &'a Chain,
    planner: P,
    names: Names,
    ports: Ports,
    workers: u32,
    first_core: Option<usize>,
    seed: Option<u64>,
    fresh_seed: u64,
    /// Which counts are observed by whoever takes out what is redundant; None: all work is done.
    reduces: Option<Counts>,
    planned: Option<Planned>,
    /// Whether a plan was asked for, whatever came of it.
    is_planned: bool,
    rebalances: bool,
    has_tenants: bool,
    waits: bool,
    reads: Vec<(String, PathBuf)>,
    uses: Option<Uses>,
    prepared: Option<(Host, Files)>,
    tell: Box<dyn Fn(&Note) + 'a>,
    /// What was told so far.
    notes: RefCell<Vec<Note>>,
    over: Box<dyn Fn() -> bool + 'a>,
}

impl<'a, P: Planner> Run<'a, P> {
    /// Run a chain file.
    pub fn of(chain: &'a Chain) -> Run<'a, P>
    where
        P: Default,
    {
        Run {
            chain,
            planner: P::default(),
            names: Names::default(),
            ports: Ports::between(Port::Null, Port::Null),
            workers: 1,
            first_core: None,
            seed: None,
            fresh_seed: fresh_seed(),
            reduces: Some(Counts::Functions),
            planned: None,
            is_planned: false,
            rebalances: false,
            has_tenants: false,
            waits: false,
            reads: Vec::new(),
            uses: None,
            prepared: None,
            tell: Box::new(|_| {}),
            notes: RefCell::default(),
            over: Box::new(|| false),
        }
    }

    /// Take packets of side `in` from a port by its name: a capture, an interface (both ways), or `gen:…`.
    ///
    /// # Errors
    /// That it names none of these, or what is wrong with what is to be generated.
    pub fn inside(mut self, port: &str) -> Result<Self, Failure> {
        let source = Port::source(port, self.names.sources[0])?;
        let [from, to] = &mut self.ports.inside;
        if matches!(to, Port::Null | Port::Interface(_)) {
            *to = source.other_way();
        }
        *from = source;
        Ok(self)
    }

    /// Let packets leave by side `out` to a port by its name: a capture to write, an interface (both ways), or `null`.
    ///
    /// # Errors
    /// That it names none of these.
    pub fn outside(mut self, port: &str) -> Result<Self, Failure> {
        let exit = Port::exit(port, self.names.exits[1])?;
        let [from, to] = &mut self.ports.outside;
        if matches!(from, Port::Null | Port::Interface(_)) {
            *from = exit.other_way();
        }
        *to = exit;
        Ok(self)
    }

    /// Take packets of a side from a source of your own. Each says by which side it came: `meta_mut().way` is [`Way::by`] 0 or 1.
    /// The run ends when all sources are done, or is stopped. Several workers get the packets of a source of your own from the
    /// first of them.
    ///
    /// [`Way::by`]: catena_packet::Way::by
    #[must_use]
    pub fn source(mut self, side: Side, source: Box<dyn Source>) -> Self {
        self.side(side)[0] = Port::from_source(source);
        self
    }

    /// Let packets leave by a side through a module of your own. It takes every packet that it is given and returns the buffer to
    /// `cx.pool()`, and it is an [exit](Module::is_exit).
    #[must_use]
    pub fn exit(mut self, side: Side, exit: Box<dyn Module>) -> Self {
        self.side(side)[1] = Port::to_module(exit);
        self
    }

    /// Use these ports, all four of them.
    #[must_use]
    pub fn ports(mut self, ports: Ports) -> Self {
        self.ports = ports;
        self
    }

    /// Spread the packets over so many workers, 1 to 64; all packets of an inside address meet the same one.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Pin the first worker to this core, and the others to the next ones.
    #[must_use]
    pub fn first_core(mut self, core: Option<usize>) -> Self {
        self.first_core = core;
        self
    }

    /// Make all that is random repeatable.
    #[must_use]
    pub fn seed(mut self, seed: Option<u64>) -> Self {
        self.seed = seed;
        self
    }

    /// Take out work that is redundant as far as these counts do not tell; None: do all work that the functions do.
    #[must_use]
    pub fn reduce(mut self, counts: Option<Counts>) -> Self {
        self.reduces = counts;
        self
    }

    /// Divide the chains as this plan does: its workers, tasks and scheduler tree. None: as one that is made for the run.
    #[must_use]
    pub fn planned(mut self, planned: Option<Planned>) -> Self {
        (self.is_planned, self.planned) = (planned.is_some(), planned);
        self
    }

    /// Return the plan, made now if there was none: for the chain, ports, workers and seed that the run has. [`Run::start`] does it
    /// where nobody has. None: the run can have no plan, and whoever [listens](Run::tell) was told why.
    ///
    /// # Errors
    /// When there can be no run of so many workers.
    pub fn plan(&mut self) -> Result<Option<&Planned>, Failure> {
        if !self.is_planned {
            check_workers(&self.names, self.workers as usize)?;
            let run = Unplanned {
                chain: self.chain,
                ports: &self.ports,
                workers: self.workers,
                rebalances: self.rebalances.then_some(self.names.rebalance),
                seed: self.seed.unwrap_or(self.fresh_seed),
            };
            self.planned = self.planner.plan(&run, &|note| self.note(note));
            self.is_planned = true;
        }
        Ok(self.planned.as_ref())
    }

    /// Let slots of flows go from busy workers to idle ones while packets flow.
    #[must_use]
    pub fn rebalance(mut self, rebalances: bool) -> Self {
        self.rebalances = rebalances;
        self
    }

    /// Let chains that a `cpu` relation names pay out of their parts for what is done on their packets before their functions: for
    /// receiving them, finding their chain and dropping them.
    #[must_use]
    pub fn tenants(mut self, has_tenants: bool) -> Self {
        self.has_tenants = has_tenants;
        self
    }

    /// Let interfaces keep the run going when what has an end has ended.
    #[must_use]
    pub fn wait_for_interfaces(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// What the parts of the run are called in messages.
    #[must_use]
    pub fn named(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// A file that must not be written over, with what it is called.
    #[must_use]
    pub fn reads(mut self, what: &str, path: &Path) -> Self {
        self.reads.push((what.to_owned(), path.to_owned()));
        self
    }

    /// Use these files instead of what [`Run::uses`] finds.
    #[must_use]
    pub fn using(mut self, uses: Uses) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Tell what is worth knowing and no failure, as soon as it is known: from [`Run::plan`] and [`Run::start`], before they return.
    /// The report has it, too.
    #[must_use]
    pub fn tell(mut self, tell: impl Fn(&Note) + 'a) -> Self {
        self.tell = Box::new(tell);
        self
    }

    /// Ask this, while the run waits for whoever reads a pipe, whether it shall end instead.
    #[must_use]
    pub fn over(mut self, over: impl Fn() -> bool + 'a) -> Self {
        self.over = Box::new(over);
        self
    }

    fn note(&self, note: &Note) {
        self.notes.borrow_mut().push(note.clone());
        (self.tell)(note);
    }

    fn side(&mut self, side: Side) -> &mut [Port; 2] {
        match side {
            Side::In => &mut self.ports.inside,
            Side::Out => &mut self.ports.outside,
        }
    }

    /// Lower the chain, and build its functions once to see what they refuse: before any port is opened. [`Run::start`] does it
    /// where nobody has. Returns the files that the functions of one worker use.
    ///
    /// # Errors
    /// What the library lacks or a function refuses, with the place in the chain file.
    pub fn prepare(&mut self) -> Result<&Files, Failure> {
        let prepared = self.take_prepared()?;
        Ok(&self.prepared.insert(prepared).1)
    }

    fn take_prepared(&mut self) -> Result<(Host, Files), Failure> {
        match (self.prepared.take(), self.reduces) {
            (Some(prepared), _) => Ok(prepared),
            (None, None) => trial::lower_and_build(self.chain),
            (None, Some(counts)) => {
                let (host, _) = trial::lower_and_reduce(self.chain, counts)?;
                let files = trial::build_once(&host, self.chain)?;
                Ok((host, files))
            }
        }
    }

    /// Return the files that are read, and those that the ports write. What functions write depends on how many workers there
    /// are, and is checked as the run begins.
    ///
    /// # Errors
    /// When one would be written over another, or over something that is read.
    pub fn uses(&mut self) -> Result<Uses, Failure> {
        let prepared = self.take_prepared()?;
        let (host, files) = self.prepared.insert(prepared);
        let mut uses = files::of_chain(self.chain.file.as_deref(), host, files)?;
        self.reads.iter().try_for_each(|(what, path)| uses.reads(what, path))?;
        self.ports.add_to(&mut uses, &self.names)?;
        Ok(uses)
    }

    /// Return the ports.
    pub fn all_ports(&self) -> &Ports {
        &self.ports
    }

    /// Start the run: all that is read is opened, then all that is written, and then packets flow.
    ///
    /// # Errors
    /// What a function refuses, what cannot be opened or pinned, what would be written over; or that the plan is for another
    /// file.
    pub fn start(mut self) -> Result<Running, Failure> {
        let uses = match self.uses.take() {
            Some(uses) => uses,
            None => self.uses()?,
        };
        let (host, _) = self.take_prepared()?;
        self.ports.check(&self.names)?;
        if !self.ports.have_source() {
            return Err(format!("{}: nothing comes from there", self.names.sources[0]).into());
        }
        self.plan()?;
        let (chain, names, planned) = (self.chain, self.names, self.planned.take());
        let mut ports = std::mem::replace(&mut self.ports, Ports::between(Port::Null, Port::Null));
        let hosted = match &planned {
            Some(planned) => planned.lowered(host, &chain.graph)?,
            None => Hosted::of(host),
        };
        let host = hosted.host;
        let of_plan = planned.as_ref().and_then(Planned::seed);
        let seed = self.seed.or(of_plan).unwrap_or(self.fresh_seed);
        let count = if planned.is_some() { hosted.cores.len() } else { self.workers as usize };
        check_workers(&names, count)?;
        let cores = pinned(self.first_core, planned.as_ref(), count, names.core)?;
        let layout = Layout {
            count,
            // Whatever else is random, flows are numbered as the plan numbers them, so that its slots mean the same.
            numbering: of_plan.unwrap_or(seed ^ NUMBERING),
            cores: cores.as_deref(),
            tree: hosted.tree.as_ref(),
            waits: self.waits,
            rebalances: self.rebalances,
            slots: planned.is_some().then_some(hosted.slots),
        };
        if layout.rebalances {
            moving::check(&host, &ports, layout.count, &names)?;
        }
        let shares = if self.has_tenants { tenants::shares(&chain.graph) } else { Vec::new() };
        if self.has_tenants && shares.is_empty() {
            let name = names.tenants;
            return Err(
                format!("{name}: no `cpu` relation names tenants: write `cpu a : b = 1 : 1` of two chains").into()
            );
        }
        let division = planned.as_ref().and_then(|planned| planned.division(&chain.graph));
        if self.has_tenants && division.is_none() {
            let name = names.tenants;
            return Err(
                format!(
                    "{name}: this run has no plan by which CPU is divided: a replay has none, whose packets come as fast as they are taken \
                     (an interface's, or those of `time=wall`, come as they come), or what was told before says why"
                )
                .into()
            );
        }
        let weighed = division.map(|division| Weighed { division, several: chain.graph.chains.len() > 1, shares });
        let listener = Listener { tell: &|note| self.note(note), over: &*self.over };
        let workers = workers::start(&host, &layout, weighed, &mut ports, seed, uses, listener)?;
        for name in ports.down() {
            self.note(&Note::Down(name.to_owned()));
        }
        Running::begin(workers, host, chain.graph.clone(), planned, (ports.is_live(), self.notes.take()))
    }
}

/// Return the core of each of `count` workers: from `first` on, or as the plan says; `option` is what says where they begin. None: they
/// run where they like.
fn pinned(
    first: Option<usize>,
    plan: Option<&Planned>,
    count: usize,
    option: &str,
) -> Result<Option<Vec<usize>>, Failure> {
    if let Some(first) = first {
        let asked = format!("{option} {first}");
        let cores = cores::from(first, count).ok_or_else(|| format!("{asked}: there are no such cores"))?;
        return cores::check(&asked, &cores).map(|()| Some(cores));
    }
    let Some(cores) = plan.and_then(Planned::cores) else { return Ok(None) };
    cores::check(&format!("the plan's {}", cores::named(&cores)), &cores)
        .map_err(|why| format!("{why}; plan with a rack that has the cores of this machine, or say {option}"))?;
    Ok(Some(cores))
}

fn check_workers(names: &Names, count: usize) -> Result<(), Failure> {
    match (1..=workers::MOST).contains(&count) {
        true => Ok(()),
        false => Err(format!("{} {count}: a run has 1 to {}", names.workers, workers::MOST).into()),
    }
}

/// Return a number that nobody outside can know.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
