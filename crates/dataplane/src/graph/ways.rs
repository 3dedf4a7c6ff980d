//! The ways of packets: which module's turn it is, and who goes first where ways meet.
//!
//! Modules run in topological order, so that one has the packets of all ways to it at once. In a replay packets go on from there in the
//! order of their clocks, also where some wait for other workers on one of the ways: later ones of another way wait for them.

use catena_packet::{Batch, Clock, Packet};

use super::waiting::Waiting;
use super::{Graph, Inlet};

impl Graph {
    pub(super) fn wait(&mut self, place: usize, batch: &mut Batch, spill: &mut Vec<Packet>) {
        self.waiting[place].add(batch, spill, self.in_order);
        self.busy[place / 64] |= 1 << (place % 64);
    }

    /// Take the packets of the lowest inlet that has any into the (empty) batch in hand.
    pub(super) fn next_waiting(&mut self, batch: &mut Batch) -> Option<usize> {
        for word in 0..self.busy.len() {
            let mut bits = self.busy[word];
            while bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                let before = self.before(place);
                if !self.waiting[place].take(batch, before) {
                    self.busy[word] &= !(1 << (place % 64));
                }
                if !batch.is_empty() {
                    return Some(place);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    /// Return whether packets that come by one way may have to wait for those of another.
    #[inline(always)]
    pub(super) fn holds(&self) -> bool {
        self.in_order && !self.polled.is_empty()
    }

    /// Return the clock of the earliest packet that is still to come to where ways meet: it waits in a module on one of them. It goes
    /// first.
    #[inline]
    fn before(&self, place: usize) -> Option<Clock> {
        if !self.holds() || !self.waiting[place].meets {
            return None;
        }
        let in_front = self.waiting[..place].iter().map(|waiting| waiting.inlet.node);
        let modules =
            in_front.filter(|id| self.polled.contains(id)).filter_map(|id| self.nodes[id.0 as usize].as_ref());
        modules.filter_map(|node| node.module.first_waiting()).min()
    }

    pub(super) fn place(&self, inlet: Inlet) -> Option<usize> {
        // Inlets are few; entries of tasks come first.
        self.waiting.iter().position(|waiting| waiting.inlet == inlet)
    }

    /// Number the inlets that `start` and the earlier starts lead to, each after those that feed it.
    #[cold]
    pub(super) fn number(&mut self, start: Option<Inlet>) {
        let alive = |graph: &Graph, inlet: Inlet| graph.nodes[inlet.node.0 as usize].is_some();
        let mut starts: Vec<Inlet> =
            self.nodes.iter().flatten().flat_map(|n| &n.gates).filter_map(|gate| gate.to).collect();
        starts.splice(0..0, start);
        starts.extend(self.waiting.iter().map(|w| w.inlet));
        let (mut seen, mut order) = (Vec::new(), Vec::new());
        for inlet in starts {
            if alive(self, inlet) {
                self.visit(inlet, &mut seen, &mut order);
            }
        }
        order.reverse();
        let leading_to = |inlet: Inlet| {
            self.nodes.iter().flatten().flat_map(|node| &node.gates).filter(|gate| gate.to == Some(inlet)).count()
        };
        let new = order.iter().map(|&inlet| Waiting::new(inlet, leading_to(inlet) > 1)).collect();
        let mut old = std::mem::replace(&mut self.waiting, new);
        old.retain(|waiting| !waiting.is_empty());
        for mut waiting in old {
            // Where its module is gone it is as if the way went round in a circle: what waits is dropped, and counted.
            match order.iter().position(|inlet| *inlet == waiting.inlet) {
                Some(place) => {
                    waiting.meets = self.waiting[place].meets;
                    self.waiting[place] = waiting;
                }
                None => self.waiting.push(waiting),
            }
        }
        self.busy = vec![0; self.waiting.len().div_ceil(64)];
        for place in (0..self.waiting.len()).filter(|place| !self.waiting[*place].is_empty()) {
            self.busy[place / 64] |= 1 << (place % 64);
        }
        for gate in self.nodes.iter_mut().flatten().flat_map(|n| &mut n.gates) {
            gate.place = gate.to.and_then(|to| order.iter().position(|o| *o == to)).unwrap_or(0);
        }
        self.numbered = true;
    }

    /// Visit depth first, so that `order` is what topological sorting leaves reversed.
    fn visit(&self, start: Inlet, seen: &mut Vec<Inlet>, order: &mut Vec<Inlet>) {
        if seen.contains(&start) {
            return;
        }
        seen.push(start);
        let mut path = vec![(start, 0usize)];
        while let Some((inlet, next)) = path.last_mut() {
            let gates = self.nodes[inlet.node.0 as usize].as_ref().map_or(&[][..], |node| &node.gates);
            let Some(gate) = gates.get(*next) else {
                order.push(*inlet);
                path.pop();
                continue;
            };
            *next += 1;
            if let Some(to) = gate.to
                && !seen.contains(&to)
            {
                seen.push(to);
                path.push((to, 0));
            }
        }
    }
}
