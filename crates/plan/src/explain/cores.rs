//! Which core runs what: numbers of cores for subgroups.
//!
//! A server's cores are numbered socket by socket. Those for steering come first, on the socket of the first
//! network card. Subgroups that move the most packets get the cores nearest to their card: what crosses
//! sockets costs more (Lemur, Table 4). Where one server runs whole chains, each core has its part of every subgroup, for
//! flows go to the cores whatever their chain is. On another server with shared cores, what may have one core only comes
//! first and is never divided; then parts of cores are put together as they fit, the largest first, and what fits nowhere whole
//! is spread over several.

use super::View;
use crate::plan::{SubgroupPlan, WorkerPlan};
use catena_plan_model::placement::{Link, Subgroup};
use catena_plan_model::problem::ServerId;
use catena_plan_model::rack::Server;

/// A part of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// The core's number.
    pub core: u32,
    /// How much of it, 0 to 1.
    pub share: f64,
}

/// Less than this part of a core is none.
const NOTHING: f64 = 1e-9;

/// The cores of a server, those on `socket` first.
fn from_socket(server: &Server, socket: u32) -> Vec<u32> {
    let mut cores: Vec<u32> = (0..server.sockets * server.cores_per_socket).collect();
    cores.sort_by_key(|core| (core / server.cores_per_socket.max(1) != socket, *core));
    cores
}

/// The cores of a server that read packets and steer them.
pub(super) fn steering(server: &Server) -> Vec<u32> {
    let socket = server.nics.first().map_or_else(|| server.smart_nics.first().map_or(0, |n| n.socket), |n| n.socket);
    from_socket(server, socket).into_iter().take(server.steering_cores as usize).collect()
}

/// What a subgroup that may have one core only may miss of a core: solvers compute with tolerances.
const ROUNDING: f64 = 1e-7;

/// Cores tried at most for subgroups that may have one only: finding out whether they fit can take exponential time.
const MOST_TRIES: usize = 100_000;

/// The cores of every subgroup of the placement.
///
/// # Errors
/// Why there are none: what may have one core only fits on none whole.
pub(super) fn numbers(view: &View<'_>) -> Result<Vec<Vec<Part>>, String> {
    let mut numbers = vec![Vec::new(); view.placement.subgroups.len()];
    for server in 0..view.problem.servers.len() {
        let Some(about) = view.case.rack.servers.get(server) else { continue };
        let taken = steering(about);
        let rooms: Vec<Part> = (0..about.sockets * about.cores_per_socket)
            .filter(|core| !taken.contains(core))
            .map(|core| Part { core, share: 1.0 })
            .collect();
        if view.is_whole() {
            for (parts, group) in numbers.iter_mut().zip(&view.placement.subgroups) {
                let share = group.cores / rooms.len().max(1) as f64;
                *parts = rooms.iter().map(|room| Part { core: room.core, share }).collect();
            }
            continue;
        }
        let on = OnServer { view, server, about };
        // What stays where it is can leave no core whole for something new.
        let given = on.given(rooms.clone(), true).or_else(|| on.given(rooms, false)).ok_or_else(|| on.undivided())?;
        for (subgroup, parts) in given {
            if let Some(own) = numbers.get_mut(subgroup) {
                *own = parts;
            }
        }
    }
    Ok(numbers)
}

/// A server of a placement.
struct OnServer<'a> {
    view: &'a View<'a>,
    server: ServerId,
    about: &'a Server,
}

