//! Linear and mixed-integer linear programs, and who solves them.
//!
//! The planners write a [`Program`]: columns with bounds, some of them integers, rows with ranges, and what to make
//! most or least of. [`Program::solve`] hands it to `microlp`, which is Rust and builds in seconds, or, with the
//! cargo feature `highs`, to HiGHS, which takes a C++ compiler, CMake and some minutes to build and is faster on
//! large integer programs. Both find the same values; docs/planning.md says when to take which.

#[cfg(feature = "compare")]
mod compare;
#[cfg(feature = "highs")]
mod highs;
mod microlp;
#[cfg(test)]
mod tests;

use std::time::Duration;

/// The name of the solver that this build uses, as messages show it.
pub const NAME: &str = if cfg!(feature = "highs") { "HiGHS" } else { "microlp" };

/// What is made of the sum of columns by their costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// The least.
    #[default]
    Minimise,
    /// The most.
    Maximise,
}

/// A column of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Column(usize);

/// An unknown: its bounds, its cost, and whether it is an integer.
#[derive(Clone, Debug, PartialEq)]
struct Unknown {
    cost: f64,
    low: f64,
    high: f64,
    integer: bool,
}

/// A sum of columns that lies between two bounds.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    low: f64,
    high: f64,
    terms: Vec<(Column, f64)>,
}

/// A mixed-integer linear program.
///
/// Columns and rows should count in units of about 1: a bound is kept up to [`Limits::feasibility`], absolute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    sense: Sense,
    columns: Vec<Unknown>,
    rows: Vec<Row>,
}

/// How long and how exactly to solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Time that a solver may take.
    pub time: Duration,
    /// A solution whose value is this near to the best one's, relative, is good enough.
    pub gap: f64,
    /// What a row or bound may be missed by, absolute; at least 1e-10.
    pub feasibility: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration::from_secs(3600), gap: 0.0, feasibility: 1e-9 }
    }
}

/// Values of all columns that keep every bound and row.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The value of each column, in order.
    pub values: Vec<f64>,
    /// The sum of columns by their costs.
    pub value: f64,
    /// No solution is better than this.
    pub bound: f64,
}

impl Solution {
    /// The value of a column.
    #[must_use]
    pub fn of(&self, column: Column) -> f64 {
        self.values[column.0]
    }
}

/// How solving ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a solution as good as was asked for.
    Best(Solution),
    /// Out of time, with a solution.
    Some(Solution),
    /// Out of time or by a numerical failure, without a solution; none is better than this (infinite: not known).
    Nothing(f64),
    /// There is no solution.
    Infeasible,
    /// There is no best solution: the costs grow without limit.
    Unbounded,
}

impl Program {
    /// An empty program.
    #[must_use]
    pub fn new(sense: Sense) -> Program {
        Program { sense, ..Program::default() }
    }

    /// Add a column with a cost between two bounds, which may be infinite. A `high` below `low` counts as `low`.
    pub fn column(&mut self, cost: f64, low: f64, high: f64) -> Column {
        self.columns.push(Unknown { cost, low, high: high.max(low), integer: false });
        Column(self.columns.len() - 1)
    }

    /// Add a column that takes integers only.
    pub fn integer_column(&mut self, cost: f64, low: f64, high: f64) -> Column {
        let column = self.column(cost, low, high);
        self.columns[column.0].integer = true;
        column
    }

    /// Add a row: the sum of `terms` lies between two bounds, which may be infinite. Terms of one column add up.
    pub fn row(&mut self, low: f64, high: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        let mut terms: Vec<(Column, f64)> = terms.into_iter().collect();
        if !terms.is_sorted_by(|a, b| a.0 < b.0) {
            terms.sort_by_key(|(column, _)| *column);
            terms.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
        }
        terms.retain(|(_, factor)| *factor != 0.0);
        self.rows.push(Row { low, high, terms });
    }

    /// Set the cost of a column.
    pub fn set_cost(&mut self, column: Column, cost: f64) {
        self.columns[column.0].cost = cost;
    }

    /// Set the bounds of a column.
    pub fn set_bounds(&mut self, column: Column, low: f64, high: f64) {
        let unknown = &mut self.columns[column.0];
        (unknown.low, unknown.high) = (low, high.max(low));
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    #[cfg(feature = "highs")]
    fn has_integers(&self) -> bool {
        self.columns.iter().any(|unknown| unknown.integer)
    }

    /// The bounds of each column, as rows of one column tighten them.
    fn bounds(&self) -> Vec<(f64, f64)> {
        let mut bounds: Vec<(f64, f64)> = self.columns.iter().map(|unknown| (unknown.low, unknown.high)).collect();
        for row in &self.rows {
            let [(column, factor)] = row.terms[..] else { continue };
            let (low, high) = &mut bounds[column.0];
            let (a, b) = (row.low / factor, row.high / factor);
            (*low, *high) = (low.max(a.min(b)), high.min(a.max(b)));
        }
        bounds
    }

    /// A row of constants, which only its bounds decide.
    fn is_contradictory(&self, feasibility: f64) -> bool {
        let mut empty = self.rows.iter().filter(|row| row.terms.is_empty());
        empty.any(|row| row.low > feasibility || row.high < -feasibility)
    }

    /// Solve.
    #[must_use]
    pub fn solve(&self, limits: &Limits) -> Outcome {
        if self.is_contradictory(limits.feasibility) {
            return Outcome::Infeasible;
        }
        #[cfg(any(not(feature = "highs"), feature = "compare"))]
        let outcome = microlp::solve(self, limits);
        #[cfg(all(feature = "highs", not(feature = "compare")))]
        let outcome = highs::solve(self, limits);
        #[cfg(feature = "compare")]
        compare::assert_same(self, limits, &outcome);
        outcome
    }
}
