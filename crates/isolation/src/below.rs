//! Which accounts a cgroup pays for: its own, and those of all cgroups below it.
//!
//! Which those are is looked up in the file system, for as many as there are. So that is done only when somebody is charged who
//! is not known yet. An id is never another cgroup's, and no cgroup of v2 moves.

use std::collections::HashSet;

/// So many that are known beside those that there are, before they are looked through: gone, or others'.
const MOST: usize = 4096;

/// What is known of a cgroup's accounts, by the cgroups' ids.
#[derive(Debug, Default)]
pub(crate) struct Below {
    /// The cgroup, and what was found below it. One that has gone stays: packets may still come to a socket of it.
    own: HashSet<u64>,
    /// Those that are elsewhere.
    others: HashSet<u64>,
}

impl Below {
    /// Return which of those that are charged the cgroup pays for. `find` looks up all below it, itself included.
    pub(crate) fn of<'a>(
        &'a mut self,
        charged: &'a [u64],
        find: impl FnOnce() -> Vec<u64>,
    ) -> impl Iterator<Item = u64> + 'a {
        let is_known = |id: &u64| self.own.contains(id) || self.others.contains(id);
        if !charged.iter().all(is_known) {
            let found = find();
            if self.own.len() + self.others.len() > found.len() + charged.len() + MOST {
                let is_charged: HashSet<u64> = charged.iter().copied().collect();
                self.own.retain(|id| is_charged.contains(id));
                self.others.retain(|id| is_charged.contains(id));
            }
            self.own.extend(found);
            self.others.extend(charged.iter().filter(|id| !self.own.contains(id)));
        }
        charged.iter().copied().filter(|id| self.own.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Charge some; returns those that it pays for, and whether they were looked up.
    fn pays(below: &mut Below, charged: &[u64], there: &[u64]) -> (Vec<u64>, bool) {
        let mut was_looked_up = false;
        let find = || {
            was_looked_up = true;
            there.to_vec()
        };
        let paid = below.of(charged, find).collect();
        (paid, was_looked_up)
    }

    #[test]
    fn it_is_looked_up_only_when_somebody_new_is_charged() {
        let mut below = Below::default();
        assert_eq!(pays(&mut below, &[], &[1, 2]), (vec![], false));
        assert_eq!(pays(&mut below, &[2, 9], &[1, 2]), (vec![2], true));
        assert_eq!(pays(&mut below, &[1, 9, 2], &[]), (vec![1, 2], false));
        assert_eq!(pays(&mut below, &[9, 3], &[1, 2, 3]), (vec![3], true));
    }

    #[test]
    fn one_that_has_gone_is_paid_for_all_the_same() {
        let mut below = Below::default();
        assert_eq!(pays(&mut below, &[2], &[1, 2]), (vec![2], true));
        assert_eq!(pays(&mut below, &[2, 8], &[1]), (vec![2], true));
        assert_eq!(pays(&mut below, &[2, 8], &[1]), (vec![2], false));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut below = Below::default();
        for id in (0..100_000).step_by(2) {
            // Each is new: one that goes at once, and another one elsewhere.
            assert_eq!(pays(&mut below, &[id, id + 1, 1_000_000], &[id, 1_000_000]).0, [id, 1_000_000]);
            assert!(below.own.len() + below.others.len() <= MOST + 16);
        }
    }
}
