//! What a worker asks for rulings: the list of rules, with a cache of rulings before it.
//!
//! The cache pays while packets belong to flows seen before. Where they do not (a scan, a flood,
//! more flows than it holds) it only costs, so it watches its own hits and rests when they are few.

use std::sync::Arc;

use catena_packet::wire::Seed;

use super::cache::{Cache, Remembered};
use super::classifier::{BATCH, Classifier, NONE, Point, Tree, V4, V6, prefetch, search};
use super::flow::{FlowV4, FlowV6};
use super::list::{List, Ruling};

/// The cache goes on while at least one in this many lookups hits.
const WORTHWHILE: u32 = 3;
/// How many times longer than it was tried a useless cache rests before it is tried again.
const REST: i64 = 16;

/// A worker's own way to the rulings of a list of rules.
pub struct Matcher {
    list: Arc<List>,
    v4: Memory<FlowV4>,
    v6: Memory<FlowV6>,
}

impl Matcher {
    /// A matcher with empty caches, one per family, of 1 and 2 MB. `seed` should be secret, as
    /// someone who knows it can choose flows that push each other out.
    pub fn new(list: Arc<List>, seed: Seed) -> Self {
        Self { list, v4: Memory::new(seed), v6: Memory::new(seed) }
    }

    /// Takes another list of rules; rulings of the old one are forgotten at once.
    pub fn replace(&mut self, list: Arc<List>) {
        self.list = list;
        self.v4.cache.forget();
        self.v6.cache.forget();
    }

    /// The list in use.
    pub fn list(&self) -> &Arc<List> {
        &self.list
    }

    /// Packets that the rules were searched for, as their flow was not known.
    pub fn searched(&self) -> u64 {
        self.v4.searched + self.v6.searched
    }

    /// What the list says of each IPv4 packet.
    ///
    /// # Panics
    /// If `found` is shorter than `flows`.
    #[inline]
    pub fn classify_v4(&mut self, flows: &[FlowV4], found: &mut [Ruling]) {
        self.v4.classify::<V4>(&self.list, Classifier::trees_v4, flows, found);
    }

    /// What the list says of each IPv6 packet.
    ///
    /// # Panics
    /// If `found` is shorter than `flows`.
    #[inline]
    pub fn classify_v6(&mut self, flows: &[FlowV6], found: &mut [Ruling]) {
        self.v6.classify::<V6>(&self.list, Classifier::trees_v6, flows, found);
    }
}

/// A cache, and how well it does.
struct Memory<F: Remembered> {
    cache: Cache<F>,
    /// Lookups left until the next judgement; while the cache rests, until it is tried again.
    left: i64,
    hits: u32,
    resting: bool,
    /// Packets searched for since the start.
    searched: u64,
}

impl<F: Remembered> Memory<F> {
    /// Lookups after which the cache has seen as many flows as it can hold, and can be judged.
    const TRIAL: i64 = Cache::<F>::ENTRIES as i64;

    fn new(seed: Seed) -> Self {
        // The first trial also has to fill the cache.
        Self { cache: Cache::new(seed), left: 2 * Self::TRIAL, hits: 0, resting: false, searched: 0 }
    }

