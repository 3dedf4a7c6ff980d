//! demand
