//! Sets of flow slots, written as ranges: `0-1023, 2048`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// How many slots there are. A flow's slot is the hash of its inside address, in the seed of the deployment, by this
/// number: the first twelve bits of it.
pub const SLOTS: u16 = 4096;

/// A set of slots: ascending ranges of which no two touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Slots(Vec<(u16, u16)>);

impl Slots {
    /// All there are.
    #[must_use]
    pub fn all() -> Slots {
        Slots(vec![(0, SLOTS)])
    }

    /// The slots of this range, behind whose last one is `to`.
    #[must_use]
    pub fn range(from: u16, to: u16) -> Slots {
        let to = to.min(SLOTS);
        Slots(if from < to { vec![(from, to)] } else { Vec::new() })
    }

    /// Those that are numbered; a number may come twice.
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = u16>) -> Slots {
        let mut numbers: Vec<u16> = numbers.into_iter().filter(|slot| *slot < SLOTS).collect();
        numbers.sort_unstable();
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for slot in numbers {
            match ranges.last_mut() {
                Some((_, to)) if slot < *to => {}
                Some((_, to)) if slot == *to => *to += 1,
                _ => ranges.push((slot, slot + 1)),
            }
        }
        Slots(ranges)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|(from, to)| usize::from(to - from)).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().flat_map(|&(from, to)| from..to)
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn has(&self, slot: u16) -> bool {
        self.0.iter().any(|&(from, to)| (from..to).contains(&slot))
    }

    /// Those that are in both.
    #[must_use]
    pub fn common(&self, other: &Slots) -> Slots {
        let mut ranges = Vec::new();
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(from, to)), Some(&&(also, until))) = (a.peek(), b.peek()) {
            let both = (from.max(also), to.min(until));
            if both.0 < both.1 {
                ranges.push(both);
            }
            if to <= until {
                a.next()
            } else {
                b.next()
            };
        }
        Slots(ranges)
    }

    /// Those that are in one or the other.
    #[must_use]
    pub fn with(&self, other: &Slots) -> Slots {
        let mut all: Vec<(u16, u16)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut ranges: Vec<(u16, u16)> = Vec::with_capacity(all.len());
        for (from, to) in all {
            match ranges.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => ranges.push((from, to)),
            }
        }
        Slots(ranges)
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(&self, other: &Slots) -> Slots {
        let mut ranges = Vec::new();
        for &(first, to) in &self.0 {
            let mut from = first;
            for &(gone, until) in other.0.iter().filter(|(gone, until)| *gone < to && *until > first) {
                if from < gone {
                    ranges.push((from, gone));
                }
                from = from.max(until);
            }
            if from < to {
                ranges.push((from, to));
            }
        }
        Slots(ranges)
    }

    /// The first `count` of them, and the others.
    #[must_use]
    pub fn split(&self, count: usize) -> (Slots, Slots) {
        let first = Slots::of(self.iter().take(count));
        let rest = self.without(&first);
        (first, rest)
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (from, to)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            match to - from {
                1 => write!(f, "{comma}{from}")?,
                _ => write!(f, "{comma}{from}-{}", to - 1)?,
            }
        }
        Ok(())
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<String> for Slots {
    type Error = String;

    fn try_from(text: String) -> Result<Slots, String> {
        text.parse()
    }
}

impl FromStr for Slots {
    type Err = String;

    fn from_str(text: &str) -> Result<Slots, String> {
        let wrong = || format!("`{text}` are no slots: ascending numbers and ranges below {SLOTS}, as `0-1023, 2048`");
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let (from, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u16>().ok().filter(|slot| *slot < SLOTS);
            let (Some(from), Some(last)) = (number(from), number(last)) else { return Err(wrong()) };
            // Ranges that touch are one: a set has one text.
            if from > last || ranges.last().is_some_and(|(_, to)| from <= *to) {
                return Err(wrong());
            }
            ranges.push((from, last + 1));
        }
        Ok(Slots(ranges))
    }
}

