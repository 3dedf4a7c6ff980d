//! A figure that may have no limit, as data: infinity is left out, for JSON has no number for it.

/// Whether there is no limit.
pub(crate) fn is_none(figure: &f64) -> bool {
    *figure == f64::INFINITY
}

/// No limit.
pub(crate) fn none() -> f64 {
    f64::INFINITY
}
