//! How often shared objects are asked and told something, held against what is declared of them.

use std::panic::Location;

use super::made::Made;
use crate::declare::Access;

/// So often an object must be told something before that is called a habit: the beginning of a run is no measure.
const HABIT: u64 = 64;

/// How often each was used, by its number.
#[derive(Default)]
pub(super) struct Uses(Vec<Use>);

#[derive(Clone, Copy, Default)]
struct Use {
    asked: u64,
    told: u64,
}

impl Uses {
    fn of(&mut self, object: Made) -> &mut Use {
        if self.0.len() <= object.number {
            self.0.resize(object.number + 1, Use::default());
        }
        &mut self.0[object.number]
    }

    /// Note that an object is asked something.
    #[track_caller]
    pub(super) fn ask(&mut self, object: Made) {
        if object.declaration.access == Access::WriteMostly {
            panic!("{object}: waited for, and declared as one that is written mostly, at {}", Location::caller());
        }
        self.of(object).asked += 1;
    }

    /// Note that an object is told something.
    #[track_caller]
    pub(super) fn tell(&mut self, object: Made) {
        let of = self.of(object);
        of.told += 1;
        let Use { asked, told } = *of;
        let (is_contradicted, declared) = match object.declaration.access {
            Access::WriteMostly => (false, ""),
            Access::ReadWrite => (asked == 0, "written and read often"),
            Access::ReadMostly => (asked < told, "read mostly"),
        };
        if told >= HABIT && is_contradicted {
            let at = Location::caller();
            panic!(
                "{object}: told more than it is asked, and declared as {declared}: told {told} times, asked {asked}, at {at}"
            );
        }
    }
}