/// How many slots each gets that has such a part: all slots together, none less than one.
#[must_use]
pub fn quotas(parts: &[f64]) -> Vec<usize> {
    let sum: f64 = parts.iter().sum();
    let whole = usize::from(SLOTS);
    let wanted: Vec<f64> = parts
        .iter()
        .map(|part| if sum > 0.0 { part / sum * whole as f64 } else { whole as f64 / parts.len().max(1) as f64 })
        .collect();
    let mut quotas: Vec<usize> = wanted.iter().map(|slots| (*slots as usize).max(1)).collect();
    // Who is furthest below what it should have gets one more; who is furthest above, one less.
    let mut given: usize = quotas.iter().sum();
    while given != whole && !quotas.is_empty() {
        let off = |n: &usize| wanted[*n] - quotas[*n] as f64;
        let all = 0..quotas.len();
        let next = match given < whole {
            true => all.max_by(|a, b| off(a).total_cmp(&off(b)).then(b.cmp(a))),
            false => all.filter(|n| quotas[*n] > 1).min_by(|a, b| off(a).total_cmp(&off(b)).then(a.cmp(b))),
        };
        let Some(next) = next else { break };
        if given < whole {
            (quotas[next], given) = (quotas[next] + 1, given + 1);
        } else {
            (quotas[next], given) = (quotas[next] - 1, given - 1);
        }
    }
    quotas
}

/// Give each as many slots as its quota says. Who `has` some keeps them, as far as it may have so many; others get runs of
/// neighbours.
#[must_use]
pub fn divide(quotas: &[usize], has: &[Slots]) -> Vec<Slots> {
    let mut free = Slots::all();
    let mut given: Vec<Slots> = Vec::new();
    for (quota, has) in quotas.iter().zip(has) {
        let (kept, _) = has.common(&free).split(*quota);
        free = free.without(&kept);
        given.push(kept);
    }
    for (quota, given) in quotas.iter().zip(&mut given) {
        let (more, rest) = free.split(quota.saturating_sub(given.len()));
        *given = given.with(&more);
        free = rest;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan_model::random::Random;

    fn slots(text: &str) -> Slots {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn sets_have_one_text() {
        for text in ["", "0", "4095", "0-4095", "0-1023, 2048", "1, 3, 5-7"] {
            assert_eq!(slots(text).to_string(), text);
        }
        for text in ["4096", "5-3", "1, 1", "1, 2", "3, 1", "x", "1-", ",", "-1", "0-1, 1-2"] {
            assert!(text.parse::<Slots>().is_err(), "{text}");
        }
    }

    #[test]
    fn sets_do_what_lists_of_numbers_do() {
        let mut random = Random::new(7);
        for _ in 0..300 {
            let mut draw = || (0..random.below(40)).map(|_| random.below(64) as u16).collect::<Vec<u16>>();
            let (a, b) = (draw(), draw());
            let (x, y) = (Slots::of(a.clone()), Slots::of(b.clone()));
            let numbers = |keep: &dyn Fn(&u16) -> bool| (0..SLOTS).filter(keep).collect::<Vec<u16>>();
            assert_eq!(x.iter().collect::<Vec<_>>(), numbers(&|n| a.contains(n)));
            assert_eq!(x.len(), x.iter().count());
            assert_eq!(x.with(&y).iter().collect::<Vec<_>>(), numbers(&|n| a.contains(n) || b.contains(n)));
            assert_eq!(x.common(&y).iter().collect::<Vec<_>>(), numbers(&|n| a.contains(n) && b.contains(n)));
            assert_eq!(x.without(&y).iter().collect::<Vec<_>>(), numbers(&|n| a.contains(n) && !b.contains(n)));
            assert_eq!(slots(&x.to_string()), x);
            assert!((0..64).all(|n| x.has(n) == a.contains(&n)));
        }
    }

    #[test]
    fn quotas_follow_parts_and_are_all_there_is() {
        assert_eq!(quotas(&[1.0]), [4096]);
        assert_eq!(quotas(&[1.0, 1.0, 1.0]), [1366, 1365, 1365]);
        assert_eq!(quotas(&[1.0, 0.5]), [2731, 1365]);
        assert_eq!(quotas(&[1.0, 1e-9]), [4095, 1]);
        assert_eq!(quotas(&[0.0, 0.0]), [2048, 2048]);
        assert_eq!(quotas(&vec![1e-9; 4000]).iter().sum::<usize>(), 4096);
    }

    #[test]
    fn who_has_slots_keeps_them() {
        let none = Slots::default();
        let even = divide(&quotas(&[1.0; 2]), &[none.clone(), none.clone()]);
        assert_eq!([even[0].to_string(), even[1].to_string()], ["0-2047", "2048-4095"]);
        let third = divide(&quotas(&[1.0; 3]), &[even[0].clone(), even[1].clone(), none.clone()]);
        assert_eq!(third[0].without(&even[0]), none);
        assert_eq!(third[1].without(&even[1]), none);
        // Only what the third one gets has moved.
        assert_eq!(third[2].len(), 1365);
        let back = divide(&quotas(&[1.0; 2]), &[third[0].clone(), third[1].clone()]);
        assert!(third[0].without(&back[0]).is_empty() && third[1].without(&back[1]).is_empty());
    }
}
