//! Whether the workers can run on the cores asked for.

use catena_dataplane::worker::allowed_cores;

use crate::Failure;

/// Return `count` cores from `first` on; none where there are no such numbers.
pub fn from(first: usize, count: usize) -> Option<Vec<usize>> {
    Some((first..first.checked_add(count)?).collect())
}

/// Check that this process may run on these cores. `asked` is what asks for them, such as `--core 2`.
///
/// # Errors
/// That it may not, with the cores on which it may.
pub fn check(asked: &str, cores: &[usize]) -> Result<(), Failure> {
    let allowed = allowed_cores();
    // A system that does not say lets the workers try.
    if allowed.is_empty() || cores.iter().all(|core| allowed.contains(core)) {
        return Ok(());
    }
    let workers = if cores.len() == 1 { String::new() } else { format!(" with {} workers", cores.len()) };
    Err(format!("{asked}{workers}: this process may run on {} only", named(&allowed)).into())
}

/// Return cores in words, neighbours together.
pub fn named(cores: &[usize]) -> String {
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
        assert_eq!(from(usize::MAX, 64), None);
        assert!(check("--core", &[usize::MAX]).is_err());
    }
}
