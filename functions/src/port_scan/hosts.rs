//! How likely each source is a scanner: a shared object, as any packet of a source may tell of it, and each new connection asks.

use catena_packet::wire::Seed;
use catena_state::value::Table;
use catena_state::{NoMemory, Op};

/// A source's address, IPv4 as IPv6 maps it.
pub type Source = [u64; 2];

/// Likelihoods are logarithms, in this part of one: sums of whole numbers are the same everywhere.
const UNIT: f64 = 65536.0;

/// What an outcome says, and when enough has been said.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What a failure adds.
    failure: i32,
    /// What a success adds: less than 0.
    success: i32,
    /// From here on a source is a scanner.
    scanner: i32,
    /// From here on down it is benign.
    benign: i32,
}

impl Rules {
    /// Make the test that finds so many scanners with so many false alarms, where so many first connections of benign
    /// sources and of scanners succeed: θ0, θ1, β and α of the paper (§4, equations 4 to 6), each between 0 and 1.
    pub fn new(benign: f64, scanner: f64, detection: f64, false_alarms: f64) -> Rules {
        let logarithm = |ratio: f64| (ratio.ln() * UNIT).round() as i32;
        Rules {
            failure: logarithm((1.0 - scanner) / (1.0 - benign)).max(1),
            success: logarithm(scanner / benign).min(-1),
            scanner: logarithm(detection / false_alarms),
            benign: logarithm((1.0 - detection) / (1.0 - false_alarms)),
        }
    }
}

/// What is known of a source.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// The logarithm of its likelihood ratio.
    at: i32,
    /// When its last outcome was told, in ns since 1970.
    last: u64,
}

/// All sources.
pub struct Hosts {
    walks: Table<Source, Walk>,
    rules: Rules,
    /// How long a source is known after its last outcome, in ns.
    memory: u64,
    /// Scanners found.
    pub found: u64,
    /// Outcomes of sources that found no place.
    pub unwatched: u64,
}

impl Hosts {
    /// Know none, of up to `most`.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    pub fn new(seed: Seed, rules: Rules, memory: u64, most: usize) -> Result<Self, NoMemory> {
        Ok(Hosts { walks: Table::new("sources", seed, most)?, rules, memory, found: 0, unwatched: 0 })
    }

    /// Return how many are known.
    pub fn len(&self) -> usize {
        self.walks.len()
    }
}

/// Ask whether a source is a scanner.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The source.
    pub source: Source,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl Op<Hosts> for Ask {
    type Reply = bool;

    #[inline]
    fn apply(self, hosts: &mut Hosts) -> bool {
        let (threshold, memory) = (hosts.rules.scanner, hosts.memory);
        let walk = hosts.walks.get_mut(self.source);
        walk.is_some_and(|walk| walk.at >= threshold && self.now.saturating_sub(walk.last) < memory)
    }
}

/// Tell the outcome of a source's first connection to a destination.
#[derive(Clone, Copy, Debug)]
pub struct Tell {
    /// The source.
    pub source: Source,
    /// Whether it has succeeded.
    pub success: bool,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl Op<Hosts> for Tell {
    type Reply = ();

    fn apply(self, hosts: &mut Hosts) {
        let rules = hosts.rules;
        let fresh = Walk { at: 0, last: self.now };
        let walk = match hosts.walks.get_mut(self.source) {
            Some(walk) if self.now.saturating_sub(walk.last) >= hosts.memory => {
                *walk = fresh;
                walk
            }
            Some(walk) => walk,
            None => match hosts.walks.insert(self.source, fresh) {
                Ok(walk) => walk,
                Err(_) => {
                    hosts.unwatched += 1;
                    return;
                }
            },
        };
        walk.last = walk.last.max(self.now);
        // The test is over for a scanner; a benign source begins another.
        if walk.at >= rules.scanner {
            return;
        }
        walk.at += if self.success { rules.success } else { rules.failure };
        if walk.at <= rules.benign {
            walk.at = 0;
        }
        if walk.at >= rules.scanner {
            hosts.found += 1;
        }
    }
}

/// Look at the next places for sources that nothing was heard of for long, and forget them.
#[derive(Clone, Copy, Debug)]
pub struct Forget {
    /// How many places.
    pub places: usize,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl Op<Hosts> for Forget {
    type Reply = ();

    fn apply(self, hosts: &mut Hosts) {
        let memory = hosts.memory;
        hosts.walks.sweep(self.places, |_, walk| self.now.saturating_sub(walk.last) >= memory);
    }
}
