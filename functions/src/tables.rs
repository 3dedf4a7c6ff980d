//! Tables that functions make from their arguments alone: made once a run, read by all its workers.
//!
//! A function that compiles rules or routes asks [`Build::once`](crate::Build::once) for its table. The first instance makes
//! it; those of the other workers get the same one. A table is known by its type and by all that it is made from, compared
//! by value, and [`Prepared::prepare`] sees nothing else: two tables that are not the same cannot be taken for each other.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::ArgError;

/// A table that packets only read.
pub trait Prepared: Sized + Send + Sync + 'static {
    /// All that it is made from.
    type From: PartialEq + Send + 'static;

    /// Make it.
    ///
    /// # Errors
    /// What is wrong with an argument.
    fn prepare(from: &Self::From) -> Result<Self, ArgError>;
}

/// The tables of one run. A clone is the same store.
#[derive(Clone, Default)]
pub struct Tables(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

/// A table, and what it was made from.
struct Entry<T: Prepared> {
    from: T::From,
    table: Arc<T>,
}

impl Tables {
    /// Return the table that is made from this; make it if it is not there.
    ///
    /// # Errors
    /// Those of [`Prepared::prepare`]. They are not kept.
    pub fn once<T: Prepared>(&self, from: T::From) -> Result<Arc<T>, ArgError> {
        let mut entries = self.entries();
        let mut same_type = entries.iter().filter_map(|entry| entry.downcast_ref::<Entry<T>>());
        if let Some(entry) = same_type.find(|entry| entry.from == from) {
            return Ok(Arc::clone(&entry.table));
        }
        let table = Arc::new(T::prepare(&from)?);
        entries.push(Box::new(Entry { from, table: Arc::clone(&table) }));
        Ok(table)
    }

    /// Forget all tables. Those who have one keep it; a table that nobody has any more gives its memory back.
    pub fn clear(&self) {
        self.entries().clear();
    }

    /// Return how many tables there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Return whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Box<dyn Any + Send>>> {
        // An entry is added when its table is complete: a panic leaves the others whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice a number.
    #[derive(Debug, PartialEq)]
    struct Doubled(u64);

    /// A number and one, from the same.
    #[derive(Debug, PartialEq)]
    struct Next(u64);

    impl Prepared for Doubled {
        type From = u64;

        fn prepare(from: &u64) -> Result<Self, ArgError> {
            from.checked_mul(2).map(Doubled).ok_or_else(|| ArgError::new("number", "too large"))
        }
    }

    impl Prepared for Next {
        type From = u64;

        fn prepare(from: &u64) -> Result<Self, ArgError> {
            Ok(Next(from + 1))
        }
    }

    #[test]
    fn a_table_is_made_once_and_known_by_type_and_origin() {
        let tables = Tables::default();
        let four = tables.once::<Doubled>(2).unwrap();
        assert!(Arc::ptr_eq(&four, &tables.clone().once(2).unwrap()), "a clone is the same store");
        assert_eq!(*tables.once::<Doubled>(3).unwrap(), Doubled(6));
        assert_eq!(*tables.once::<Next>(2).unwrap(), Next(3));
        assert_eq!((tables.len(), Arc::strong_count(&four)), (3, 2));
    }

    #[test]
    fn errors_are_not_kept() {
        let tables = Tables::default();
        assert!(tables.once::<Doubled>(u64::MAX).is_err() && tables.is_empty());
        assert_eq!(*tables.once::<Doubled>(1).unwrap(), Doubled(2));
    }

    #[test]
    fn a_table_that_is_forgotten_stays_with_who_has_it() {
        let tables = Tables::default();
        let kept = tables.once::<Doubled>(1).unwrap();
        tables.clear();
        assert_eq!((tables.len(), Arc::strong_count(&kept)), (0, 1));
        assert!(!Arc::ptr_eq(&kept, &tables.once(1).unwrap()));
    }
}