impl OnServer<'_> {
    /// The cores of the subgroups here; with `again`, of those that run where they run, as far as that can be. None: what may
    /// have one core only fits on none.
    fn given(&self, mut rooms: Vec<Part>, again: bool) -> Option<Vec<(usize, Vec<Part>)>> {
        let view = self.view;
        let mut given: Vec<(usize, Vec<Part>)> = Vec::new();
        for subgroup in by_packets(view, self.server) {
            let placed = view.placement.subgroups.get(subgroup)?;
            // What runs stays where it is; others go around it.
            let ran = if again { ran(view, placed) } else { Vec::new() };
            let parts = match view.is_replicable(subgroup) {
                true => self::again(&mut rooms, &ran, placed.cores),
                false => alone_again(&mut rooms, &ran, placed.cores),
            };
            given.push((subgroup, parts));
        }
        let alone = |(subgroup, parts): &&(usize, Vec<Part>)| parts.is_empty() && !view.is_replicable(*subgroup);
        let single: Vec<usize> = given.iter().filter(alone).map(|(subgroup, _)| *subgroup).collect();
        let needs: Vec<f64> = single.iter().map(|&subgroup| view.placement.subgroups[subgroup].cores).collect();
        let order = |need: usize, rooms: &[Part]| {
            let link = single.get(need).map(|&subgroup| view.placement.subgroups[subgroup].link);
            let near = from_socket(self.about, link.map_or(0, |link| socket(view, self.about, link)));
            let distance = |room: &usize| near.iter().position(|core| *core == rooms[*room].core);
            let mut order: Vec<usize> = (0..rooms.len()).collect();
            order.sort_by(|a, b| rooms[*a].share.total_cmp(&rooms[*b].share).then(distance(a).cmp(&distance(b))));
            order
        };
        let cores = undivided(&mut rooms, &needs, &order)?;
        for (subgroup, part) in single.iter().zip(cores) {
            given.iter_mut().filter(|(other, _)| other == subgroup).for_each(|(_, parts)| parts.push(part));
        }
        for (subgroup, parts) in &mut given {
            let placed = view.placement.subgroups.get(*subgroup)?;
            let near = from_socket(self.about, socket(view, self.about, placed.link));
            let distance = |core: u32| near.iter().position(|n| *n == core).unwrap_or(usize::MAX);
            rooms.sort_by_key(|room| distance(room.core));
            if view.is_replicable(*subgroup) {
                let kept: f64 = parts.iter().map(|part| part.share).sum();
                parts.extend(take(&mut rooms, placed.cores - kept));
                *parts = joined(std::mem::take(parts));
            }
            // Next to nothing of a core is still on one.
            if let (true, Some(room)) = (parts.is_empty(), rooms.first()) {
                parts.push(Part { core: room.core, share: placed.cores });
            }
        }
        Some(given)
    }

    /// Why the placement is none.
    fn undivided(&self) -> String {
        let placed = self.view.placement.subgroups.iter().enumerate();
        let single = placed.filter(|(id, group)| group.server == self.server && !self.view.is_replicable(*id));
        let each: Vec<String> = single
            .map(|(_, group)| {
                let chain = self.view.problem.chains.get(group.chain).map_or("?", |chain| &chain.name);
                let first =
                    group.nodes.first().map_or_else(String::new, |&node| self.view.node_name(group.chain, node));
                let more = if group.nodes.len() > 1 { " …" } else { "" };
                format!("{chain}.{first}{more} takes {:.2}", group.cores)
            })
            .collect();
        format!(
            "what may have one core only does not fit on whole cores of {}, though all of them together have room: {}",
            self.view.server_name(self.server),
            each.join(", ")
        )
    }
}

/// Give each of `needs`, the largest first, a core that has room for all of it, and take that from `rooms`; `order` has the cores
/// in the order in which one of them tries. None: there is no way, or none was found.
fn undivided(rooms: &mut [Part], needs: &[f64], order: &dyn Fn(usize, &[Part]) -> Vec<usize>) -> Option<Vec<Part>> {
    fn fit(
        rooms: &mut [Part],
        rest: &[(usize, f64)],
        order: &dyn Fn(usize, &[Part]) -> Vec<usize>,
        tries: &mut usize,
        found: &mut [Part],
    ) -> bool {
        let Some((&(id, need), rest)) = rest.split_first() else { return true };
        let mut before: Option<f64> = None;
        for room in order(id, rooms) {
            let there = rooms[room].share;
            // A core with as much room as one that did not do does not either.
            if there < need - ROUNDING || before.is_some_and(|before| there - before < NOTHING) {
                continue;
            }
            *tries += 1;
            if *tries > MOST_TRIES {
                return false;
            }
            let share = need.min(there);
            rooms[room].share = there - share;
            found[id] = Part { core: rooms[room].core, share };
            if fit(rooms, rest, order, tries, found) {
                return true;
            }
            rooms[room].share = there;
            before = Some(there);
        }
        false
    }
    // Next to nothing finds room anywhere.
    let mut rest: Vec<(usize, f64)> = needs.iter().copied().enumerate().filter(|(_, need)| *need > ROUNDING).collect();
    rest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let first = rooms.first().map_or(0, |room| room.core);
    let mut found: Vec<Part> = needs.iter().map(|&share| Part { core: first, share }).collect();
    fit(rooms, &rest, order, &mut 0, &mut found).then_some(found)
}

