//! Tries what would help on the rack itself: a remedy is shown if the whole way from chain files to a judged plan ends well with
//! it, as `--what-if` would go.

use catena_plan::lemur::exact::relax::Obstacles;
use catena_plan::lemur::exact::remedy::Kind;
use catena_plan::placement::Link;
use catena_plan::rack::{MAX_CORES, Rack, SwitchKind};
use catena_policy::Relation;

use crate::case::Case;
use crate::inputs::Inputs;
use crate::remarks::Remark;
use crate::strategy::Strategy;

impl Case {
    /// Keep the remedies that do. Cores are added to all sockets of a server alike.
    pub(crate) fn keep_what_helps(&self, found: &mut Obstacles, tell: &dyn Fn(&Remark<'_>)) {
        for (server, cores) in found.cores.iter_mut().flatten() {
            let sockets = self.inputs.rack.servers.get(*server).map_or(1, |server| server.sockets.max(1));
            *cores = cores.next_multiple_of(sockets);
        }
        // Those for steering count too, which the problem does not have.
        let may = |&(server, more): &(usize, u32)| {
            let there = self.inputs.rack.servers.get(server).map_or(0, |own| own.sockets * own.cores_per_socket);
            there.saturating_add(more) <= MAX_CORES
        };
        found.cores = found.cores.take().filter(|cores| cores.iter().all(may));
        for kind in Kind::ALL {
            let Some(inputs) = self.with(found, kind) else { continue };
            tell(&Remark::Seeking(kind.title()));
            if !self.left().is_zero() && self.keeps(inputs) {
                continue;
            }
            found.complete = false;
            match kind {
                Kind::Cores => found.cores = None,
                Kind::Links => found.links = None,
                Kind::SmartNics => found.smart_nics = None,
                Kind::Forwarding => found.forwarding = None,
                Kind::Stages => found.stages = None,
                Kind::Entries => found.entries = None,
                Kind::Relations => found.relations.clear(),
            }
        }
    }

    /// Whether these inputs, with all else as it is, end in a plan that keeps all promises.
    fn keeps(&self, inputs: Inputs) -> bool {
        let case = self.of(inputs).ok();
        case.and_then(|case| case.decide(Strategy::Exact).ok()).is_some_and(|decision| decision.plan.is_kept())
    }

    /// The inputs with a remedy; None: there is none of this kind, or a rack's file cannot say it.
    fn with(&self, found: &Obstacles, kind: Kind) -> Option<Inputs> {
        let mut inputs = self.inputs.clone();
        let rack = &mut inputs.rack;
        match kind {
            Kind::Cores => {
                for &(server, cores) in found.cores.as_ref()? {
                    let server = rack.servers.get_mut(server)?;
                    server.cores_per_socket += cores / server.sockets.max(1);
                }
            }
            Kind::Links => {
                for &(server, link, bps) in found.links.as_ref()? {
                    *bits(rack, server, link)? += bps;
                }
            }
            // A card's cycles are its cores times their clock: which of them grows is not said.
            Kind::SmartNics => return None,
            Kind::Forwarding => rack.switch.as_mut()?.capacity_bps += found.forwarding?,
            Kind::Stages => match rack.switch.as_mut().map(|switch| &mut switch.kind) {
                Some(SwitchKind::Pisa(stages)) => stages.stages += found.stages?,
                _ => return None,
            },
            Kind::Entries => match (found.entries?, rack.switch.as_mut().map(|switch| &mut switch.kind)) {
                (entries, Some(SwitchKind::OpenFlow { tables })) => {
                    tables.iter_mut().for_each(|table| table.entries = entries);
                }
                _ => return None,
            },
            Kind::Relations if found.relations.is_empty() => return None,
            Kind::Relations => inputs.graph.relations.retain(|relation| matches!(relation, Relation::Priority(_))),
        }
        Some(inputs)
    }
}

/// The rate of a server's link.
fn bits(rack: &mut Rack, server: usize, link: Link) -> Option<&mut f64> {
    match link {
        Link::Nic(nic) => rack.servers.get_mut(server)?.nics.get_mut(nic).map(|nic| &mut nic.bps),
        Link::SmartNic(nic) => {
            rack.servers.iter_mut().flat_map(|server| &mut server.smart_nics).nth(nic).map(|nic| &mut nic.bps)
        }
    }
}
