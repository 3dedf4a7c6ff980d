//! Keeps house: what no compiler checks and every reader relies on.
//!
//! Dependencies go only where the table in `docs/architecture.md` lets them, files say what they are for, names
//! are the field's own, links lead somewhere, and every function has its manual, tests and benchmark. A failure
//! lists all places and says what to do.

mod code;
mod compiler;
mod dependencies;
mod documents;
mod files;
mod functions;
mod sources;

/// Fail with every finding, and what to do about them.
///
/// # Panics
/// When there is one.
#[track_caller]
fn none(findings: &[String], advice: &str) {
    let (count, list) = (findings.len(), findings.join("\n  "));
    assert!(findings.is_empty(), "{count} found:\n  {list}\n{advice}\n");
}
