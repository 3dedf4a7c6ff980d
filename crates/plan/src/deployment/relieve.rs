//! One more instance for a segment of which one has too much to do: half of its flows go there, and nothing else moves.

use super::ranges::Slots;
use super::{Deployment, Instance, name};

impl Deployment {
    /// What runs when an overloaded instance gives half of what it does to a new one on another core of its device. `load` is what
    /// each of its slots brings; where nobody knows, as much as any other.
    ///
    /// # Errors
    /// Why that is not possible: for people.
    pub fn relieved(&self, overloaded: &str, core: u32, load: impl Fn(u16) -> f64) -> Result<Deployment, String> {
        let Some(from) = self.instances.iter().position(|instance| instance.name == overloaded) else {
            return Err(format!("there is no instance {overloaded}"));
        };
        let old = &self.instances[from];
        let Some(own) = old.core else { return Err(format!("{overloaded} is on no core")) };
        if old.slots.len() < 2 {
            return Err(format!("{overloaded} has flows of one slot only, which cannot be divided"));
        }
        let mut called = name(&old.segment, &old.on, Some(core));
        if own == core || self.instances.iter().any(|other| other.on == old.on && other.core == Some(core)) {
            return Err(format!("core {core} of {} is not free", old.on));
        }
        let epoch = self.epoch.saturating_add(1);
        if self.instances.iter().any(|other| other.name == called) {
            called = format!("{called}~{epoch}");
        }
        let (kept, given) = halves(&old.slots, load);
        let new = Instance { name: called, core: Some(core), slots: given, since: epoch, ..old.clone() };
        let mut relieved = Deployment { epoch, follows: Some(self.digest()), ..self.clone() };
        relieved.instances[from].slots = kept;
        // Beside it, as the instances of a segment are listed in the order of their cores.
        let behind = self.instances.iter().rposition(|i| i.segment == old.segment && i.core < Some(core));
        relieved.instances.insert(behind.map_or(from, |behind| behind + 1), new);
        Ok(relieved)
    }
}

/// The slots in two parts that bring about as much; neither is empty.
fn halves(slots: &Slots, load: impl Fn(u16) -> f64) -> (Slots, Slots) {
    let bring = |slot: u16| load(slot).max(0.0);
    let all: f64 = slots.iter().map(bring).sum();
    if !(all > 0.0 && all.is_finite()) {
        return slots.split(slots.len().div_ceil(2));
    }
    let (mut sum, mut count) = (0.0, 0);
    for slot in slots.iter() {
        // One that brings more than half by itself stays alone.
        if count > 0 && sum + bring(slot) / 2.0 > all / 2.0 {
            break;
        }
        (sum, count) = (sum + bring(slot), count + 1);
    }
    slots.split(count.min(slots.len() - 1))
}

/// What each has where the overloaded one gives to those that have nothing, evenly, and nothing else moves.
pub(super) fn given(has: &[Slots], overloaded: usize) -> Vec<Slots> {
    let new = has.iter().filter(|slots| slots.is_empty()).count();
    let mut left = has.get(overloaded).cloned().unwrap_or_default();
    let each = left.len() / (new + 1);
    let (kept, mut rest) = left.split(left.len() - each * new);
    left = kept;
    let give = |(n, slots): (usize, &Slots)| {
        if n == overloaded {
            return left.clone();
        }
        if !slots.is_empty() {
            return slots.clone();
        }
        let (first, others) = rest.split(each);
        rest = others;
        first
    };
    has.iter().enumerate().map(give).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::{Delta, Step};
    use crate::deployment::Segment;
    use crate::plan::Device;

    fn slots(text: &str) -> Slots {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn two() -> Deployment {
        let instance = |core: u32, text: &str| Instance {
            name: format!("c/f@s:{core}"),
            segment: "c/f".into(),
            on: "s".into(),
            core: Some(core),
            slots: slots(text),
            since: 1,
        };
        Deployment {
            epoch: 1,
            seed: "0".repeat(16),
            segments: vec![Segment {
                name: "c/f".into(),
                functions: vec!["c/f".into()],
                device: Device::Server,
                told: String::new(),
            }],
            instances: vec![instance(1, "0-2047"), instance(4, "2048-4095")],
            ..Deployment::default()
        }
    }

    #[test]
    fn half_of_one_goes_and_nothing_else() {
        let old = two();
        let new = old.relieved("c/f@s:1", 2, |_| 1.0).expect("there is room");
        let text: Vec<String> = new.instances.iter().map(|i| format!("{} {}", i.name, i.slots)).collect();
        assert_eq!(text, ["c/f@s:1 0-1023", "c/f@s:2 1024-2047", "c/f@s:4 2048-4095"]);
        let delta = Delta::between(&old, &new, |_| true);
        assert_eq!(delta.leads(&old, &new), Ok(()));
        assert!(matches!(&delta.steps[..], [Step::Start { .. }, Step::Move(_)]), "{delta:?}");
        assert_eq!(delta.moved("c/f"), 0.25);
    }

    #[test]
    fn what_slots_bring_counts() {
        let heavy = |slot: u16| if slot < 10 { 100.0 } else { 0.1 };
        let new = two().relieved("c/f@s:1", 2, heavy).expect("there is room");
        assert_eq!(new.instances[0].slots.to_string(), "0-5");
        let one = two().relieved("c/f@s:1", 2, |slot| if slot == 0 { 1e9 } else { 1.0 }).expect("there is room");
        assert_eq!(one.instances[0].slots.to_string(), "0");
        for load in [0.0, f64::NAN, f64::INFINITY] {
            let new = two().relieved("c/f@s:1", 2, |_| load).expect("there is room");
            assert_eq!(new.instances[0].slots.len(), 1024, "{load}");
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let why = |name: &str, core: u32| two().relieved(name, core, |_| 1.0).expect_err("it cannot be");
        assert!(why("c/g@s:1", 2).contains("there is no instance"));
        assert!(why("c/f@s:1", 1).contains("is not free") && why("c/f@s:1", 4).contains("is not free"));
        let mut single = two();
        single.instances[0].slots = slots("7");
        assert!(single.relieved("c/f@s:1", 2, |_| 1.0).is_err());
    }

    #[test]
    fn several_new_ones_share_the_half() {
        let has = [slots("0-99"), Slots::default(), slots("100-4095"), Slots::default()];
        let text: Vec<String> = given(&has, 0).iter().map(Slots::to_string).collect();
        assert_eq!(text, ["0-33", "34-66", "100-4095", "67-99"]);
    }
}