/// All of `cores` on the core where it ran, if that has room.
fn alone_again(rooms: &mut [Part], ran: &[Part], cores: f64) -> Vec<Part> {
    let [before] = ran else { return Vec::new() };
    let room = rooms.iter_mut().find(|room| room.core == before.core && room.share >= cores - NOTHING);
    let part = room.map(|room| {
        room.share = (room.share - cores).max(0.0);
        Part { core: room.core, share: cores }
    });
    part.into_iter().collect()
}

/// The parts of cores that a subgroup has now, ascending.
fn ran(view: &View<'_>, placed: &Subgroup) -> Vec<Part> {
    let names: Vec<String> = placed.nodes.iter().map(|&node| view.node_name(placed.chain, node)).collect();
    let chain = view.problem.chains.get(placed.chain).map_or("", |chain| &chain.name);
    let name = view.server_name(placed.server);
    let server = view.case.runs.and_then(|plan| plan.servers.iter().find(|server| server.name == name));
    let same = |group: &SubgroupPlan| group.chain == chain && group.functions == names;
    let Some(server) = server else { return Vec::new() };
    let Some(own) = server.subgroups.iter().position(same) else { return Vec::new() };
    let part = |worker: &WorkerPlan| {
        let share = worker.parts.iter().filter(|part| part.subgroup == own).map(|part| part.share).sum();
        (share > 0.0).then_some(Part { core: worker.core, share })
    };
    server.workers.iter().filter_map(part).collect()
}

/// As much of `cores` as there is on the cores where it ran: as much of each as it had.
fn again(rooms: &mut [Part], ran: &[Part], cores: f64) -> Vec<Part> {
    let mut left = cores;
    let mut parts = Vec::new();
    for before in ran {
        let Some(room) = rooms.iter_mut().find(|room| room.core == before.core) else { continue };
        let share = before.share.min(left);
        if share > NOTHING && room.share >= share - NOTHING {
            parts.push(Part { core: room.core, share });
            room.share = (room.share - share).max(0.0);
            left -= share;
        }
    }
    parts
}

/// Parts of one core put together, in the order of the cores.
fn joined(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(|part| part.core);
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if last.core == part.core => last.share += part.share,
            _ => joined.push(part),
        }
    }
    joined
}

/// The subgroups on a server: those with whole cores first, then by packets, most first.
fn by_packets(view: &View<'_>, server: ServerId) -> Vec<usize> {
    let placed = &view.placement.subgroups;
    let packets = |i: &usize| {
        placed.get(*i).map_or(0.0, |s| {
            let bits = view.problem.chains.get(s.chain).map_or(1.0, |chain| chain.packet_bits());
            view.rate(s.chain) / bits
        })
    };
    let whole = |i: &usize| placed.get(*i).map_or(0.0, |s| (s.cores + NOTHING).floor());
    let part = |i: &usize| placed.get(*i).map_or(0.0, |s| s.cores.fract());
    let mut here: Vec<usize> =
        (0..placed.len()).filter(|&i| placed.get(i).is_some_and(|s| s.server == server)).collect();
    let shared = view.problem.servers.get(server).is_some_and(|s| s.shared);
    here.sort_by(|a, b| {
        let order = if shared {
            whole(b).total_cmp(&whole(a)).then(part(b).total_cmp(&part(a)))
        } else {
            packets(b).total_cmp(&packets(a))
        };
        order.then(a.cmp(b))
    });
    here
}

/// The socket of the card that a link is.
fn socket(view: &View<'_>, server: &Server, link: Link) -> u32 {
    match link {
        Link::Nic(nic) => server.nics.get(nic).map_or(0, |card| card.socket),
        Link::SmartNic(nic) => {
            let name = view.problem.smart_nics.get(nic).map_or("", |card| &card.name);
            let own = |card: &&catena_plan_model::rack::SmartNic| name.ends_with(&format!(".{}", card.name));
            server.smart_nics.iter().find(own).map_or(0, |card| card.socket)
        }
    }
}

