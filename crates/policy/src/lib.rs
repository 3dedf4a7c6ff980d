//! The chain language, its diagnostics and the policy graph.
