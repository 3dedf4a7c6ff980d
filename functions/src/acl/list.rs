//! A list of rules, ready for use: compiled for search, with what each rule and their absence mean.

use super::classifier::{BATCH, Classifier, NONE, Point, TooManyRules, Tree, search};
use super::rule::{Action, Rule};
use crate::effects::MOST_TOLD;
use crate::rules::last_word;

/// What becomes of a packet, and why: one word, as the verdict cache keeps it. Bits 0 to 23 are the rule's index, bits
/// 24 to 29 what later lists of the chain say, two bits each, bit 31 whether the packet is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling(u32);

impl Ruling {
    const DENY: u32 = 1 << 31;
    /// In place of a rule's index; greater than any.
    const NO_RULE: u32 = (1 << Self::LATER) - 1;
    /// Where the verdicts of later lists begin.
    const LATER: u32 = 24;

    /// No rule matched, and the packet is denied.
    pub const DENIED_BY_DEFAULT: Self = Self(Self::DENY | Self::NO_RULE);
    /// No rule matched, and the packet is permitted.
    pub const PERMITTED_BY_DEFAULT: Self = Self(Self::NO_RULE);
    /// Not a ruling: what the cache says of flows it does not know.
    pub(super) const UNKNOWN: Self = Self(u32::MAX);

    /// Whether the packet is denied.
    #[inline(always)]
    pub fn denies(self) -> bool {
        self.0 & Self::DENY != 0
    }

    /// Whether the packet is denied because no rule matched.
    #[inline(always)]
    pub fn denies_by_default(self) -> bool {
        self.0 & (Self::DENY | Self::NO_RULE) == Self::DENIED_BY_DEFAULT.0
    }

    /// What later lists say of the packet, as an attribute carries it; see [`Later`].
    #[inline(always)]
    pub fn later(self) -> u16 {
        (self.0 >> Self::LATER) as u16 & Later::ALL_PERMIT
    }

    /// Add what the later list of this place says.
    fn with(self, place: usize, ruling: Ruling) -> Self {
        Self(self.0 | u32::from(Later::of(ruling)) << (Self::LATER as usize + 2 * place))
    }

    /// Index of the rule that decided; `None` if none matched.
    pub fn rule(self) -> Option<u32> {
        let index = self.0 & Self::NO_RULE;
        (index < Self::NO_RULE).then_some(index)
    }
}

/// What a later list says of a packet, in two bits of an attribute. A packet that was never asked about has none of
/// them set, and is denied.
pub struct Later;

impl Later {
    /// A rule denies.
    pub const BY_RULE: u16 = 1;
    /// The packet is permitted.
    pub const PERMITS: u16 = 3;
    /// All later lists permit: what is not IP.
    pub const ALL_PERMIT: u16 = (1 << (2 * MOST_TOLD)) - 1;
    /// No rule matches, and the packet is denied.
    const BY_DEFAULT: u16 = 2;

    fn of(ruling: Ruling) -> u16 {
        match (ruling.denies(), ruling.denies_by_default()) {
            (false, _) => Self::PERMITS,
            (true, false) => Self::BY_RULE,
            (true, true) => Self::BY_DEFAULT,
        }
    }

    /// What the list of a place says, of all that an attribute carries.
    #[inline(always)]
    pub fn at(attribute: u16, place: u8) -> u16 {
        attribute >> (2 * place) & Self::PERMITS
    }
}

/// A list of rules with its default.
pub struct List {
    classifier: Classifier,
    /// Bit `i % 64` of word `i / 64`: rule `i` denies.
    denying: Vec<u64>,
    default: Ruling,
    last_word: Action,
    count: usize,
    /// Lists of functions further on, whose rulings are found together with this one's.
    later: Vec<List>,
    /// Whether they are asked for packets that this list denies, too.
    of_denied: bool,
}

