//! Deltas between drawn deployments lead where they should, and changed ones are found.

use super::*;
use crate::deployment::ranges::{divide, quotas};
use crate::deployment::{Deployment, Instance, Segment};
use crate::plan::Device;
use catena_plan_model::random::Random;

/// Functions of `functions` in segments, with one to four instances each; those of `old` keep their slots.
fn drawn(random: &mut Random, functions: usize, epoch: u64, old: &Deployment) -> Deployment {
    let mut new = Deployment { epoch, seed: format!("{:016x}", 1), ..Deployment::default() };
    let mut next = 0;
    while next < functions {
        let end = (next + 1 + random.below(3)).min(functions);
        // One function less, now and then: it is not planned.
        let names: Vec<String> = (next..end).filter(|_| random.below(9) > 0).map(|n| format!("c/f{n}")).collect();
        next = end;
        if names.is_empty() {
            continue;
        }
        let segment = names.join("+");
        let places: Vec<u32> = (0..4).filter(|_| random.below(2) == 0).collect();
        let places = if places.is_empty() { vec![0] } else { places };
        let name = |core: &u32| format!("{segment}@s:{core}");
        let before = |core: &u32| old.instances.iter().find(|i| i.name == name(core));
        let has: Vec<Slots> =
            places.iter().map(|core| before(core).map_or_else(Slots::default, |i| i.slots.clone())).collect();
        let parts: Vec<f64> = places.iter().map(|_| random.unit()).collect();
        for (core, slots) in places.iter().zip(divide(&quotas(&parts), &has)) {
            new.instances.push(Instance {
                name: name(core),
                segment: segment.clone(),
                on: "s".to_owned(),
                core: Some(*core),
                slots,
                since: before(core).map_or(epoch, |i| i.since),
            });
        }
        new.segments.push(Segment { name: segment, functions: names, device: Device::Server, told: String::new() });
    }
    new
}

/// The delta where another name is in the place of an instance's that gives flows away or stops.
fn renamed(delta: &Delta, name: &str, other: &str) -> Delta {
    let mut lying = delta.clone();
    for step in &mut lying.steps {
        match step {
            Step::Move(Move { from, .. }) | Step::End { from, .. } | Step::Stop { instance: from } if from == name => {
                *from = other.to_owned();
            }
            _ => {}
        }
    }
    lying
}

#[test]
fn every_delta_leads_where_it_should_and_none_that_is_changed() {
    let mut random = Random::new(11);
    let mut old = Deployment::default();
    for epoch in 1..150 {
        let functions = 1 + random.below(8);
        let new = drawn(&mut random, functions, epoch, &old);
        let delta = Delta::between(&old, &new, |_| true);
        assert_eq!(delta.leads(&old, &new), Ok(()), "{delta:#?}");
        for n in 0..delta.steps.len() {
            let mut without = delta.clone();
            let gone = without.steps.remove(n);
            assert!(without.leads(&old, &new).is_err(), "nobody misses {gone}");
            let mut twice = delta.clone();
            twice.steps.insert(n, gone.clone());
            let harmless = matches!(gone, Step::End { .. });
            assert_eq!(twice.leads(&old, &new).is_ok(), harmless, "{gone} twice");
            let mut wider = delta.clone();
            if let Step::Move(Move { slots, .. }) | Step::Give { slots, .. } = &mut wider.steps[n] {
                let (first, rest) = slots.split(1);
                *slots = rest;
                assert!(wider.leads(&old, &new).is_err(), "slots {first} are left behind");
            }
        }
        for instance in &old.instances {
            // Who ran is called otherwise, in all steps alike: another that ran, or nobody.
            let others = old.instances.iter().map(|other| other.name.as_str()).filter(|other| *other != instance.name);
            for other in others.chain(["c/f0@s:9"]) {
                let renamed = renamed(&delta, &instance.name, other);
                assert!(renamed == delta || renamed.leads(&old, &new).is_err(), "{} as {other}", instance.name);
            }
        }
        let stops = delta.steps.iter().position(|step| matches!(step, Step::Stop { .. }));
        let moves = delta.steps.iter().position(|step| matches!(step, Step::Move(_) | Step::End { .. }));
        if let (Some(stop), Some(_)) = (stops, moves) {
            let mut early = delta.clone();
            let step = early.steps.remove(stop);
            early.steps.insert(0, step);
            assert!(early.leads(&old, &new).is_err(), "an instance stops while it has flows");
        }
        old = new;
    }
}

#[test]
fn one_more_core_moves_what_it_gets_and_nothing_else() {
    let mut random = Random::new(1);
    let old = drawn(&mut random, 1, 1, &Deployment::default());
    let mut new = Deployment { epoch: 2, ..old.clone() };
    let has: Vec<Slots> = old.instances.iter().map(|i| i.slots.clone()).chain([Slots::default()]).collect();
    new.instances.push(Instance { name: "c/f0@t:9".to_owned(), since: 2, ..old.instances[0].clone() });
    let parts = vec![1.0; new.instances.len()];
    for (instance, slots) in new.instances.iter_mut().zip(divide(&quotas(&parts), &has)) {
        instance.slots = slots;
    }
    let delta = Delta::between(&old, &new, |_| true);
    assert_eq!(delta.leads(&old, &new), Ok(()));
    let moved: usize = delta.moves().filter(|one| one.to == "c/f0@t:9").map(|one| one.slots.len()).sum();
    assert_eq!(moved, new.instances.last().map_or(0, |i| i.slots.len()));
    assert!((delta.moved("c/f0") - moved as f64 / 4096.0).abs() < 0.51, "no more than uneven ranges ask for");
}
