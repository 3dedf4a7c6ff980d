//! Which network card each subgroup uses, and what that makes the chains share.

use std::collections::HashMap;

use super::rates::Row;
use catena_plan_model::estimate::{Group, Layout, all_links};
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Problem, ServerId};

/// The links that a server's subgroups can choose from, with their bits per second: its ordinary cards, or
/// if it has none its SmartNICs, as plain cards.
#[must_use]
pub fn cards(problem: &Problem, server: ServerId) -> Vec<(Link, f64)> {
    let own = problem.servers.get(server).map(|s| s.nics_bps.as_slice()).unwrap_or_default();
    if own.is_empty() {
        let smart = problem.smart_nics.iter().enumerate().filter(|(_, nic)| nic.server == server);
        smart.map(|(id, nic)| (Link::SmartNic(id), nic.bps)).collect()
    } else {
        own.iter().enumerate().map(|(id, bps)| (Link::Nic(id), *bps)).collect()
    }
}

/// The link that stands at `index` of a server's [`cards`].
#[must_use]
pub fn card(problem: &Problem, server: ServerId, index: usize) -> Link {
    cards(problem, server).get(index).map_or(Link::Nic(index), |(link, _)| *link)
}

/// A link for each subgroup, by chain and group, so that the fullest card is as empty as can be if the
/// chains carry `rates`: the largest load first, on the card that it fills least.
#[must_use]
pub fn assign(problem: &Problem, layouts: &[&Layout], rates: &[f64]) -> Vec<Vec<Link>> {
    let first = |group: &Group| {
        group.smart_nic.map_or_else(
            || cards(problem, group.server).first().map_or(Link::Nic(0), |(link, _)| *link),
            Link::SmartNic,
        )
    };
    let mut links: Vec<Vec<Link>> = layouts.iter().map(|layout| layout.groups.iter().map(first).collect()).collect();
    for server in 0..problem.servers.len() {
        let cards = cards(problem, server);
        if cards.len() < 2 {
            continue;
        }
        let mut loads: Vec<(usize, usize, f64)> = Vec::new();
        for (chain, layout) in layouts.iter().enumerate() {
            for (id, group) in layout.groups.iter().enumerate() {
                if group.server == server && group.smart_nic.is_none() {
                    loads.push((chain, id, rates[chain] * group.visits * layout.on_link));
                }
            }
        }
        loads.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut full = vec![0.0_f64; cards.len()];
        for (chain, id, load) in loads {
            let after = |card: usize| (full[card] + load) / cards[card].1.max(f64::MIN_POSITIVE);
            let best = (0..cards.len()).min_by(|&a, &b| after(a).total_cmp(&after(b))).unwrap_or_default();
            full[best] += load;
            links[chain][id] = cards[best].0;
        }
    }
    links
}

/// What the chains share, with these links: the links themselves and the SmartNICs' processors.
#[must_use]
pub fn rows(problem: &Problem, layouts: &[&Layout], links: &[Vec<Link>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut known: HashMap<(ServerId, Link), usize> = HashMap::new();
    let mut load = |server: ServerId, link: Link, chain: usize, visits: f64| {
        let key = (if let Link::SmartNic(nic) = link { problem.smart_nics[nic].server } else { server }, link);
        let id = *known.entry(key).or_insert_with(|| {
            let capacity = match link {
                Link::Nic(nic) => problem.servers[server].nics_bps.get(nic).copied().unwrap_or(0.0),
                Link::SmartNic(nic) => problem.smart_nics[nic].bps,
            };
            rows.push(Row { terms: Vec::new(), capacity });
            rows.len() - 1
        });
        rows[id].add(chain, visits);
    };
    for (chain, layout) in layouts.iter().enumerate() {
        for (group, link) in layout.groups.iter().zip(&links[chain]) {
            if group.smart_nic.is_none() {
                load(group.server, *link, chain, group.visits * layout.on_link);
            }
        }
        for stay in &layout.stays {
            if let Some(nic) = stay.smart_nic {
                load(stay.server, Link::SmartNic(nic), chain, stay.visits * layout.on_link);
            }
        }
    }
    if layouts.iter().any(|layout| layout.direct > 0.0) {
        // What no node sees goes by any card: all of them carry all.
        let stays = |layout: &Layout| layout.stays.iter().map(|stay| stay.visits).sum::<f64>();
        let all = layouts.iter().map(|layout| layout.direct + stays(layout));
        rows.push(Row::of(all, all_links(problem).iter().map(|(_, _, bps)| bps).sum()));
    }
    for (id, nic) in problem.smart_nics.iter().enumerate() {
        let cycles = |layout: &&Layout| layout.smart_nic_cycles.iter().find(|(n, _)| *n == id).map_or(0.0, |c| c.1);
        let per_bit = |(chain, layout): (usize, _)| cycles(layout) / problem.chains[chain].packet_bits();
        let row = Row::of(layouts.iter().enumerate().map(per_bit), nic.cycles_hz);
        if !row.terms.is_empty() {
            rows.push(row);
        }
    }
    if let Some(switch) = &problem.switch {
        rows.push(Row::of(layouts.iter().map(|layout| layout.passes), switch.capacity_bps));
    }
    rows
}
