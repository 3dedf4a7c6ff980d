//! The cores that a scene needs, and those that this process may use.

use std::thread;

use super::{INSIDE, OUTSIDE, SceneError};

/// Check that containers and senders can have a core each.
///
/// # Errors
/// Which one is missing.
pub fn check() -> Result<(), SceneError> {
    // SAFETY: the call takes a number and changes nothing.
    if unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } < 2 {
        return Err(SceneError::OneCore);
    }
    needs(&allowed())
}

fn needs(allowed: &[usize]) -> Result<(), SceneError> {
    match [OUTSIDE, INSIDE].into_iter().find(|core| !allowed.contains(core)) {
        Some(core) => Err(SceneError::Core { core, allowed: allowed.to_vec() }),
        None => Ok(()),
    }
}

/// Return the cores that threads of this process can be put on: not only those that this one is kept on now.
fn allowed() -> Vec<usize> {
    // A thread of its own, which ends with what it has changed of itself.
    let cores = thread::spawn(|| {
        // SAFETY: the sets are plain data, of the size that is said. The kernel leaves out cores that a cpuset does not give.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            (0..8 * size_of_val(&set)).for_each(|core| libc::CPU_SET(core, &mut set));
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
            libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
            set
        };
        // SAFETY: the number is below that of the set's bits.
        (0..8 * size_of_val(&set)).filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }).collect()
    });
    cores.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_not_there_is_named_with_those_that_are() {
        let said = |allowed: &[usize]| needs(allowed).err().map(|error| error.to_string());
        assert_eq!(said(&[0, 1, 5]), None);
        assert_eq!(said(&[0]).unwrap(), "needs CPU 1, and this process may use CPU 0 only: look at its cpuset");
        assert_eq!(said(&[1, 2]).unwrap(), "needs CPU 0, and this process may use CPUs 1, 2 only: look at its cpuset");
    }

    #[test]
    fn who_is_kept_on_a_core_may_use_the_others() {
        let [before, pinned] = [None, Some(allowed()[0])].map(|pin| {
            let cores = thread::spawn(move || {
                if let Some(core) = pin {
                    super::super::actor::pin(core).unwrap();
                }
                allowed()
            });
            cores.join().unwrap()
        });
        assert_eq!(before, pinned);
    }
}
