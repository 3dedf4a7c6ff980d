//! What a worker asks for verdicts: the classifier, with a cache of verdicts before it.
//!
//! The cache pays while packets belong to flows seen before. Where they do not (a scan, a flood,
//! more flows than it holds) it only costs, so it watches its own hits and rests when they are few.

use std::sync::Arc;

use super::cache::{Cache, MISS, Set, SetV4, SetV6};
use super::classifier::{BATCH, Classifier, NONE, Point, Tree, V4, V6, prefetch, search};
use super::key::{KeyV4, KeyV6};

/// The cache goes on while at least one in this many lookups hits.
const WORTHWHILE: u32 = 3;
/// How many times longer than it was tried a useless cache rests before it is tried again.
const REST: i64 = 16;

/// A worker's own way to the verdicts of a list of rules.
pub struct Matcher {
    classifier: Arc<Classifier>,
    v4: Memory<SetV4>,
    v6: Memory<SetV6>,
}

impl Matcher {
    /// A matcher with empty caches, one per family, of 1 and 2 MB. `seed` should be secret, as
    /// someone who knows it can choose flows that push each other out.
    pub fn new(classifier: Arc<Classifier>, seed: u64) -> Self {
        Self { classifier, v4: Memory::new::<V4>(seed, SetV4::WAYS), v6: Memory::new::<V6>(seed, SetV6::WAYS) }
    }

    /// Takes another list of rules; verdicts of the old one are forgotten at once.
    pub fn replace(&mut self, classifier: Arc<Classifier>) {
        self.classifier = classifier;
        self.v4.cache.forget();
        self.v6.cache.forget();
    }

    /// The list in use.
    pub fn classifier(&self) -> &Arc<Classifier> {
        &self.classifier
    }

    /// Index of the first rule that matches each packet, or [`Classifier::NO_RULE`].
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    #[inline]
    pub fn classify_v4(&mut self, keys: &[KeyV4], found: &mut [u32]) {
        self.v4.classify(self.classifier.trees_v4(), keys, found);
    }

    /// Index of the first rule that matches each packet, or [`Classifier::NO_RULE`].
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    #[inline]
    pub fn classify_v6(&mut self, keys: &[KeyV6], found: &mut [u32]) {
        self.v6.classify(self.classifier.trees_v6(), keys, found);
    }
}

/// A cache, and how well it does.
struct Memory<S> {
    cache: Cache<S>,
    /// Lookups after which the cache has seen as many flows as it can hold, and can be judged.
    trial: i64,
    /// Lookups left until the next judgement; while the cache rests, until it is tried again.
    left: i64,
    hits: u32,
    resting: bool,
}

impl<S> Memory<S> {
    fn new<const W: usize>(seed: u64, ways: usize) -> Self
    where
        S: Set<W>,
    {
        let trial = Cache::<S>::entries(ways) as i64;
        // The first trial also has to fill the cache.
        Self { cache: Cache::new(seed), trial, left: 2 * trial, hits: 0, resting: false }
    }

