//! What a function says about itself, as plain data.

use std::net::IpAddr;
use std::sync::Arc;

use catena_dataplane::Module;
use catena_dataplane::attribute::Attributes;
use catena_dataplane::steer::Owner;
use catena_packet::SlotSet;
use catena_packet::wire::Seed;
use catena_state::{Claims, Declaration, Engine, Local, Mover, Peers, Scope, Share, Team, Tx};

use crate::config::{ArgError, Args, Kind, Param};
use crate::effects::{Effects, SparedBuilder};
use crate::function::{Function, Runner};
use crate::manifest::Manifest;
use crate::tables::{Prepared, Tables};
use crate::workload::Workload;

/// How packets come to carry an attribute's value (Lan's dissertation, §3.2.2, attribute-method bindings).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All packets with the attribute's n-th value leave by output gate 2n + direction, where direction is
    /// the input gate: 0 on the way out, 1 on the way back. Value 0 is the normal way.
    Port,
    /// The value is written into the packet's metadata, in the slot that the pipeline has for it.
    Metadata,
}

/// An attribute that a function derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, as chain files spell it.
    pub name: &'static str,
    /// Its values by name; empty when it is a number.
    pub values: &'static [&'static str],
    /// How packets carry it.
    pub method: Method,
    /// One line for the manual.
    pub doc: &'static str,
}

/// Which packets must meet the same instance when a function has several (E2's affinity constraint).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// None: any packet may meet any instance.
    None,
    /// Packets that agree in these header fields.
    Scope(Scope),
    /// The function cannot be replicated.
    Single,
    /// What the manifest in an argument says; packets that agree in these header fields where it is not given.
    Manifest {
        /// The argument's name.
        param: &'static str,
        /// Without one.
        otherwise: Scope,
    },
}

impl Affinity {
    /// Return what holds for a function with these arguments: none, a scope or a single instance.
    ///
    /// # Errors
    /// What is wrong with a manifest.
    pub fn with(self, args: &Args) -> Result<Affinity, ArgError> {
        let Affinity::Manifest { param, otherwise } = self else { return Ok(self) };
        Ok(Manifest::of(args, param)?.map_or(Affinity::Scope(otherwise), |manifest| manifest.affinity()))
    }

    /// Return whether packets that belong together meet one worker: workers share them out by inside address.
    pub fn is_kept_by_workers(self) -> bool {
        match self {
            Affinity::None => true,
            Affinity::Scope(scope) | Affinity::Manifest { otherwise: scope, .. } => scope.is_within_source(),
            Affinity::Single => false,
        }
    }
}

/// What a function needs of the pipeline it is built for.
pub struct Build<'a> {
    /// The instance's name in the pipeline: its objects are known by it.
    pub instance: &'a str,
    /// Secret words for hashing.
    pub seed: Seed,
    /// The instance's share of the work.
    pub share: Share,
    /// The workers that share the function's objects; none where it works alone.
    pub team: Option<&'a Arc<Team>>,
    /// The pipeline's attribute slots.
    pub attributes: &'a mut Attributes,
    /// The values of the function's Port attributes that some edge of the chain selects.
    pub taken: &'a [String],
    /// The run's tables: see [`Build::once`].
    pub tables: &'a Tables,
}

/// What makes a function, on whatever engine its state is.
pub trait Recipe: Send + 'static {
    /// The function.
    type Function<E: Engine>: Function<E>;

    /// Whether the function has memory that no object of the engine holds: it is gone when an instance is lost.
    const HAS_MEMORY: bool = false;

    /// Whether a replay is to be the same in every run, however many workers there are, by shared objects with one owner each: what is
    /// asked of them is done in the order of the packets. Else, and live, each instance has its part of everything, and sees on a
    /// [board](catena_state::Board) what others do.
    const IS_ORDERED: bool = false;

    /// Make it, with objects of this engine: those that are there already, where an instance was lost.
    ///
    /// # Errors
    /// What is wrong with an argument.
    fn make<E: Engine>(&self, engine: &mut E) -> Result<Self::Function<E>, ArgError>;

    /// Make the module that runs it on local state, where nobody waits.
    fn on_local(engine: Local, function: Self::Function<Local>) -> Box<dyn Module> {
        Box::new(Runner::new(engine, function))
    }
}

