//! alpine
