//! Rates and times as people read them: what is small has as many digits as what is large.

/// Digits that are told of what is small.
const DIGITS: i32 = 3;

/// Bits per second as a number of Gbit/s, with two digits behind the point; below 0.1 with three digits that say something.
///
/// ```
/// # use catena_plan_model::figures::gbit;
/// assert_eq!([12.345e9, 1e9, 50e6, 51.23e6, 1e3, 0.0].map(gbit), ["12.35", "1.00", "0.05", "0.0512", "0.000001", "0.00"]);
/// ```
#[must_use]
pub fn gbit(bps: f64) -> String {
    number(bps / 1e9, 2)
}

/// Nanoseconds as a number of microseconds, with one digit behind the point; below 0.1 with three digits that say something.
///
/// ```
/// # use catena_plan_model::figures::us;
/// assert_eq!([12_345.0, 100.0, 10.0, 0.0].map(us), ["12.3", "0.1", "0.01", "0.0"]);
/// ```
#[must_use]
pub fn us(ns: f64) -> String {
    number(ns / 1e3, 1)
}

/// A number with `digits` behind the point, or more where it is below 0.1.
fn number(number: f64, digits: usize) -> String {
    let rounded = format!("{number:.digits$}");
    if !(number.abs() < 0.1 && number.abs() >= 1e-9) {
        // What is less than nothing by rounding alone has no sign.
        let is_nothing = rounded.bytes().all(|digit| matches!(digit, b'-' | b'0' | b'.'));
        return if is_nothing { format!("{:.digits$}", 0.0) } else { rounded };
    }
    let behind = (DIGITS - 1 - number.abs().log10().floor() as i32).max(0) as usize;
    let exact = format!("{number:.behind$}");
    let end = exact.trim_end_matches('0').len().max(exact.find('.').map_or(0, |point| point + 1 + digits));
    exact[..end].to_owned()
}
