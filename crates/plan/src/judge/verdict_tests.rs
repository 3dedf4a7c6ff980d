//! Lies about whether promises are kept, in plans that are placed.

use serde_json::{Value, json};

use super::whole_tests::{drawn, two};
use crate::plan::{Plan, Verdict};

fn broken(proven: bool) -> Value {
    json!({ "broken": { "proven": proven, "why": "nobody knows" } })
}

fn kept() -> Value {
    json!({ "kept": { "marginal_bps": 0.0 } })
}

/// Why a plan is refused where its verdict is another one; empty: it is not.
fn told(plan: &Plan, verdict: &Value) -> String {
    let mut lying = serde_json::to_value(plan).expect("JSON");
    lying["verdict"] = verdict.clone();
    Plan::from_json(&lying.to_string()).err().unwrap_or_default()
}

#[test]
fn what_is_kept_is_not_called_broken() {
    for (promises, relation) in
        [(["", ""], ""), (["promise 1Gbps..", ""], "cpu x : y = 1 : 2"), (["", "promise 1Gbps.."], "")]
    {
        let plan = two(promises, relation);
        assert!(plan.is_kept(), "{promises:?} {relation}: {:?}", plan.verdict);
        let why = told(&plan, &broken(false));
        assert!(why.contains("verdict: promises are said to be broken"), "{promises:?} {relation}: {why}");
        assert!(told(&plan, &broken(true)).contains("verdict.proven: no plan is said to keep"), "{relation}");
    }
}

#[test]
fn a_verdict_turned_round_is_found() {
    let (mut were_kept, mut were_late, mut had_no_tasks) = (0, 0, 0);
    for seed in 0..60 {
        let drawn = drawn(seed);
        let plan = drawn.planned(false);
        if plan.placement.is_none() || plan.deployment.is_none() {
            continue;
        }
        if plan.is_kept() {
            were_kept += 1;
            let why = told(&plan, &broken(false));
            assert!(why.contains("verdict: promises are said to be broken"), "seed {seed}: {why}\n{}", drawn.file);
            continue;
        }
        // What is not so is told beside the figures of a verdict that nobody knows.
        let why = told(&plan, &kept());
        let (late, lacks) = (why.contains("that are promised"), why.contains("verdict: promises are said to be kept"));
        assert!(late || lacks, "seed {seed}: {why}\n{}", drawn.file);
        let Verdict::Broken { proven, .. } = plan.verdict else { continue };
        assert!(proven || told(&plan, &broken(true)).contains("verdict.proven"), "seed {seed}\n{}", drawn.file);
        if late {
            were_late += 1;
        }
        if lacks {
            had_no_tasks += 1;
        }
    }
    assert!(were_kept > 5 && were_late > 0, "{were_kept} kept, {were_late} late, {had_no_tasks} without tasks");
}

#[test]
fn promises_that_no_tasks_keep_are_broken() {
    let plan = two(["promise 1Gbps..", ""], "cpu x : y = 1 : 2");
    let mut without = serde_json::to_value(&plan).expect("JSON");
    without["servers"][0].as_object_mut().expect("a server").remove("tasks");
    let why = Plan::from_json(&without.to_string()).err().unwrap_or_default();
    assert!(why.contains("verdict: promises are said to be kept, and the workers have no tasks"), "{why}");
}