impl Build<'_> {
    /// Return a table that is made from `from` alone: by the first instance of a run, for all of them.
    ///
    /// # Errors
    /// What is wrong with an argument.
    pub fn once<T: Prepared>(&self, from: T::From) -> Result<Arc<T>, ArgError> {
        self.tables.once(from)
    }

    /// Make a function on the engine that it is deployed with, and the module that runs it.
    ///
    /// # Errors
    /// Those of the recipe.
    pub fn deploy<R: Recipe>(&self, recipe: R) -> Result<Box<dyn Module>, ArgError> {
        #[cfg(test)]
        if let Some(delays) = crate::testing::engines::delays() {
            // Each instance is late in its own way.
            let delays = delays.wrapping_add(u64::from(self.share.index) << 32);
            let engine = catena_state::Delayed::new(self.seed, self.share, delays);
            return self.deploy_late(engine, recipe);
        }
        // Tests hold every function to it.
        let team = self.team.filter(|_| R::IS_ORDERED || cfg!(test));
        if let Some(mut engine) = team.and_then(|team| Peers::new(self.seed, team, self.share.index as usize)) {
            engine.make_for(self.instance);
            let mut function = recipe.make(&mut engine)?;
            self.must_show_all::<R, _>(&engine, &mut function)?;
            return Ok(Box::new(Runner::new(engine, function)));
        }
        let engine = Local::new(self.seed, self.share);
        let mut engine = match self.team {
            Some(team) => engine.of_team(team),
            None => engine,
        };
        engine.make_for(self.instance);
        let mut function = recipe.make(&mut engine)?;
        self.must_show_all::<R, _>(&engine, &mut function)?;
        Ok(R::on_local(engine, function))
    }

    /// Check that a function shows a mover all maps that it has made: else their flows would be forgotten when slots go.
    fn must_show_all<R: Recipe, E: Engine>(&self, engine: &E, function: &mut R::Function<E>) -> Result<(), ArgError> {
        let mut mover = Mover::leaving(SlotSet::none(), 0);
        function.objects(&mut Tx::new(0, 0, 0), &mut mover);
        let (shown, made) = (mover.shown(), engine.own_maps());
        if R::HAS_MEMORY || shown >= made {
            return Ok(());
        }
        let message = format!("it has {made} maps, and shows {shown} of them to a mover");
        Err(ArgError::new(self.instance, message)
            .help("show all of them in `Function::objects`, always in the same order"))
    }

    /// Make a function on a delayed engine, which may lose it now and then, and the module that runs it.
    #[cfg(test)]
    fn deploy_late<R: Recipe>(&self, engine: catena_state::Delayed, recipe: R) -> Result<Box<dyn Module>, ArgError> {
        use crate::testing::engines;
        let instance = self.instance.to_owned();
        let make = move |engine: &mut catena_state::Delayed| {
            engine.make_for(&instance);
            let function = recipe.make(engine)?;
            engines::note(engine.objects());
            Ok::<_, ArgError>(function)
        };
        let engine = engines::going(engines::held(engine));
        let engine = if R::HAS_MEMORY { engine } else { engines::losing(engine) };
        engines::note_view(engine.view());
        Ok(Box::new(Runner::that_goes_on(engine, make)?))
    }
}

/// Addresses that packets on the way back carry because of a function: how a pipeline knows whose they
/// are when several chains have a way back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returns {
    /// Prefixes that they are sent to, such as a NAT's pool.
    pub destinations: Vec<(IpAddr, u8)>,
    /// Prefixes that they come from, such as a load balancer's backends.
    pub sources: Vec<(IpAddr, u8)>,
}

impl Returns {
    /// Return nothing: packets on the way back look as those on the way out, turned round.
    pub fn none(_args: &Args) -> Returns {
        Returns::default()
    }
}

/// Of which end a function rewrites address and port in packets on the way out; on the way back it is the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrites {
    /// Of whom they come from, as a NAT.
    Source,
    /// Of whom they are sent to, as a load balancer.
    Destination,
    /// Nobody knows.
    Anything,
}

/// Say that all that a function keeps of flows goes with their slots: its objects are shown to a [`Mover`](catena_state::Mover), or
/// it keeps nothing.
///
/// # Errors
/// None.
pub fn all_moves(_args: &Args) -> Result<(), String> {
    Ok(())
}

