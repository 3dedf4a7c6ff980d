//! Whether the workers can run on the cores asked for.

use catena_dataplane::worker::allowed_cores;

use crate::Failure;

/// Check that this process may run on `count` cores from `first` on. `asked` is what asks for them, such as `--core`.
///
/// # Errors
/// That it may not, with the cores on which it may.
pub fn check(asked: &str, first: usize, count: usize) -> Result<(), Failure> {
    let allowed = allowed_cores();
    let may = |worker| first.checked_add(worker).is_some_and(|core| allowed.contains(&core));
    // A system that does not say lets the workers try.
    if allowed.is_empty() || (0..count).all(may) {
        return Ok(());
    }
    let workers = if count == 1 { String::new() } else { format!(" with {count} workers") };
    Err(format!("{asked} {first}{workers}: this process may run on {} only", named(&allowed)).into())
}

/// Return cores in words, neighbours together.
fn named(cores: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let text =
        |(first, last): &(usize, usize)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let list = ranges.iter().map(text).collect::<Vec<_>>().join(", ");
    format!("{} {list}", if cores.len() == 1 { "core" } else { "cores" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_named_in_ranges() {
        assert_eq!(named(&[3]), "core 3");
        assert_eq!(named(&[0, 1, 2, 5, 7, 8]), "cores 0-2, 5, 7-8");
    }

    #[test]
    fn no_number_of_cores_overflows() {
        assert!(check("--core", usize::MAX, 64).is_err());
    }
}