/// Take `cores` of what is free: whole ones, then the fullest core that has room for the rest, then whatever
/// is left.
fn take(rooms: &mut [Part], cores: f64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut left = cores;
    for room in rooms.iter_mut() {
        if left < 1.0 - NOTHING {
            break;
        }
        if room.share >= 1.0 - NOTHING {
            parts.push(Part { core: room.core, share: 1.0 });
            room.share = 0.0;
            left -= 1.0;
        }
    }
    if left > NOTHING {
        let fitting = rooms.iter_mut().filter(|room| room.share >= left - NOTHING);
        if let Some(room) = fitting.min_by(|a, b| a.share.total_cmp(&b.share)) {
            parts.push(Part { core: room.core, share: left });
            room.share = (room.share - left).max(0.0);
            left = 0.0;
        }
    }
    for room in rooms.iter_mut() {
        if left <= NOTHING {
            break;
        }
        let share = room.share.min(left);
        if share > NOTHING {
            parts.push(Part { core: room.core, share });
            room.share -= share;
            left -= share;
        }
    }
    parts.sort_by_key(|part| part.core);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(free: &[f64], cores: &[f64]) -> Vec<Vec<(u32, f64)>> {
        let mut rooms: Vec<Part> = free.iter().zip(0..).map(|(share, core)| Part { core, share: *share }).collect();
        let round = |parts: Vec<Part>| parts.iter().map(|p| (p.core, (p.share * 1e6).round() / 1e6)).collect();
        cores.iter().map(|cores| round(take(&mut rooms, *cores))).collect()
    }

    #[test]
    fn whole_cores_are_taken_whole() {
        assert_eq!(taken(&[1.0, 1.0, 1.0], &[2.0, 1.0]), [vec![(0, 1.0), (1, 1.0)], vec![(2, 1.0)]]);
    }

    #[test]
    fn parts_are_put_together_as_they_fit() {
        assert_eq!(taken(&[1.0, 1.0], &[0.7, 0.6, 0.3]), [[(0, 0.7)], [(1, 0.6)], [(0, 0.3)]]);
        assert_eq!(taken(&[1.0, 1.0], &[1.5, 0.5]), [vec![(0, 1.0), (1, 0.5)], vec![(1, 0.5)]]);
    }

    /// The cores of needs that may have one only, where all cores are free.
    fn whole(cores: u32, needs: &[f64]) -> Option<Vec<u32>> {
        let mut rooms: Vec<Part> = (0..cores).map(|core| Part { core, share: 1.0 }).collect();
        let fullest = |_: usize, rooms: &[Part]| {
            let mut order: Vec<usize> = (0..rooms.len()).collect();
            order.sort_by(|a, b| rooms[*a].share.total_cmp(&rooms[*b].share));
            order
        };
        let found = undivided(&mut rooms, needs, &fullest)?;
        for room in &rooms {
            let given: f64 = found.iter().filter(|part| part.core == room.core).map(|part| part.share).sum();
            assert!(given <= 1.0 + 1e-9 && (given + room.share - 1.0).abs() < 1e-9, "{room:?} {given}");
        }
        assert!(found.iter().zip(needs).all(|(part, need)| (part.share - need).abs() <= ROUNDING));
        Some(found.iter().map(|part| part.core).collect())
    }

    #[test]
    fn what_may_have_one_core_only_is_never_divided() {
        assert_eq!(whole(2, &[0.3, 0.7, 0.6]), Some(vec![0, 0, 1]));
        // The fullest core first leaves no room for the last one; another way does.
        assert!(whole(2, &[0.5, 0.4, 0.4, 0.3, 0.2, 0.2]).is_some());
        assert_eq!(whole(2, &[0.6, 0.6, 0.6]), None);
        assert_eq!(whole(1, &[0.5, 0.5 + 1e-8]), Some(vec![0, 0]));
        // Far too many to try all ways.
        assert_eq!(whole(64, &[0.51; 65]), None);
    }

    #[test]
    fn what_fits_nowhere_whole_is_spread() {
        assert_eq!(taken(&[1.0, 1.0], &[0.7, 0.7, 0.6])[2], [(0, 0.3), (1, 0.3)]);
    }
}
