//! Books of tenants, and trees divided by them.

use super::*;

fn books(parts: &[f64]) -> Books {
    Books::new(parts.to_vec())
}

fn spent(own: f64, charged: f64) -> Spent {
    Spent { own, charged, waits: true, wants: true }
}

/// End a period of a million cycles, of which the port took `port` on packets of whom by these parts, and own tasks what their books
/// leave them. Returns what each cost.
fn period(books: &mut Books, port: f64, of_whom: &[f64]) -> Vec<f64> {
    let next: Vec<f64> = (0..of_whom.len()).map(|at| books.next(at).max(1.0)).collect();
    let all: f64 = next.iter().sum();
    let own = |at: usize| (1e6 - port) * next[at] / all;
    let came: Vec<Spent> = (0..next.len()).map(|at| spent(own(at), port * of_whom[at])).collect();
    books.step(&came);
    came.iter().map(|spent| spent.own + spent.charged).collect()
}

#[test]
fn who_has_most_packets_pays_for_receiving_them_in_its_own_tasks() {
    let mut books = books(&[0.5, 0.5]);
    let first = period(&mut books, 400_000.0, &[0.2, 0.8]);
    assert_eq!(first, [380_000.0, 620_000.0]);
    for _ in 0..5 {
        period(&mut books, 400_000.0, &[0.2, 0.8]);
    }
    let costs = period(&mut books, 400_000.0, &[0.2, 0.8]);
    assert!(costs.iter().all(|cost| (cost - 500_000.0).abs() < 5_000.0), "{costs:?}");
}

#[test]
fn all_that_was_spent_was_given_to_somebody() {
    let mut random = 7_u64;
    let mut draw = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64
    };
    for _ in 0..1_000 {
        let parts: Vec<f64> = (0..4).map(|_| 1.0 + draw() % 9.0).collect();
        let spent: Vec<Spent> = (0..4)
            .map(|_| Spent { own: draw() % 1e6, charged: draw() % 1e6, waits: false, wants: draw() % 2.0 < 1.0 })
            .collect();
        let (all, grants) = (spent.iter().map(|s| s.own + s.charged).sum::<f64>(), books(&parts).grants(&spent));
        assert!(
            (grants.iter().sum::<f64>() - all).abs() < 1e-6 * all && grants.iter().all(|grant| *grant >= 0.0),
            "{grants:?}"
        );
        // Who wants more has its part at least.
        let whole: f64 = parts.iter().sum();
        for at in (0..4).filter(|at| spent[*at].wants) {
            assert!(grants[at] >= all * parts[at] / whole * (1.0 - 1e-9), "{at}: {grants:?}");
        }
    }
}

#[test]
fn who_wants_less_saves_nothing_for_later() {
    let mut books = books(&[0.5, 0.5]);
    let little = Spent { own: 1_000.0, charged: 0.0, waits: false, wants: true };
    for _ in 0..10 {
        books.step(&[little, spent(900_000.0, 99_000.0)]);
    }
    assert!(books.balance(0) <= 0.0 && books.next(0) <= books.given(0), "{}", books.balance(0));
}

#[test]
fn a_debt_is_at_most_a_period_s_part_and_leaves_a_tenth() {
    let mut books = books(&[0.5, 0.5]);
    for _ in 0..10 {
        books.step(&[spent(100_000.0, 0.0), spent(0.0, 900_000.0)]);
    }
    assert_eq!((books.balance(1), books.given(1)), (-500_000.0, 500_000.0));
    assert_eq!(books.next(1), 50_000.0);
    // What it owed when it stopped is paid, with what the other was due: a period's part each at most.
    let mut costs = Vec::new();
    for _ in 0..12 {
        costs.push(period(&mut books, 0.0, &[0.5, 0.5])[1]);
    }
    let paid: f64 = costs.iter().map(|cost| 500_000.0 - cost).sum();
    assert!(costs[0] < 200_000.0 && (450_000.0..1_050_000.0).contains(&paid), "{costs:?}");
    assert!((costs[11] - 500_000.0).abs() < 5_000.0, "{costs:?}");
}

/// Two tenants of tasks 1 and 2, beside the port and a task of neither.
fn tenants(next: [Spent; 2]) -> Tenants {
    let mut books = books(&[0.5, 0.5]);
    (0..6).for_each(|_| books.step(&next));
    let tenant = |task| Tenant { tasks: vec![task], entrances: vec![task], row: Row::new("", 0.5) };
    let relations = vec![Relation { members: vec![0, 1], books }];
    Tenants { all: vec![tenant(1), tenant(2)], relations, entrances: vec![1, 2], cycles: 0.0, others: 0.0 }
}

#[test]
fn tenants_share_what_they_have_and_leave_the_port_and_others_theirs() {
    let leaf = |weight, task| (weight, SchedulerTree::Task(task));
    let flat = SchedulerTree::Fair(vec![leaf(400, 0), leaf(200, 1), leaf(300, 2), leaf(100, 3)]);
    let fair = |a, b| SchedulerTree::Fair(vec![leaf(400, 0), leaf(a, 1), leaf(b, 2), leaf(100, 3)]);
    // One is charged 300 of its 500, the other 100.
    let with = tenants([spent(400.0, 100.0), spent(200.0, 300.0)]);
    assert_eq!(with.divide(&flat), fair(333, 167));
    let beside = SchedulerTree::Fair(vec![leaf(400, 0), (600, SchedulerTree::Priority(vec![flat.clone()]))]);
    let divided = SchedulerTree::Fair(vec![leaf(400, 0), (600, SchedulerTree::Priority(vec![fair(333, 167)]))]);
    assert_eq!(with.divide(&beside), divided);
    // Where only one of them is, there is nobody to share with.
    let alone = SchedulerTree::Fair(vec![leaf(400, 0), leaf(200, 1)]);
    assert_eq!(with.divide(&alone), alone);
    // Before anything is known, the planned weights hold.
    let before = Tenants { relations: vec![Relation { members: vec![0, 1], books: books(&[0.5, 0.5]) }], ..with };
    assert_eq!(before.divide(&flat), flat);
}
