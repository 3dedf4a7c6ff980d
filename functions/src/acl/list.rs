//! A list of rules, ready for use: compiled for search, with what each rule and their absence mean.

use super::classifier::{Classifier, NONE, TooManyRules};
use super::rule::{Action, Rule};

/// What becomes of a packet, and why: one word, as the verdict cache keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling(u32);

impl Ruling {
    const DENY: u32 = 1 << 31;
    /// In place of a rule's index; greater than any.
    const NO_RULE: u32 = (1 << 30) - 1;

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

    /// Index of the rule that decided; `None` if none matched.
    pub fn rule(self) -> Option<u32> {
        let index = self.0 & !Self::DENY;
        (index < Self::NO_RULE).then_some(index)
    }
}

/// A list of rules with its default.
pub struct List {
    classifier: Classifier,
    /// Bit `i % 64` of word `i / 64`: rule `i` denies.
    denying: Vec<u64>,
    default: Ruling,
    count: usize,
}

impl List {
    /// Compiles a list; `default` is for packets that no rule matches. Takes one to four seconds per
    /// 100,000 rules.
    ///
    /// # Errors
    /// If there are more than [`MOST_RULES`](super::classifier::MOST_RULES).
    pub fn new(rules: &[Rule], default: Action) -> Result<Self, TooManyRules> {
        let mut denying = vec![0; rules.len().div_ceil(64)];
        for (i, _) in rules.iter().enumerate().filter(|(_, rule)| rule.action == Action::Deny) {
            denying[i / 64] |= 1 << (i % 64);
        }
        let default = match default {
            Action::Deny => Ruling::DENIED_BY_DEFAULT,
            Action::Permit => Ruling::PERMITTED_BY_DEFAULT,
        };
        Ok(Self { classifier: Classifier::build(rules)?, denying, default, count: rules.len() })
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
        assert_ne!(Ruling::DENIED_BY_DEFAULT, Ruling::UNKNOWN);
    }
}
