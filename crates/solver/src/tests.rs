//! Solvers against answers that are known, against every combination of small integers, and against each other.

use proptest::prelude::*;

use super::*;

const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

fn best(outcome: Outcome) -> Solution {
    match outcome {
        Outcome::Best(solution) => solution,
        other => panic!("not solved: {other:?}"),
    }
}

#[test]
fn a_linear_program_has_its_value() {
    // Dantzig's example: most of 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18 is 36 at (2, 6).
    let mut program = Program::new(Sense::Maximise);
    let (x, y) = (program.column(3.0, 0.0, f64::INFINITY), program.column(5.0, 0.0, f64::INFINITY));
    program.row(ANY.0, 4.0, [(x, 1.0)]);
    program.row(ANY.0, 12.0, [(y, 2.0)]);
    program.row(ANY.0, 18.0, [(x, 3.0), (y, 2.0)]);
    let solution = best(program.solve(&Limits::default()));
    assert!((solution.value - 36.0).abs() < 1e-7 && (solution.bound - 36.0).abs() < 1e-7, "{solution:?}");
    assert!((solution.of(x) - 2.0).abs() < 1e-7 && (solution.of(y) - 6.0).abs() < 1e-7, "{solution:?}");
}

#[test]
fn a_row_has_two_ends_and_terms_of_one_column_add_up() {
    for (sense, value) in [(Sense::Minimise, 2.0), (Sense::Maximise, 5.0)] {
        let mut program = Program::new(sense);
        let (x, y) = (program.column(1.0, 0.0, 10.0), program.column(1.0, 0.0, 10.0));
        program.row(4.0, 10.0, [(y, 1.0), (x, 2.0), (y, 1.0)]);
        assert!((best(program.solve(&Limits::default())).value - value).abs() < 1e-7);
    }
}

#[test]
fn what_has_no_solution_is_told_from_what_has_no_best_one() {
    let mut program = Program::new(Sense::Maximise);
    let (x, y) = (program.column(1.0, 0.0, f64::INFINITY), program.column(1.0, 0.0, f64::INFINITY));
    program.row(ANY.0, 1.0, [(x, 1.0), (y, -1.0)]);
    assert_eq!(program.solve(&Limits::default()), Outcome::Unbounded);
    program.row(ANY.0, 3.0, [(x, 1.0), (y, 1.0)]);
    assert!((best(program.solve(&Limits::default())).value - 3.0).abs() < 1e-7);
    program.row(5.0, ANY.1, [(x, 1.0), (y, 1.0)]);
    assert_eq!(program.solve(&Limits::default()), Outcome::Infeasible);
    // Rows without a column are decided by their bounds, rows of one column by the column's.
    let mut program = Program::new(Sense::Minimise);
    let x = program.column(1.0, 0.0, 1.0);
    program.row(1.0, 2.0, [(x, 0.0)]);
    assert_eq!(program.solve(&Limits::default()), Outcome::Infeasible);
    let mut program = Program::new(Sense::Minimise);
    let x = program.column(1.0, 0.0, 1.0);
    program.row(2.0, 3.0, [(x, 1.0)]);
    assert_eq!(program.solve(&Limits::default()), Outcome::Infeasible);
}

#[test]
fn integers_between_two_neighbours_do_not_exist() {
    let mut program = Program::new(Sense::Minimise);
    let x = program.integer_column(1.0, 0.0, 5.0);
    program.row(1.2, 1.8, [(x, 1.0)]);
    assert_eq!(program.solve(&Limits::default()), Outcome::Infeasible);
}

/// A knapsack whose weights and values are nearly in proportion: hard for branch and bound.
fn hard(things: u32) -> Program {
    let mut program = Program::new(Sense::Maximise);
    let weight = |i: u32| 1000.0 + f64::from(i * 7919 % 997);
    let columns: Vec<Column> =
        (0..things).map(|i| program.integer_column((weight(i) + 100.0) / 1000.0, 0.0, 1.0)).collect();
    for half in 0..2 {
        let terms: Vec<_> =
            (0..things).map(|i| (columns[i as usize], weight((i + half * 31) % things) / 1000.0)).collect();
        let capacity = terms.iter().map(|(_, w)| w).sum::<f64>() / 2.0 + 0.0137;
        program.row(f64::NEG_INFINITY, capacity, terms);
    }
    program
}

#[test]
fn time_and_gap_end_a_search_and_the_bound_says_how_good_it_is() {
    let program = hard(60);
    let rough = best(program.solve(&Limits { gap: 0.05, ..Limits::default() }));
    assert!(rough.bound >= rough.value - 1e-6 && rough.bound <= rough.value * 1.06, "{rough:?}");
    let start = std::time::Instant::now();
    match program.solve(&Limits { time: Duration::from_millis(50), ..Limits::default() }) {
        Outcome::Best(solution) | Outcome::Some(solution) => {
            assert!(solution.bound >= solution.value - 1e-6);
            assert!(solution.bound >= rough.value - 1e-6, "{solution:?} {rough:?}");
        }
        Outcome::Nothing(bound) => assert!(bound >= rough.value - 1e-6),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Small programs of integers from 0 to 3 and whole coefficients, with more rows than let all of them have solutions.
fn small() -> impl Strategy<Value = Program> {
    (1usize..5, 1usize..5, any::<bool>()).prop_flat_map(|(columns, rows, most)| {
        let row = (prop::collection::vec(-4i32..5, columns), -6i32..4, 0i32..12);
        let rows = prop::collection::vec(row, rows);
        (prop::collection::vec(-5i32..6, columns), rows).prop_map(move |(costs, rows)| {
            let mut program = Program::new(if most { Sense::Maximise } else { Sense::Minimise });
            let columns: Vec<Column> =
                costs.iter().map(|cost| program.integer_column(f64::from(*cost), 0.0, 3.0)).collect();
            for (factors, low, width) in rows {
                let terms = columns.iter().zip(factors).map(|(column, factor)| (*column, f64::from(factor)));
                program.row(f64::from(low), f64::from(low + width), terms);
            }
            program
        })
    })
}

/// The best value by trying every combination.
fn tried(program: &Program) -> Option<f64> {
    let count = program.columns.len();
    let values = |combination: usize| (0..count).map(move |c| (combination >> (2 * c) & 3) as f64);
    let sum = |terms: &[(Column, f64)], at: &[f64]| terms.iter().map(|(c, factor)| factor * at[c.0]).sum::<f64>();
    let kept = (0..1usize << (2 * count)).map(|combination| values(combination).collect::<Vec<f64>>());
    let kept = kept.filter(|at| program.rows.iter().all(|r| (r.low..=r.high).contains(&sum(&r.terms, at))));
    let value = |at: Vec<f64>| program.columns.iter().zip(at).map(|(unknown, v)| unknown.cost * v).sum::<f64>();
    kept.map(value).reduce(if program.sense == Sense::Maximise { f64::max } else { f64::min })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn integer_programs_have_the_value_that_trying_finds(program in small()) {
        match (program.solve(&Limits::default()), tried(&program)) {
            (Outcome::Best(solution), Some(value)) => prop_assert!((solution.value - value).abs() < 1e-6),
            (Outcome::Infeasible, None) => {}
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
