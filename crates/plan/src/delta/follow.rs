//! Follows the steps of a delta, one by one, to see that none leaves a flow without an instance.
//!
//! It knows nothing of how deltas are made: it holds who has which slots of which function, and does what the steps say. Before a
//! delta is written, it must lead from the one deployment to the other. Of one that is read, with its plan alone, the judge checks all
//! that shows without the deployment that it is from ([`crate::judge`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::{Delta, Move, Part, Step};
use crate::deployment::devices::{Table, Tunnel};
use crate::deployment::paths::{Next, Path};
use crate::deployment::ranges::Slots;
use crate::deployment::{Deployment, Instance, Segment};
use crate::plan::Device;

/// A step that cannot be done, or an end that is not the one that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// The step's number, from 1; 0: the whole.
    pub step: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            0 => f.write_str(&self.what),
            step => write!(f, "step {step}: {}", self.what),
        }
    }
}

impl std::error::Error for Astray {}

impl Delta {
    /// Whether the steps lead from `old` to `new`, and each flow of each function has one running instance after each.
    ///
    /// # Errors
    /// The first step that is not possible.
    pub fn leads(&self, old: &Deployment, new: &Deployment) -> Result<(), Astray> {
        let whole = |what: String| Err(Astray { step: 0, what });
        if self.from != old.digest() {
            return whole("it is from another deployment than the one that runs".to_owned());
        }
        if self.epoch != new.epoch || self.epoch <= old.epoch {
            return whole(format!("it leads from epoch {} to {}, not to {}", old.epoch, self.epoch, new.epoch));
        }
        let mut now = State::of(old)?;
        now.to_come = new.paths.iter().map(|path| (path.spi, functions(path, new))).collect();
        now.to_hold = held(new);
        now.to_start = new.instances.iter().map(|instance| (instance.name.clone(), instance.on.clone())).collect();
        now.places.extend(new.instances.iter().map(|instance| (instance.name.clone(), place(instance))));
        for (step, number) in self.steps.iter().zip(1..) {
            if let Some(what) = started(step, new).or_else(|| misnamed(step, old)) {
                return Err(Astray { step: number, what });
            }
            now.take(step).map_err(|what| Astray { step: number, what })?;
        }
        let wanted = State::of(new)?;
        let running = now.running.symmetric_difference(&wanted.running).next();
        if let Some(name) = running {
            return whole(format!("in the end, {name} runs or does not, and the other was planned"));
        }
        if (&now.paths, &now.entered) != (&wanted.paths, &wanted.entered) {
            return whole("in the end, packets go other ways than planned".to_owned());
        }
        // That packets enter by other classes does not show in where they go.
        let enters = self.steps.iter().any(|step| matches!(step, Step::Enter { .. }));
        if !enters && old.entrances != new.entrances {
            return whole("packets enter by other classes than planned".to_owned());
        }
        if let Some(what) = now.unequipped() {
            return whole(format!("in the end, {what}"));
        }
        let keys: BTreeSet<_> = now.has.keys().chain(wanted.has.keys()).collect();
        let differs = keys.into_iter().find(|key| now.has.get(*key) != wanted.has.get(*key));
        match differs {
            Some((function, instance)) => {
                whole(format!("in the end, {instance} has other flows of {function} than planned"))
            }
            None => Ok(()),
        }
    }
}

/// What is wrong with what starts: it is not what was planned.
fn started(step: &Step, new: &Deployment) -> Option<String> {
    let Step::Start { instance, functions, on, core } = step else { return None };
    let Some(planned) = new.instances.iter().find(|planned| planned.name == *instance) else {
        return Some(format!("{instance} starts, and is not planned"));
    };
    let segment = new.segments.iter().find(|segment| segment.name == planned.segment);
    let is = (&planned.on, planned.core) == (on, *core) && segment.is_some_and(|own| own.functions == *functions);
    (!is).then(|| format!("{instance} starts with other functions or elsewhere than planned"))
}

