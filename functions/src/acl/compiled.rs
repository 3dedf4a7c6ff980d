//! What an ACL makes of its arguments: made once a run, read by all workers.

use std::sync::Arc;

use super::list::List;
use super::options::Options;
use super::rule::{Action, Rule};
use crate::config::{ArgError, Args};
use crate::effects::{Spared, Way};
use crate::rules::Verdicts;
use crate::tables::Prepared;

/// The compiled rules, and what else the arguments say.
pub struct Compiled {
    /// There unless no direction is judged by the rules.
    pub list: Option<Arc<List>>,
    /// Rules that the user gave.
    pub rules: usize,
    /// Rules that the user left out.
    pub left_out: usize,
    /// What becomes of frames that are not IPv4, IPv6 or ARP.
    pub unparsed: Action,
    /// What becomes of packets with a source route.
    pub source_routes: Action,
}

/// All that the rules are compiled from.
#[derive(PartialEq)]
pub struct Source {
    /// The arguments.
    pub args: Args,
    /// Which of the rules are left out, and whose verdicts are found with them.
    pub spared: Spared,
    /// Whether denied packets leave by a gate of their own.
    pub diverts: bool,
}

impl Prepared for Compiled {
    type From = Source;

    fn prepare(Source { args, spared, diverts }: &Source) -> Result<Self, ArgError> {
        let Options { rules, default, unparsed, source_routes, left_out } = Options::read(args)?;
        let compiled = Self { list: None, rules: rules.len(), left_out, unparsed, source_routes };
        if !spared.ways.contains(&Way::Search) {
            return Ok(compiled);
        }
        let compile = |rules: &[Rule], default| {
            List::new(rules, default).map_err(|error| ArgError::new("rules", error.to_string()))
        };
        let of = |verdicts: &Verdicts| compile(&verdicts.rules, verdicts.default);
        let others = spared.tells.iter().flat_map(|tells| &tells.others);
        let later = others.map(|other| of(other)).collect::<Result<_, _>>()?;
        let own = spared.rules.as_deref().map_or_else(|| compile(&rules, default), of)?;
        Ok(Self { list: Some(Arc::new(own.telling(later, *diverts))), ..compiled })
    }
}
