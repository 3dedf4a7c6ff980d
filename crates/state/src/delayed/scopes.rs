//! Which packets use an entry, held against the scope that is declared of it: what they must have in common.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::panic::Location;

use catena_packet::wire::FlowKey;

use super::made::Made;
use super::objects::KEYS;
use crate::declare::Scope;

/// What the packets of each entry have in common.
#[derive(Default)]
pub(super) struct Scopes {
    /// By the object's number and the hash of the key.
    common: HashMap<(usize, u64), u64>,
    /// Objects that tell other keys, by number: those are of the way back.
    of_other_keys: HashSet<usize>,
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Return what of an address is a host's: all of one of IPv4, the first 64 bits of one of IPv6.
fn host(end: SocketAddr) -> u64 {
    match end.ip() {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// Return what a flow's packets have in common with all others of an entry of this scope; nothing where the scope is no matter of
/// headers.
fn common(scope: Scope, flow: &FlowKey) -> Option<u64> {
    match scope {
        Scope::Connection => Some(flow.symmetric_hash(&KEYS)),
        Scope::SourceEndpoint => Some(hash((flow.src(), flow.proto()))),
        Scope::HostPair => Some(hash((flow.src().ip(), flow.dst().ip()))),
        Scope::Source => Some(hash(host(flow.src()))),
        Scope::Destination => Some(hash(host(flow.dst()))),
        Scope::Configured | Scope::Global => None,
    }
}

impl Scopes {
    /// Let any packets use an object, which tells other keys.
    pub(super) fn leave_out(&mut self, object: Made) {
        self.of_other_keys.insert(object.number);
    }

    /// Forget an entry, which is gone.
    pub(super) fn forget(&mut self, object: Made, key: u64) {
        self.common.remove(&(object.number, key));
    }

    /// Note that a packet of a flow uses the entry of a key.
    #[track_caller]
    pub(super) fn uses(&mut self, object: Made, key: u64, flow: &FlowKey) {
        let scope = object.declaration.scope;
        let Some(common) = common(scope, flow).filter(|_| !self.of_other_keys.contains(&object.number)) else { return };
        let before = *self.common.entry((object.number, key)).or_insert(common);
        if before != common {
            let (scope, at) = (scope.text(), Location::caller());
            panic!(
                "{object}: packets of more than one {scope} use an entry, and it is declared as one of each, at {at}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::wire::Seed;

    use super::*;
    use crate::{Access, Declaration, Delayed, Engine, FOREVER, FlowMap, Intent, Share, Tx};

    fn flow(src: &str, dst: &str) -> FlowKey {
        let [src, dst]: [SocketAddr; 2] = [src, dst].map(|end| end.parse().unwrap());
        FlowKey::new(src, dst, 6).unwrap()
    }

    /// Let packets of these flows use entries by these keys; returns what is said.
    fn said(scope: Scope, packets: &[(&str, &str, u64)], intent: Intent) -> Option<String> {
        let object = Declaration { scope, ..Declaration::flow_map("it", "", Scope::Connection, Access::ReadWrite) };
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 0);
        let mut map: <Delayed as Engine>::FlowMap<u64, u64> = engine.flow_map(&object, 9).unwrap();
        let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for ((src, dst, key), clock) in packets.iter().zip(1..) {
                let mut tx = engine.begin(Tx::new(clock, 0, 0));
                engine.sees(&tx, flow(src, dst));
                let ticket = map.want(&mut tx, *key, intent);
                while !engine.is_ready(&tx) {
                    engine.poll();
                }
                engine.step(&mut tx);
                if intent == Intent::Create && map.get(&mut tx, &ticket).is_none() {
                    map.insert(&mut tx, &ticket, 1, FOREVER).unwrap();
                }
                engine.commit(&mut tx);
                engine.end(tx);
            }
        }));
        used.err().map(|panic| panic.downcast_ref::<String>().unwrap().clone())
    }

    #[test]
    fn an_entry_of_more_than_its_scope_is_found() {
        // Of IPv6 the first 64 bits are a host's.
        let hosts = [("[2001:db8::1]:1", "[2001:db8:9::1]:80", 1), ("[2001:db8::2]:1", "[2001:db8:9::1]:80", 1)];
        assert_eq!(said(Scope::Source, &hosts, Intent::Create), None);
        assert!(said(Scope::HostPair, &hosts, Intent::Create).is_some());
        let (a, b, c) = ("10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1");
        let (server, other) = ("10.9.0.1:80", "10.9.0.2:80");
        // What packets share, and what they do not.
        let cases: [(Scope, [&str; 4], [&str; 4]); 5] = [
            (Scope::Connection, [a, server, server, a], [a, server, b, server]),
            (Scope::SourceEndpoint, [a, server, a, other], [a, server, b, server]),
            (Scope::HostPair, [a, server, b, server], [a, server, b, other]),
            (Scope::Source, [a, server, b, other], [a, server, c, server]),
            (Scope::Destination, [a, server, c, server], [a, server, a, other]),
        ];
        for (scope, one, several) in cases {
            let packets = |[src, dst, src2, dst2]: [&'static str; 4], key| [(src, dst, 1), (src2, dst2, key)];
            assert_eq!(said(scope, &packets(one, 1), Intent::Create), None, "{scope:?}");
            assert_eq!(said(scope, &packets(several, 2), Intent::Create), None, "{scope:?}: two entries");
            // Whoever only looks may look at others' entries, as packets between two hosts behind one translator do.
            assert_eq!(said(scope, &packets(several, 1), Intent::Change), None, "{scope:?}");
            let said = said(scope, &packets(several, 1), Intent::Create).expect("it is found");
            let expected = format!("it: packets of more than one {} use an entry", scope.text());
            assert!(said.starts_with(&expected) && said.contains("scopes.rs"), "{said}");
        }
        assert_eq!(said(Scope::Configured, &[(a, server, 1), (c, other, 1)], Intent::Create), None);
    }
}
