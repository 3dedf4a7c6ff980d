//! Header views: one protocol a file, checked once, then cheap.
