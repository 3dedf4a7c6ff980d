//! The addresses that clients send to, found in few steps however many there are: a flood to any address asks.

/// So few are compared with all at once: halving waits for each comparison before the next.
const SHORT: usize = 16;

/// Addresses of one IP version.
pub(super) struct Vips<A> {
    /// The first address of each range, in order; no range is within another.
    firsts: Vec<A>,
    /// The last address of each, and the ports in order if only those are served.
    rest: Vec<(A, Option<Vec<u16>>)>,
}

impl<A: Copy + Ord> Vips<A> {
    /// Make them of first and last addresses, and ports: prefixes, which are within each other or apart.
    pub(super) fn new(mut ranges: Vec<(A, A, Option<u16>)>) -> Self {
        // Of those that begin together the longest comes first, and without a port before all with one.
        ranges.sort_by_key(|(first, last, port)| (*first, std::cmp::Reverse(*last), *port));
        let mut vips = Vips { firsts: Vec::new(), rest: Vec::new() };
        for (first, last, port) in ranges {
            match vips.rest.last_mut() {
                Some((before, ports)) if last <= *before => {
                    if let (Some(ports), Some(port)) = (ports, port) {
                        ports.push(port);
                    }
                }
                _ => {
                    vips.firsts.push(first);
                    vips.rest.push((last, port.map(|port| vec![port])));
                }
            }
        }
        vips
    }

    /// Return whether packets to this address are balanced, with this port if they have one.
    pub(super) fn serves(&self, address: A, port: Option<u16>) -> bool {
        self.find(address).is_some_and(|ports| match (ports, port) {
            (None, _) => true,
            (Some(ports), Some(port)) => ports.binary_search(&port).is_ok(),
            (Some(_), None) => false,
        })
    }

    /// Return whether packets to this address are balanced, whatever the port.
    pub(super) fn holds(&self, address: A) -> bool {
        self.find(address).is_some()
    }

    fn find(&self, address: A) -> Option<&Option<Vec<u16>>> {
        let (mut from, mut len) = (0, self.firsts.len());
        while len > SHORT {
            let half = len / 2;
            if self.firsts[from + half] <= address {
                from += half;
            }
            len -= half;
        }
        let after = from + self.firsts[from..from + len].iter().filter(|first| **first <= address).count();
        let (last, ports) = self.rest.get(after.checked_sub(1)?)?;
        (address <= *last).then_some(ports)
    }
}