/// What is wrong with a path that is removed: it is another chain's.
fn misnamed(step: &Step, old: &Deployment) -> Option<String> {
    let Step::Remove { spi, chain } = step else { return None };
    let whose = old.paths.iter().find(|path| path.spi == *spi).map(|path| &path.chain)?;
    (whose != chain).then(|| format!("path {spi} is {whose}'s, not {chain}'s"))
}

/// Who runs, and who has which flows of which function; nobody has none.
#[derive(Clone, Debug, Default)]
struct State {
    running: BTreeSet<String>,
    has: BTreeMap<(String, String), Slots>,
    /// All flows of these have an instance.
    served: BTreeSet<String>,
    /// Paths that are laid, with the functions where packets enter segments.
    paths: BTreeMap<u32, Vec<(String, Place)>>,
    /// Those that packets enter.
    entered: BTreeSet<u32>,
    /// The place of each instance that runs or is to run.
    places: BTreeMap<String, Place>,
    /// Paths that a plan has, laid or not.
    to_come: BTreeMap<u32, Vec<(String, Place)>>,
    /// What each device holds.
    holds: BTreeMap<(String, Part), Held>,
    /// What each device of the plan is to hold.
    to_hold: BTreeMap<(String, Part), Held>,
    /// The instances of the plan, and the device of each.
    to_start: BTreeMap<String, String>,
}

/// What a device holds of a part.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Whole(Option<Device>),
    Tables(Vec<Table>),
    Tunnels(Vec<Tunnel>),
    Schedule(Option<String>),
}

impl Held {
    /// What a device holds that was given nothing.
    fn nothing(part: Part) -> Held {
        match part {
            Part::Whole => Held::Whole(None),
            Part::Tables => Held::Tables(Vec::new()),
            Part::Tunnels => Held::Tunnels(Vec::new()),
            Part::Schedule => Held::Schedule(None),
        }
    }
}

/// What each device holds, part by part.
fn held(deployment: &Deployment) -> BTreeMap<(String, Part), Held> {
    let mut all = BTreeMap::new();
    for device in &deployment.devices {
        let here = |tunnel: &&Tunnel| device.device.is_switch() || tunnel.on == device.on;
        let tunnels = deployment.tunnels.iter().filter(here).cloned().collect();
        let mut has = |part, held| _ = all.insert((device.on.clone(), part), held);
        has(Part::Whole, Held::Whole(Some(device.device).filter(|device| device.is_switch())));
        has(Part::Tables, Held::Tables(device.tables.clone()));
        has(Part::Tunnels, Held::Tunnels(tunnels));
        has(Part::Schedule, Held::Schedule(device.schedule.clone()));
    }
    all
}

/// A segment, and the device that it runs on.
type Place = (String, String);

/// The functions on a path, and where packets on it come to each.
fn functions(path: &Path, deployment: &Deployment) -> Vec<(String, Place)> {
    let mut names: BTreeSet<&String> = path.hops.iter().map(|hop| &hop.function).collect();
    names.extend(path.rules.iter().filter_map(|rule| match &rule.to {
        Next::Function(name) => Some(name),
        _ => None,
    }));
    let place = |name: &str| {
        let segment = deployment.running(name).map_or_else(String::new, |segment| segment.name.clone());
        // Packets go where the hop into the segment says that it is.
        let hop = path.hops.iter().find(|hop| hop.segment == segment);
        (segment, hop.map_or_else(String::new, |hop| hop.on.clone()))
    };
    names.into_iter().map(|name| (name.clone(), place(name))).collect()
}

fn place(instance: &Instance) -> Place {
    (instance.segment.clone(), instance.on.clone())
}