    #[inline]
    fn classify<K, const W: usize>(&mut self, trees: &[Tree<W>], keys: &[K], found: &mut [u32])
    where
        S: Set<W>,
        for<'a> Point<W>: From<&'a K>,
    {
        assert!(found.len() >= keys.len());
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut points = [Point::ORIGIN; BATCH];
            for (point, key) in points.iter_mut().zip(keys) {
                *point = Point::from(key);
            }
            let points = &points[..keys.len()];
            let found = &mut found[..keys.len()];
            if self.resting {
                let mut best = [NONE; BATCH];
                search(trees, points, &mut best);
                found.copy_from_slice(&best[..points.len()]);
            } else {
                self.remember(trees, points, found);
            }
            self.left -= points.len() as i64;
            if self.left <= 0 {
                self.judge();
            }
        }
    }

    /// Looks up a batch (at most [`BATCH`]) in the cache, searches for what is not there.
    #[inline(always)]
    fn remember<const W: usize>(&mut self, trees: &[Tree<W>], points: &[Point<W>], found: &mut [u32])
    where
        S: Set<W>,
    {
        let mut places = [0; BATCH];
        for (place, point) in places.iter_mut().zip(points) {
            *place = self.cache.place(point);
            let set = self.cache.address(*place);
            for line in 0..size_of::<S>() / 64 {
                prefetch(set.cast::<[u8; 64]>().wrapping_add(line));
            }
        }
        let mut missing = [0u8; BATCH];
        let mut misses = 0;
        for (i, (point, found)) in points.iter().zip(found.iter_mut()).enumerate() {
            *found = self.cache.find(places[i % BATCH], point);
            missing[misses % BATCH] = i as u8;
            misses += usize::from(*found == MISS);
        }
        self.hits += (points.len() - misses) as u32;
        if misses > 0 {
            self.learn(trees, points, &places, &missing[..misses], found);
        }
    }

    /// Searches for the points whose numbers stand in `missing`, and remembers them.
    #[inline(never)]
    fn learn<const W: usize>(
        &mut self,
        trees: &[Tree<W>],
        points: &[Point<W>],
        places: &[usize; BATCH],
        missing: &[u8],
        found: &mut [u32],
    ) where
        S: Set<W>,
    {
        let mut unknown = [Point::ORIGIN; BATCH];
        for (to, &i) in unknown.iter_mut().zip(missing) {
            *to = points[usize::from(i)];
        }
        let mut best = [NONE; BATCH];
        search(trees, &unknown[..missing.len()], &mut best);
        for ((&i, point), &index) in missing.iter().zip(&unknown).zip(&best) {
            found[usize::from(i)] = index;
            self.cache.insert(places[usize::from(i) % BATCH], point, index);
        }
    }

    #[cold]
    fn judge(&mut self) {
        let enough = self.hits >= self.trial as u32 / WORTHWHILE;
        if self.resting {
            self.resting = false;
            self.left = 2 * self.trial;
        } else if enough {
            self.left = self.trial;
        } else {
            self.resting = true;
            self.left = REST * 2 * self.trial;
        }
        self.hits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::rule::{Action, Rule};
    use crate::acl::synthetic::{self, Random, Style};

    fn classifier(rules: &[Rule]) -> Arc<Classifier> {
        Arc::new(Classifier::build(rules).unwrap())
    }

    /// Verdicts of a matcher against those of the classifier alone, over several passes.
    fn agree(matcher: &mut Matcher, keys: &[KeyV4], chunk: usize) {
        let mut expected = vec![0; keys.len()];
        matcher.classifier().classify_batch_v4(keys, &mut expected);
        let mut found = vec![0; keys.len()];
        for (keys, found) in keys.chunks(chunk).zip(found.chunks_mut(chunk)) {
            matcher.classify_v4(keys, found);
        }
        assert!(found == expected);
    }

    #[test]
    fn verdicts_are_those_of_the_classifier() {
        let rules = synthetic::rules_v4(Style::Fw, 300, 1);
        let mut matcher = Matcher::new(classifier(&rules), 9);
        let keys = synthetic::packets_v4(&rules, 5000, 2);
        for chunk in [1, 7, 32, 1000] {
            agree(&mut matcher, &keys, chunk);
        }
        let rules = synthetic::rules_v6(Style::Ipc, 300, 1);
        let mut matcher = Matcher::new(classifier(&rules), 9);
        let keys = synthetic::packets_v6(&rules, 5000, 2);
        let (mut expected, mut found) = (vec![0; 5000], vec![0; 5000]);
        matcher.classifier().classify_batch_v6(&keys, &mut expected);
        for _ in 0..3 {
            matcher.classify_v6(&keys, &mut found);
            assert!(found == expected);
        }
    }

    #[test]
    fn a_change_of_rules_counts_at_once() {
        let mut matcher = Matcher::new(classifier(&[Rule::any(Action::Permit)]), 9);
        let keys = [KeyV4::default(); 40];
        let mut found = [0; 40];
        matcher.classify_v4(&keys, &mut found);
        assert_eq!(found, [0; 40]);
        matcher.replace(classifier(&[]));
        matcher.classify_v4(&keys, &mut found);
        assert_eq!(found, [Classifier::NO_RULE; 40]);
    }

    #[test]
    fn a_useless_cache_rests_and_comes_back() {
        let rules = synthetic::rules_v4(Style::Acl, 100, 1);
        let mut matcher = Matcher::new(classifier(&rules), 9);
        let mut random = Random::new(3);
        let mut fresh = || -> Vec<KeyV4> {
            (0..4096)
                .map(|_| KeyV4 { src: random.bits() as u32, dst: random.bits() as u32, ..KeyV4::default() })
                .collect()
        };
        while !matcher.v4.resting {
            agree(&mut matcher, &fresh(), 32);
        }
        // Now the same flows come again and again: the cache is used once it was tried.
        let flows = fresh();
        let mut found = vec![0; flows.len()];
        let mut rounds = 0;
        while matcher.v4.resting || matcher.v4.hits < 10_000 {
            matcher.classify_v4(&flows, &mut found);
            rounds += 1;
            assert!(rounds < 1000);
        }
        for _ in 0..100 {
            matcher.classify_v4(&flows, &mut found);
            assert!(!matcher.v4.resting);
        }
        agree(&mut matcher, &flows, 32);
    }
}
