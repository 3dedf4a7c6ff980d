//! A real compiler as judge of what fits, where one is installed (Lemur, §3.2, asks the vendor's).
//!
//! This crate does no I/O: who has a compiler hands it in as a [`Compiler`], be it a closure that writes the
//! program of a set, starts the compiler, and reads its report. Compilers take seconds, so every answer is
//! kept, and none is asked for that follows from another: what is part of a set that fits, fits, and what
//! contains one that does not fit does not.
//!
//! ```
//! use catena_plan_model::switch::{Compiled, Feasible, Overflow, Verdict, members};
//!
//! let compiler = Compiled::new(|_: &catena_plan_model::problem::Problem, on_switch: &[Vec<bool>]| {
//!     let mut verdict = Verdict::default();
//!     if members(on_switch).len() > 2 {
//!         verdict.overflows.push(Overflow::Compiler("error: no more than two".into()));
//!     }
//!     verdict
//! });
//! # let _: &dyn Feasible = &compiler;
//! ```

use std::sync::{Mutex, PoisonError};

use super::memo::{Memo, Set};
use super::{Feasible, Verdict};
use crate::problem::Problem;

/// Compiles a set of functions.
pub trait Compiler: Send + Sync {
    /// What the compiler says to the program of the nodes for which `on_switch[chain][node]` is true.
    fn compile(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict;
}

impl<F: Fn(&Problem, &[Vec<bool>]) -> Verdict + Send + Sync> Compiler for F {
    fn compile(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        self(problem, on_switch)
    }
}

/// A compiler with a memory. It serves one problem's functions: asked about other chains, it forgets.
#[derive(Debug)]
pub struct Compiled<C> {
    compiler: C,
    answers: Mutex<(Vec<Functions>, Memo)>,
}

/// What a chain's program depends on.
type Functions = (Vec<String>, Vec<Option<Vec<crate::catalogue::Table>>>, Vec<(usize, usize)>);

impl<C: Compiler> Compiled<C> {
    /// Remember what `compiler` says.
    pub fn new(compiler: C) -> Compiled<C> {
        Compiled { compiler, answers: Mutex::default() }
    }
}

impl<C: Compiler> Feasible for Compiled<C> {
    fn verdict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let chains: Vec<Functions> = problem
            .chains
            .iter()
            .map(|chain| {
                let names = chain.nodes.iter().map(|node| node.function.clone()).collect();
                let tables = chain.nodes.iter().map(|node| node.pisa.clone()).collect();
                (names, tables, chain.edges.iter().map(|edge| (edge.from, edge.to)).collect())
            })
            .collect();
        let nodes: Vec<usize> = problem.chains.iter().map(|chain| chain.nodes.len()).collect();
        let set = Set::of(&nodes, on_switch);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.0 != chains {
            *answers = (chains, Memo::default());
        }
        let implied = answers.1.implied(&set);
        let decide = || Verdict { proven: true, ..self.compiler.compile(problem, on_switch) };
        answers.1.answer(set, || implied.unwrap_or_else(decide))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::switch::pisa::tests::{chain, problem, table};
    use crate::switch::{Overflow, members};

    #[test]
    fn the_compiler_is_asked_only_what_does_not_follow() {
        let calls = AtomicUsize::new(0);
        let compiled = Compiled::new(|_: &Problem, on_switch: &[Vec<bool>]| {
            calls.fetch_add(1, Ordering::Relaxed);
            let overflows = match members(on_switch).len() {
                0..=2 => Vec::new(),
                _ => vec![Overflow::Compiler("no more than two".into())],
            };
            Verdict { overflows, ..Verdict::default() }
        });
        let one = chain(vec![vec![table(1)]; 4], &[(0, 1), (1, 2), (2, 3)]);
        let asked = |on: [bool; 4], problem: &Problem| {
            let before = calls.load(Ordering::Relaxed);
            let fits = compiled.verdict(problem, &[on.to_vec()]).fits();
            (fits, calls.load(Ordering::Relaxed) - before)
        };
        let two = problem(vec![one.clone()]);
        assert_eq!(asked([true, true, false, false], &two), (true, 1));
        assert_eq!(asked([true, true, false, false], &two), (true, 0), "asked before");
        assert_eq!(asked([false, true, false, false], &two), (true, 0), "part of what fits");
        assert_eq!(asked([true, true, true, false], &two), (false, 1));
        assert_eq!(asked([true, true, true, true], &two), (false, 0), "contains what does not fit");
        assert_eq!(compiled.conflict(&two, &[vec![true; 4]]).map(|nodes| nodes.len()), Some(3));
        let other = problem(vec![chain(vec![vec![table(2)]; 4], &[(0, 1)])]);
        assert_eq!(asked([true, true, false, false], &other), (true, 1), "another problem");
    }
}