impl List {
    /// Compiles a list; `default` is for packets that no rule matches. Takes one to four seconds per
    /// 100,000 rules.
    ///
    /// # Errors
    /// If there are more than [`MOST_RULES`](super::classifier::MOST_RULES), or more than there is memory for.
    pub fn new(rules: &[Rule], default: Action) -> Result<Self, TooManyRules> {
        let mut denying = vec![0; rules.len().div_ceil(64)];
        for (i, _) in rules.iter().enumerate().filter(|(_, rule)| rule.action == Action::Deny) {
            denying[i / 64] |= 1 << (i % 64);
        }
        let last_word = last_word(rules, default);
        let default = match default {
            Action::Deny => Ruling::DENIED_BY_DEFAULT,
            Action::Permit => Ruling::PERMITTED_BY_DEFAULT,
        };
        let classifier = Classifier::build(rules)?;
        Ok(Self { classifier, denying, default, last_word, count: rules.len(), later: Vec::new(), of_denied: false })
    }

    /// Let rulings hold what `later` lists say, too, at most [`MOST_TOLD`]: of packets that this one permits, and
    /// `of_denied` ones as well.
    #[must_use]
    pub fn telling(self, later: Vec<List>, of_denied: bool) -> Self {
        Self { later: later.into_iter().take(MOST_TOLD).collect(), of_denied, ..self }
    }

    /// Whether rulings hold what later lists say.
    pub(super) fn tells(&self) -> bool {
        !self.later.is_empty()
    }

    /// Add what later lists say to the rulings on `points`, at most [`BATCH`].
    pub(super) fn ask_later<const W: usize>(
        &self,
        trees: fn(&Classifier) -> &[Tree<W>],
        points: &[Point<W>],
        found: &mut [Ruling],
    ) {
        let asked = |ruling: &Ruling| self.of_denied || !ruling.denies();
        let (mut dense, mut of, mut count) = ([Point::ORIGIN; BATCH], [0u8; BATCH], 0);
        for (i, (point, _)) in points.iter().zip(&*found).enumerate().filter(|(_, (_, ruling))| asked(ruling)) {
            (dense[count], of[count]) = (*point, i as u8);
            count += 1;
        }
        for (place, list) in self.later.iter().enumerate() {
            let mut best = [NONE; BATCH];
            search(trees(&list.classifier), &dense[..count], &mut best);
            for (&i, &index) in of[..count].iter().zip(&best) {
                let ruling = &mut found[usize::from(i)];
                *ruling = ruling.with(place, list.ruling(index));
            }
        }
    }

    /// What it says of a packet of which nothing is known.
    pub fn last_word(&self) -> Action {
        self.last_word
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The search trees.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// What the classifier's answer means: the index of a rule, or [`Classifier::NO_RULE`].
    #[inline(always)]
    pub fn ruling(&self, index: u32) -> Ruling {
        if index == NONE {
            return self.default;
        }
        let word = self.denying.get(index as usize / 64).copied().unwrap_or(u64::MAX);
        Ruling(index | ((word >> (index % 64) & 1) as u32) << 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rulings_say_what_and_why() {
        let rules: Vec<Rule> =
            (0..130).map(|i| Rule::any(if i % 3 == 0 { Action::Deny } else { Action::Permit })).collect();
        let list = List::new(&rules, Action::Deny).unwrap();
        for i in 0..130 {
            assert_eq!((list.ruling(i).rule(), list.ruling(i).denies()), (Some(i), i % 3 == 0));
        }
        assert_eq!(list.ruling(NONE), Ruling::DENIED_BY_DEFAULT);
        let list = List::new(&[], Action::Permit).unwrap();
        assert!(list.is_empty() && !list.ruling(NONE).denies());
        assert_eq!(Ruling::DENIED_BY_DEFAULT.rule(), None);
        assert!(Ruling::DENIED_BY_DEFAULT.denies_by_default() && !Ruling::PERMITTED_BY_DEFAULT.denies_by_default());
        assert_ne!(Ruling::DENIED_BY_DEFAULT, Ruling::UNKNOWN);
    }
}