impl State {
    fn of(deployment: &Deployment) -> Result<State, Astray> {
        let mut state = State::default();
        let segments: HashMap<&str, &Segment> = deployment.segments.iter().map(|s| (s.name.as_str(), s)).collect();
        for instance in &deployment.instances {
            let functions = segments.get(instance.segment.as_str());
            state.running.insert(instance.name.clone());
            state.places.insert(instance.name.clone(), place(instance));
            for function in functions.iter().flat_map(|segment| &segment.functions) {
                state.has.insert((function.clone(), instance.name.clone()), instance.slots.clone());
                state.served.insert(function.clone());
            }
        }
        state.holds = held(deployment);
        state.paths = deployment.paths.iter().map(|path| (path.spi, functions(path, deployment))).collect();
        state.entered = deployment.entrances.iter().map(|entrance| entrance.spi).collect();
        if let Some(what) = state.lost() {
            return Err(Astray { step: 0, what });
        }
        for function in &state.served {
            if let Some(what) = state.torn(function) {
                return Err(Astray { step: 0, what });
            }
        }
        Ok(state)
    }

    /// What is wrong with the flows of a function: each slot has one instance.
    fn torn(&self, function: &str) -> Option<String> {
        let mut all = Slots::default();
        let mut count = 0;
        for (_, slots) in self.holders(function) {
            all = all.with(slots);
            count += slots.len();
        }
        if count > all.len() {
            return Some(format!("flows of {function} are with two instances"));
        }
        (all != Slots::all()).then(|| format!("flows of {function} are without an instance"))
    }

    /// A path that packets enter and that is not laid, or leads to a function that has no instances for some flows.
    fn lost(&self) -> Option<String> {
        self.entered.iter().find_map(|spi| {
            let Some(functions) = self.paths.get(spi) else {
                return Some(format!("packets enter path {spi}, which is not there"));
            };
            functions.iter().find_map(|(function, place)| {
                if !self.served.contains(function) {
                    return Some(format!("packets on path {spi} come to {function}, which has no instance"));
                }
                let mut holders = self.holders(function).map(|(holder, _)| holder);
                let other = holders.find(|holder| self.places.get(*holder) != Some(place))?;
                let (segment, on) = place;
                Some(format!(
                    "packets on path {spi} come to {segment} on {on}, and {other} has flows of its {function}"
                ))
            })
        })
    }

    /// A device that does not hold what it is to hold. What is no more in the plan went with paths and instances.
    fn unequipped(&self) -> Option<String> {
        let holds = |key: &(String, Part)| self.holds.get(key).cloned().unwrap_or_else(|| Held::nothing(key.1));
        let mut all = self.to_hold.iter();
        let ((on, part), _) = all.find(|(key, wanted)| holds(key) != **wanted)?;
        Some(format!("{on} does not have the {part} that are planned"))
    }

