//! A traffic generator in memory: flows, TCP sessions, sizes and rates from a seed, without a network.
//!
//! [`Spec`] says what traffic is wanted; [`Generator`] is the [`Source`] that makes it. The same
//! specification always gives the same packets, all with right checksums. A specification can be written
//! as a line of text, as on a command line:
//!
//! ```text
//!     gen:flows=10000,size=64,proto=udp,count=1M,seed=1
//!     gen:flows=1M,order=random,proto=udp:3+tcp:6+icmp:1,ipv6=20%,size=imix,rate=10Gbps,duration=10s
//!     gen:flows=1000,proto=tcp,tcp=sessions,new=1000/s,dist=pareto(1.3,10),rate=1Mpps
//!
//!     spec      = [ "gen:" ] [ item { "," item } ]
//!     item      = key "=" value                          each key once, in any order
//!
//!     flows     = COUNT                                  flows that live at once          10000
//!     size      = BYTES | BYTES ".." BYTES | "imix"      frames, without their FCS           64
//!     order     = "roundrobin" | "random"                whose packet is next        roundrobin
//!     dist      = "endless" | "fixed(" COUNT ")"         packets in a flow              endless
//!               | "geometric(" MEAN ")" | "pareto(" SHAPE "," LEAST ")"
//!     new       = NUMBER ( "/s" | "k/s" | "M/s" )        new flows a second       as others end
//!     proto     = part { "+" part }                      shares of flows                    udp
//!     part      = ( "udp" | "tcp" | "icmp" ) [ ":" WEIGHT ]
//!     ipv6      = NUMBER "%"                             share of flows                      0%
//!     tcp       = "plain" | "sessions" | "client"        what TCP flows are               plain
//!     src, dst  = IPV4 [ "/" LENGTH ]                    100.64.0.0/10, 203.0.113.0/24
//!     src6,dst6 = IPV6 [ "/" LENGTH ]                    2001:db8:1::/96, 2001:db8:2::/120
//!     sport     = PORT [ "-" PORT ]                      also ICMP identifiers       1024-65535
//!     dport     = PORT [ "-" PORT ]                                                          80
//!     ttl       = 1..255                                                                     64
//!     smac,dmac = six hexadecimal bytes with ":"         02:00:00:00:00:01, 02:00:00:00:00:02
//!     rate      = NUMBER ( "pps" | "bps" )               or with k, M, G, T           unlimited
//!     time      = "virtual" | "wall"                     what times follow              virtual
//!     count     = COUNT                                  packets until the end          endless
//!     duration  = NUMBER ( "ns" | "us" | "ms" | "s" | "min" )                           endless
//!     seed      = NUMBER                                 below 2^64                           1
//!
//!     COUNT     = digits, or NUMBER ( "k" | "M" | "G" )
//! ```
//!
//! In virtual time packets come as fast as they are taken, and carry times that follow the rate; with
//! `time=wall` they come when their time has come by the context's clock. What each word means in detail
//! stands at the field of [`Spec`].

mod error;
mod frame;
mod mixed;
mod pace;
mod plain;
mod session;
mod size;
mod spec;
mod text;
mod tuple;

use catena_packet::{BATCH, Batch, SMALL_BYTES};

pub use error::{Problem, SpecError};
pub use spec::{LONGEST, Length, MOST_FLOWS, Mix, Order, Prefix, Rate, SHORTEST, START, Size, Spec, Tcp, Time};

use crate::module::{Context, Pulled, Source};
use frame::Frames;
use mixed::Mixed;
use pace::Pace;
use plain::Plain;
use tuple::Tuples;

/// Makes the traffic of a [`Spec`].
pub struct Generator {
    engine: Engine,
    pace: Pace,
    flows: u64,
    /// Packets until the end.
    left: u64,
}

enum Engine {
    Short(Plain<64>),
    Long(Plain<128>),
    Mixed(Box<Mixed>),
}

impl Generator {
    /// Make a generator: all frames or flows are laid out now, in up to 128 bytes a flow.
    ///
    /// # Errors
    /// The name of the value that is wrong, and what is wrong with it.
    pub fn new(spec: &Spec) -> Result<Self, (&'static str, Problem)> {
        spec.check()?;
        let (tuples, frames) = (Tuples::new(spec)?, Frames::new(spec));
        let sessions = spec.mix.tcp > 0.0 && spec.tcp != Tcp::Plain;
        let engine = match spec.size {
            Size::Fixed(length @ ..=SMALL_BYTES)
                if spec.length == Length::Endless && spec.new.is_none() && !sessions =>
            {
                match plain::longest(spec, length) {
                    ..=64 => Engine::Short(Plain::new(spec, &frames, &tuples, length)),
                    _ => Engine::Long(Plain::new(spec, &frames, &tuples, length)),
                }
            }
            _ => Engine::Mixed(Box::new(Mixed::new(spec, frames, tuples))),
        };
        Ok(Generator { engine, pace: Pace::new(spec), flows: spec.flows, left: spec.count.unwrap_or(u64::MAX) })
    }

    /// Return how many flows began so far.
    pub fn flows(&self) -> u64 {
        match &self.engine {
            Engine::Mixed(mixed) => mixed.begun(),
            _ => self.flows,
        }
    }
}

impl Source for Generator {
    #[inline]
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        self.pace.look(cx);
        let count = self.left.min(BATCH as u64) as usize;
        match &mut self.engine {
            Engine::Short(plain) => plain.pull(cx, batch, count, &mut self.pace),
            Engine::Long(plain) => plain.pull(cx, batch, count, &mut self.pace),
            Engine::Mixed(mixed) => mixed.pull(cx, batch, count, &mut self.pace),
        }
        if let Some(last) = batch.as_slice().last() {
            self.pace.bring(cx, last.meta().arrival);
        }
        self.left -= batch.len() as u64;
        if self.left == 0 || self.pace.is_over() {
            Pulled::Done
        } else if batch.is_empty() {
            Pulled::Idle
        } else {
            Pulled::More
        }
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("flows", self.flows());
    }

    fn is_recorded(&self) -> bool {
        self.pace.is_virtual()
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod session_tests;
#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
