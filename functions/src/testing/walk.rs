//! Random traffic through several instances of a function and through one that has all of it: packet by packet the same comes of it.

use std::collections::{BTreeMap, HashMap};

use catena_packet::random::Random;

use super::{Fate, SECOND, craft, describe};
use crate::registry::find;

/// Hosts that send.
pub const HOSTS: u16 = 20;

/// A host's packet that left: of which of its ports, and as what with all instances and with one.
type Left = (u16, [Vec<u8>; 2]);

/// Several instances, and one.
pub trait Side {
    /// Return what becomes of a packet of a host, which has this many of its ports, with all instances and with one.
    fn send(&mut self, from: (u16, u16), gate: u16, frames: [&[u8]; 2]) -> [Fate; 2];

    /// Do what there is to do for several instances alone.
    fn turn(&mut self, host: u16, below: &mut dyn FnMut(u64) -> u64);

    /// Let so many ns pass.
    fn wait(&mut self, ns: u64);

    /// Return the gauges of all instances together, and of the one. What all see is told once.
    fn gauges(&self) -> [BTreeMap<&'static str, u64>; 2];
}

/// Return a packet's text without its source, and that.
fn parts(bytes: &[u8]) -> (String, String) {
    let text = describe(bytes);
    let words: Vec<&str> = text.split(' ').collect();
    let rest = words.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, word)| *word);
    (rest.collect::<Vec<_>>().join(" "), words.get(1).unwrap_or(&"").to_string())
}

/// Let random packets, answers to what left, turns and pauses come, and compare.
pub fn walk(side: &mut impl Side, name: &str, steps: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut below = |n: u64| random.bits() % n;
    let mut left: HashMap<u16, Vec<Left>> = HashMap::new();
    let rewrites = find(name).is_some_and(|function| function.owner.is_some());
    for step in 0..steps {
        let host = below(HOSTS.into()) as u16;
        let what = format!("{name} with seed {seed}, step {step}, host {host}");
        match below(10) {
            0..5 => {
                let v6 = host % 4 == 3;
                let address = if v6 { format!("[2001:db8:{host:x}::1]") } else { format!("10.0.0.{host}") };
                let service = if v6 { "[2001:db8:ffff::10]" } else { "192.0.2.10" };
                let (port, to) = (below(4) as u16, [80, 53][below(2) as usize]);
                let from = 4000 + port;
                let flags = ["S", "A", "FA", "R"][below(4) as usize];
                let line = match below(3) {
                    0 => format!("udp {address}:{from} > {service}:{to}"),
                    _ => format!("tcp {address}:{from} > {service}:{to} {flags}"),
                };
                let frame = craft(&line);
                let [several, one] = side.send((host, port), 0, [&frame, &frame]);
                match (several, one) {
                    (Fate::Out(0, several), Fate::Out(0, one)) => {
                        let (ours, theirs) = (parts(&several), parts(&one));
                        assert_eq!(ours.0, theirs.0, "{what}: {line}");
                        assert!(rewrites || ours.1 == theirs.1, "{what}: {line}");
                        left.entry(host).or_default().push((port, [several, one]));
                    }
                    (several, one) => assert_eq!(several, one, "{what}: {line}"),
                }
            }
            5..8 => {
                let Some(sent) = left.get(&host) else { continue };
                let (port, [several, one]) = &sent[below(sent.len() as u64) as usize];
                let flags = ["SA", "A", "RA", "FA"][below(4) as usize];
                let back = |bytes: &[u8]| {
                    let text = describe(bytes);
                    let words: Vec<&str> = text.split(' ').collect();
                    let tail = if words[0] == "tcp" { format!(" {flags}") } else { String::new() };
                    craft(&format!("{} {} > {}{tail}", words[0], words[3], words[1]))
                };
                let (several, one) = (back(several), back(one));
                let [ours, theirs] = side.send((host, *port), 1, [&several, &one]);
                assert_eq!(ours, theirs, "{what}: {}", describe(&one));
            }
            8 => side.turn(host, &mut below),
            _ => side.wait([1_000_000, 50_000_000, 2 * SECOND, 70 * SECOND][below(4) as usize]),
        }
    }
    // In time all is over, whoever has it, and nothing is left behind.
    for round in 0..3 {
        let [several, one] = side.gauges();
        assert_eq!(several, one, "{name} with seed {seed}, round {round}");
        (0..40).for_each(|_| side.wait(if round == 0 { 10 * SECOND } else { 3000 * SECOND }));
    }
}