    /// A device gets what it is to hold.
    fn equip(&mut self, on: &str, with: &[Part]) -> Result<(), String> {
        // Its tasks are those of its instances.
        let late = self.to_start.iter().find(|(name, of)| *of == on && !self.running.contains(*name));
        if let Some((name, _)) = late {
            return Err(format!("{on} is equipped for {name}, which does not run"));
        }
        for part in with {
            let key = (on.to_owned(), *part);
            let wanted = self.to_hold.get(&key).ok_or_else(|| format!("{on} is not planned, and is equipped"))?;
            let before = self.holds.insert(key, wanted.clone()).unwrap_or_else(|| Held::nothing(*part));
            if before == *wanted {
                return Err(format!("{on} has the {part} that are planned already"));
            }
        }
        Ok(())
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        self.done(step)?;
        // What packets meet on new ways is there before them.
        if let (Step::Enter { .. }, Some(what)) = (step, self.unequipped()) {
            return Err(format!("packets enter, and {what}"));
        }
        match step {
            // Between instances of one segment on one device flows move as its slots say; elsewhere packets would not follow.
            Step::Move(one) if self.places.get(&one.from) == self.places.get(&one.to) => Ok(()),
            Step::Enter { .. } | Step::Remove { .. } | Step::End { .. } | Step::Move(_) => {
                self.lost().map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    fn done(&mut self, step: &Step) -> Result<(), String> {
        let touched: &[String] = match step {
            Step::Start { instance, .. } => {
                let new = self.running.insert(instance.clone());
                return if new { Ok(()) } else { Err(format!("{instance} runs already")) };
            }
            Step::Install { spi, .. } => {
                let Some(functions) = self.to_come.get(spi) else { return Err(format!("there is no path {spi}")) };
                let new = self.paths.insert(*spi, functions.clone()).is_none();
                return if new { Ok(()) } else { Err(format!("path {spi} is there already")) };
            }
            Step::Enter { paths, moves, .. } => {
                moves.iter().try_for_each(|one| self.over(one))?;
                self.entered = paths.iter().copied().collect();
                let touched = moves.iter().flat_map(|one| &one.functions);
                return touched.filter(|f| self.served.contains(*f)).find_map(|f| self.torn(f)).map_or(Ok(()), Err);
            }
            Step::Remove { spi, .. } => {
                let there = self.paths.remove(spi).is_some();
                return if there { Ok(()) } else { Err(format!("there is no path {spi}")) };
            }
            Step::Stop { instance } => {
                if let Some((function, _)) = self.has.keys().find(|(_, holder)| holder == instance) {
                    return Err(format!("{instance} still has flows of {function}"));
                }
                return if self.running.remove(instance) { Ok(()) } else { Err(format!("{instance} does not run")) };
            }
            Step::Equip { on, with } => return self.equip(on, with),
            Step::Give { functions, slots, to } => {
                if let Some(function) = functions.iter().find(|function| self.served.contains(*function)) {
                    return Err(format!("flows of {function} have an instance already"));
                }
                functions.iter().try_for_each(|function| self.widen(function, to, slots))?;
                // Of a function that is new, flows come when all its slots are given.
                for function in functions {
                    if self.torn(function).is_none() {
                        self.served.insert(function.clone());
                    }
                }
                return Ok(());
            }
            Step::Move(one) => {
                self.over(one)?;
                &one.functions
            }
            Step::End { functions, from } => {
                for function in functions {
                    self.has.remove(&(function.clone(), from.clone()));
                    self.served.remove(function);
                }
                return Ok(());
            }
        };
        match touched.iter().filter(|function| self.served.contains(*function)).find_map(|f| self.torn(f)) {
            Some(torn) => Err(torn),
            None => Ok(()),
        }
    }

    /// Let flows go over.
    fn over(&mut self, one: &Move) -> Result<(), String> {
        one.functions.iter().try_for_each(|function| {
            self.narrow(function, &one.from, &one.slots)?;
            self.widen(function, &one.to, &one.slots)
        })
    }

    /// The instances that have flows of a function, and which.
    fn holders(&self, function: &str) -> impl Iterator<Item = (&String, &Slots)> {
        let all = self.has.range((function.to_owned(), String::new())..).map(|((f, holder), slots)| (f, holder, slots));
        all.take_while(move |(f, ..)| *f == function).map(|(_, holder, slots)| (holder, slots))
    }

    fn narrow(&mut self, function: &str, from: &str, slots: &Slots) -> Result<(), String> {
        let key = (function.to_owned(), from.to_owned());
        let has = self.has.get(&key).cloned().unwrap_or_default();
        if has.common(slots) != *slots {
            return Err(format!("{from} has not all of slots {slots} of {function}"));
        }
        let left = has.without(slots);
        match left.is_empty() {
            true => self.has.remove(&key),
            false => self.has.insert(key, left),
        };
        Ok(())
    }

    fn widen(&mut self, function: &str, to: &str, slots: &Slots) -> Result<(), String> {
        if !self.running.contains(to) {
            return Err(format!("{to} does not run, and is to have flows"));
        }
        let has = self.has.entry((function.to_owned(), to.to_owned())).or_default();
        if !has.common(slots).is_empty() {
            return Err(format!("{to} has some of slots {slots} of {function} already"));
        }
        *has = has.with(slots);
        Ok(())
    }
}