/// Returns, for a number of instances of a name, what tells which of them owns a packet on the way back.
pub type OwnerOf = fn(&Args, u32, &ClaimsOf<'_>) -> Owner;

/// Tells what these instances claim of so many things that belong to an object, as [`Engine::claims`] does.
pub type ClaimsOf<'a> = dyn Fn(&Declaration, usize) -> Option<Arc<Claims>> + 'a;

/// Builds an instance of a function for a host.
pub type Builder = fn(&Args, &mut Build<'_>) -> Result<Box<dyn Module>, ArgError>;

/// A function of the library.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Name, as chain files spell it.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The source of its `mod.rs`, whose head comment is the manual.
    pub source: &'static str,
    /// What it takes.
    pub params: &'static [Param],
    /// What it derives.
    pub attributes: &'static [Attribute],
    /// Its state objects.
    pub state: &'static [Declaration],
    /// One of them as it is declared with these arguments, which may say by what it is keyed.
    pub declared: fn(&Args, Declaration) -> Declaration,
    /// Which packets belong together.
    pub affinity: Affinity,
    /// Which packets on the way back are this function's doing.
    pub returns: fn(&Args) -> Returns,
    /// Among a number of instances, which one owns a packet on the way back; `None` where its inside address
    /// tells.
    pub owner: Option<OwnerOf>,
    /// Whether what it keeps of flows can go from one instance to another with their slots; the error says why not.
    pub moves: fn(&Args) -> Result<(), String>,
    /// What it does to packets as far as others may notice.
    pub effects: fn(&Args) -> Effects,
    /// Of which end it rewrites address and port, if [`effects`](Self::effects) say that it may rewrite any.
    pub rewrites: Rewrites,
    /// How it is measured; `None` where only the user's own chain could tell.
    pub workload: Option<&'static Workload>,
    /// Build an instance for a host.
    pub build: Builder,
    /// Build one that leaves out work of which nothing would come; `None` where it cannot leave out any.
    pub spared: Option<SparedBuilder>,
}

impl Descriptor {
    /// A function that says nothing of itself: a descriptor names what differs, and ends with `..Descriptor::DEFAULTS`. Name,
    /// summary, source, parameters and `build` have no default; the registry's tests refuse a function without them. A function
    /// that keeps memory in no object of its engine must say in `moves` what becomes of it.
    pub const DEFAULTS: Descriptor = Descriptor {
        name: "",
        summary: "",
        source: "",
        params: Self::UNSAID,
        attributes: &[],
        state: &[],
        declared: |_, object| object,
        affinity: Affinity::Single,
        returns: Returns::none,
        owner: None,
        // Maps that are not shown to a mover are refused where the function is deployed.
        moves: all_moves,
        effects: Effects::any,
        rewrites: Rewrites::Anything,
        workload: None,
        build: |_, _| Err(ArgError::new("build", "the function does not say how it is built")),
        spared: None,
    };

    /// In place of parameters; a function that takes none says `&[]`.
    const UNSAID: &[Param] = &[Param { name: "", kind: Kind::Any, default: None, doc: "" }];

    /// Return which of the fields without a default the function does not give.
    #[cfg(test)]
    pub fn unsaid(&self) -> Vec<&'static str> {
        let build = |function: &Descriptor| crate::testing::build(function, &Args::default(), Share::WHOLE).err();
        let checks = [
            ("name", self.name.is_empty()),
            ("summary", self.summary.is_empty()),
            ("source", self.source.is_empty()),
            ("params", self.params == Self::UNSAID),
            ("build", build(self).is_some_and(|error| Some(error) == build(&Self::DEFAULTS))),
        ];
        checks.into_iter().filter_map(|(field, unsaid)| unsaid.then_some(field)).collect()
    }

    /// Check that this may be one of several workers' instances: that each meets all packets that belong together.
    ///
    /// # Errors
    /// Why not, or what is wrong with a manifest.
    pub fn may_share(&self, args: &Args, share: Share) -> Result<(), ArgError> {
        let affinity = self.affinity.with(args)?;
        if share.count <= 1 || affinity.is_kept_by_workers() {
            return Ok(());
        }
        let (name, manifest) = match self.affinity {
            Affinity::Manifest { param, .. } => (param, Manifest::of(args, param)?),
            _ => (self.name, None),
        };
        let why = match (manifest, affinity) {
            (Some(manifest), _) => manifest.reason(),
            (None, Affinity::Scope(scope)) if !matches!(scope, Scope::Configured | Scope::Global) => {
                format!("it is kept by {}", scope.text())
            }
            (None, _) => "it is one for all packets".to_owned(),
        };
        let message = format!("{} instances would each have a part of the state: {why}", share.count);
        Err(ArgError::new(name, message).help("run it with one worker"))
    }

    /// Return the text of the manual page: the head comment, without its comment signs.
    pub fn manual(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Descriptor").field("name", &self.name).finish_non_exhaustive()
    }
}
