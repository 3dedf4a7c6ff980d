//! lemur
