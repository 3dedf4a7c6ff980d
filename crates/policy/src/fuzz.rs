//! What must hold for every input, whatever it is: one function for property tests and fuzzers.

use crate::{Compiler, Insn, Library, NoFiles, Outcome, format, load_with};

/// Accepts every filter: fuzzing libpcap's compiler (and its look-ups of host names) is not the point.
struct Anything;

impl Compiler for Anything {
    fn compile(&self, _: &str) -> Result<Vec<Insn>, String> {
        // BPF_RET | BPF_K: accept.
        Ok(vec![Insn { code: 0x06, jt: 0, jf: 0, k: 65_535 }])
    }
}

/// Checks `data` as a chain file: it is judged without a panic; if it can be laid out, the layout is
/// stable, and means the same with the same findings.
///
/// # Panics
/// If one of these does not hold; that is its purpose.
pub fn fuzz_one(data: &[u8], library: &Library) {
    let source = String::from_utf8_lossy(data);
    let outcome = load_with("fuzz.catena", &source, library, &NoFiles, &Anything);
    for finding in &outcome.diagnostics {
        let text = finding.render("fuzz.catena", &source, false);
        assert!(text.contains(finding.code.as_str()), "a finding does not show its kind");
    }
    if let Some(graph) = &outcome.graph {
        assert!(graph.to_dot().ends_with("}\n"), "a drawing does not end");
    }
    let Ok(laid_out) = format(&source) else { return };
    let again = format(&laid_out);
    assert_eq!(again.as_ref(), Ok(&laid_out), "formatting twice changes the layout of:\n{source}");
    let second = load_with("fuzz.catena", &laid_out, library, &NoFiles, &Anything);
    assert_eq!(codes(&outcome), codes(&second), "formatting changes the findings about:\n{source}\n{laid_out}");
    let places_aside = |outcome: Outcome| {
        outcome.graph.map(|mut graph| {
            graph.forget_places();
            graph
        })
    };
    assert_eq!(places_aside(outcome), places_aside(second), "formatting changes the graph of:\n{source}");
}

fn codes(outcome: &Outcome) -> Vec<(&'static str, &str)> {
    let mut codes: Vec<_> = outcome.diagnostics.iter().map(|d| (d.code.as_str(), d.message.as_str())).collect();
    codes.sort_unstable();
    codes
}