    #[inline]
    fn classify<const W: usize>(
        &mut self,
        list: &List,
        trees: fn(&Classifier) -> &[Tree<W>],
        flows: &[F],
        found: &mut [Ruling],
    ) where
        for<'a> Point<W>: From<&'a F>,
    {
        assert!(found.len() >= flows.len());
        for (flows, found) in flows.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let found = &mut found[..flows.len()];
            if self.resting {
                self.search(list, trees, flows, found);
            } else {
                self.remember(list, trees, flows, found);
            }
            self.left -= flows.len() as i64;
            if self.left <= 0 {
                self.judge();
            }
        }
    }

    /// Searches for a batch (at most [`BATCH`]).
    #[inline(never)]
    fn search<const W: usize>(
        &mut self,
        list: &List,
        trees: fn(&Classifier) -> &[Tree<W>],
        flows: &[F],
        found: &mut [Ruling],
    ) where
        for<'a> Point<W>: From<&'a F>,
    {
        let mut points = [Point::ORIGIN; BATCH];
        for (point, flow) in points.iter_mut().zip(flows) {
            *point = Point::from(flow);
        }
        let mut best = [NONE; BATCH];
        search(trees(list.classifier()), &points[..flows.len()], &mut best);
        for (found, &index) in found.iter_mut().zip(&best) {
            *found = list.ruling(index);
        }
        if list.tells() {
            list.ask_later(trees, &points[..flows.len()], found);
        }
        self.searched += flows.len() as u64;
    }

    /// Looks up a batch (at most [`BATCH`]) in the cache, searches for what is not there.
    #[inline(always)]
    fn remember<const W: usize>(
        &mut self,
        list: &List,
        trees: fn(&Classifier) -> &[Tree<W>],
        flows: &[F],
        found: &mut [Ruling],
    ) where
        for<'a> Point<W>: From<&'a F>,
    {
        let mut hashes = [0; BATCH];
        for (hash, flow) in hashes.iter_mut().zip(flows) {
            *hash = self.cache.hash(flow);
            prefetch(self.cache.address(Cache::<F>::home(*hash)));
        }
        let mut missing = [0u8; BATCH];
        let mut misses = 0;
        for (i, (flow, found)) in flows.iter().zip(found.iter_mut()).enumerate() {
            *found = self.cache.find(Cache::<F>::home(hashes[i % BATCH]), flow);
            missing[misses % BATCH] = i as u8;
            if *found == Ruling::UNKNOWN {
                misses += 1;
            }
        }
        if misses > 0 {
            misses = self.look_elsewhere(flows, &hashes, &mut missing, misses, found);
        }
        self.hits += (flows.len() - misses) as u32;
        if misses > 0 {
            self.learn(list, trees, flows, &hashes, &missing[..misses], found);
        }
    }

    /// Looks for the first `misses` flows of `missing` in their other buckets; returns how many are missing
    /// still, now the first of `missing`.
    #[inline]
    fn look_elsewhere(
        &self,
        flows: &[F],
        hashes: &[u64; BATCH],
        missing: &mut [u8; BATCH],
        misses: usize,
        found: &mut [Ruling],
    ) -> usize {
        let misses = misses.min(BATCH);
        for &i in &missing[..misses] {
            prefetch(self.cache.address(Cache::<F>::other(hashes[usize::from(i) % BATCH])));
        }
        let mut still = 0;
        for asked in 0..misses {
            let i = usize::from(missing[asked]);
            found[i] = self.cache.find(Cache::<F>::other(hashes[i % BATCH]), &flows[i]);
            missing[still % BATCH] = i as u8;
            if found[i] == Ruling::UNKNOWN {
                still += 1;
            }
        }
        still
    }

    /// Searches for the flows whose numbers stand in `missing`, and remembers them.
    #[inline(never)]
    fn learn<const W: usize>(
        &mut self,
        list: &List,
        trees: fn(&Classifier) -> &[Tree<W>],
        flows: &[F],
        hashes: &[u64; BATCH],
        missing: &[u8],
        found: &mut [Ruling],
    ) where
        for<'a> Point<W>: From<&'a F>,
    {
        let mut unknown = [F::default(); BATCH];
        for (to, &i) in unknown.iter_mut().zip(missing) {
            *to = flows[usize::from(i)];
        }
        let mut rulings = [Ruling::UNKNOWN; BATCH];
        self.search(list, trees, &unknown[..missing.len()], &mut rulings);
        for ((&i, flow), &ruling) in missing.iter().zip(&unknown).zip(&rulings) {
            found[usize::from(i)] = ruling;
            self.cache.insert(hashes[usize::from(i) % BATCH], flow, ruling);
        }
    }

    #[cold]
    fn judge(&mut self) {
        let enough = self.hits >= Self::TRIAL as u32 / WORTHWHILE;
        if self.resting {
            self.resting = false;
            self.left = 2 * Self::TRIAL;
        } else if enough {
            self.left = Self::TRIAL;
        } else {
            self.resting = true;
            self.left = REST * 2 * Self::TRIAL;
        }
        self.hits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::key::{KeyV4, KeyV6};
    use crate::acl::rule::{Action, Rule};
    use crate::acl::synthetic::{self, Style};
    use catena_packet::random::SplitMix64;

    fn matcher(rules: &[Rule]) -> Matcher {
        Matcher::new(Arc::new(List::new(rules, Action::Deny).unwrap()), Seed::from_number(9))
    }

    /// Rulings of a matcher against those of the classifier alone.
    fn agree(matcher: &mut Matcher, keys: &[KeyV4], chunk: usize) {
        let mut expected = vec![0; keys.len()];
        let list = matcher.list().clone();
        list.classifier().classify_batch_v4(keys, &mut expected);
        let flows: Vec<FlowV4> = keys.iter().map(FlowV4::from).collect();
        let mut found = vec![Ruling::UNKNOWN; keys.len()];
        for (flows, found) in flows.chunks(chunk).zip(found.chunks_mut(chunk)) {
            matcher.classify_v4(flows, found);
        }
        assert!(found.iter().zip(&expected).all(|(found, &index)| *found == list.ruling(index)));
    }

    #[test]
    fn rulings_are_those_of_the_classifier() {
        let rules = synthetic::rules_v4(Style::Fw, 300, 1);
        let mut four = matcher(&rules);
        let keys = synthetic::packets_v4(&rules, 5000, 2);
        for chunk in [1, 7, 32, 1000] {
            agree(&mut four, &keys, chunk);
        }
        let rules = synthetic::rules_v6(Style::Ipc, 300, 1);
        let mut six = matcher(&rules);
        let keys: Vec<KeyV6> = synthetic::packets_v6(&rules, 30_000, 2);
        let flows: Vec<FlowV6> = keys.iter().map(FlowV6::from).collect();
        let list = six.list().clone();
        let (mut expected, mut found) = (vec![0; keys.len()], vec![Ruling::UNKNOWN; keys.len()]);
        list.classifier().classify_batch_v6(&keys, &mut expected);
        for _ in 0..3 {
            six.classify_v6(&flows, &mut found);
            assert!(found.iter().zip(&expected).all(|(found, &index)| *found == list.ruling(index)));
        }
        assert!(six.searched() < 2 * 30_000, "some are remembered");
    }

    #[test]
    fn a_change_of_rules_counts_at_once() {
        let mut matcher = matcher(&[Rule::any(Action::Permit)]);
        let flows = [FlowV4::from(&KeyV4::default()); 40];
        let mut found = [Ruling::UNKNOWN; 40];
        matcher.classify_v4(&flows, &mut found);
        assert_eq!(found, [matcher.list().ruling(0); 40]);
        matcher.replace(Arc::new(List::new(&[], Action::Deny).unwrap()));
        matcher.classify_v4(&flows, &mut found);
        assert_eq!(found, [matcher.list().ruling(Classifier::NO_RULE); 40]);
    }

    #[test]
    fn a_useless_cache_rests_and_comes_back() {
        let rules = synthetic::rules_v4(Style::Acl, 100, 1);
        let mut matcher = matcher(&rules);
        let mut random = SplitMix64::new(3);
        let mut fresh = || -> Vec<KeyV4> {
            (0..4096)
                .map(|_| KeyV4 { src: random.bits() as u32, dst: random.bits() as u32, ..KeyV4::default() })
                .collect()
        };
        while !matcher.v4.resting {
            agree(&mut matcher, &fresh(), 32);
        }
        // Now the same flows come again and again: the cache is used once it was tried.
        let keys = fresh();
        let flows: Vec<FlowV4> = keys.iter().map(FlowV4::from).collect();
        let mut found = vec![Ruling::UNKNOWN; flows.len()];
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
        agree(&mut matcher, &keys, 32);
    }
}
