//! The bounds that keep every input's cost finite.

/// Bytes of a chain file.
pub const MAX_SOURCE: usize = 1 << 20;
/// Bytes of one rule file (a million routes fit).
pub const MAX_FILE: usize = 64 << 20;
/// Bytes of all rule files of a chain file.
pub const MAX_FILES_TOTAL: usize = 256 << 20;
/// Characters of a filter expression.
pub const MAX_FILTER: usize = 4096;
/// Levels of nesting: brackets in the text, macros within macros, constants of constants.
pub const MAX_DEPTH: usize = 48;
/// Nodes of a file's graph after macros are expanded.
pub const MAX_NODES: usize = 10_000;
/// Edges of a file's graph after macros and branches are expanded.
pub const MAX_EDGES: usize = 50_000;
/// Cells (of about 64 bytes) of all values together, rule files' text included.
pub const MAX_VALUES: usize = 1 << 22;
/// How many times as much one may have as another by a ratio. Tasks are weighed by 16 bits, and the least has to have more than one
/// bit's error.
pub const MAX_RATIO: f64 = 10_000.0;
/// Findings reported for one file.
pub const MAX_FINDINGS: usize = 64;
