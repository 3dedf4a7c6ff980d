//! Loads, of which the least is wanted.

/// Things with a load each: a binary heap that knows where everything stands in it.
#[derive(Debug)]
pub struct Loads {
    loads: Vec<i64>,
    up: Vec<bool>,
    /// Things, heap-ordered: those that are up before those that are not, then by load, then by index.
    heap: Vec<u32>,
    /// Where each thing stands in `heap`.
    place: Vec<u32>,
}

impl Loads {
    /// Make `count` things, all with load 0 and up.
    pub fn new(count: usize) -> Self {
        let all: Vec<u32> = (0..count as u32).collect();
        Loads { loads: vec![0; count], up: vec![true; count], heap: all.clone(), place: all }
    }

    fn rank(&self, place: usize) -> (bool, i64, u32) {
        let thing = self.heap[place];
        (!self.up[thing as usize], self.loads[thing as usize], thing)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }

    fn settle(&mut self, thing: usize) {
        let mut at = self.place[thing] as usize;
        while at > 0 && self.rank(at) < self.rank((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.rank(child)) else { return };
            if self.rank(least) >= self.rank(at) {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    /// Return the least loaded thing that is up, the first of several; `None` when none is up.
    pub fn least(&self) -> Option<usize> {
        self.heap.first().map(|thing| *thing as usize).filter(|thing| self.up[*thing])
    }

    /// Return the least loaded thing that is up, the first of several, with one more added to its load; `None` when none is
    /// up.
    pub fn take_least(&mut self) -> Option<usize> {
        let thing = self.least()?;
        self.loads[thing] += 1;
        self.settle(thing);
        Some(thing)
    }

    /// Add to a thing's load.
    pub fn add(&mut self, index: usize, n: i64) {
        self.loads[index] += n;
        self.settle(index);
    }

    /// Say whether a thing is up.
    pub fn set_up(&mut self, index: usize, up: bool) {
        self.up[index] = up;
        self.settle(index);
    }

    /// Return a thing's load.
    pub fn load(&self, index: usize) -> i64 {
        self.loads[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_loaded_that_is_up_is_taken(steps in prop::collection::vec((0usize..7, -3i64..4, any::<bool>()), 1..300)) {
            let mut tested = Loads::new(7);
            let (mut loads, mut ups) = ([0i64; 7], [true; 7]);
            for (thing, n, up) in steps {
                tested.add(thing, n);
                loads[thing] += n;
                tested.set_up(thing, up);
                ups[thing] = up;
                let expected = (0..7).filter(|&i| ups[i]).min_by_key(|&i| (loads[i], i));
                prop_assert_eq!(tested.take_least(), expected);
                if let Some(i) = expected {
                    loads[i] += 1;
                    prop_assert_eq!(tested.load(i), loads[i]);
                }
            }
        }
    }
}
