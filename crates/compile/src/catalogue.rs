//! The function library as planners see it: where each function can run, how it may be split, what its size is.

use std::net::IpAddr;

use catena_functions::config::ArgError;
use catena_functions::workload::Told;
use catena_functions::{Affinity, Args, Descriptor, Rewrites, registry};
use catena_plan::catalogue::{self, Catalogue, Fields, Memory, Particular, Platform, Returning, Traits};
use catena_plan::returns::{Prefix, Returns};
use catena_policy as policy;
use catena_state::{Declaration, Object, Scope};

use crate::library::value;

/// Return what planners must know of every function of the library.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue { functions: registry::FUNCTIONS.iter().map(|f| traits(f)).collect(), ..Catalogue::default() }
}

/// Return what planners must know of a function with these arguments where they, and not the function alone, tell:
/// where a manifest says what its state is.
///
/// # Errors
/// What is wrong with the manifest.
pub fn particular(function: &str, args: &[(String, policy::Value)]) -> Result<Option<Particular>, ArgError> {
    let Some(descriptor) = registry::find(function) else { return Ok(None) };
    let Affinity::Manifest { param, .. } = descriptor.affinity else { return Ok(None) };
    let Some((_, given)) = args.iter().find(|(name, _)| name == param) else { return Ok(None) };
    let read = Args::default().with(param, value(given));
    let affinity = affinity(descriptor.affinity.with(&read)?);
    let memory = match affinity {
        catalogue::Affinity::Any => Memory::None,
        catalogue::Affinity::Fields(_) => Memory::PerGroup,
        catalogue::Affinity::Single => Memory::Shared,
    };
    let traits = Traits { affinity, memory, ..traits(descriptor) };
    Ok(Some(Particular { argument: param.to_owned(), value: given.clone(), traits }))
}

/// Return by which addresses packets on the way back show that they are of a function with these arguments.
#[must_use]
pub fn returns(function: &str, args: &[(String, policy::Value)]) -> Returns {
    let Some(descriptor) = registry::find(function) else { return Returns::default() };
    let args = Args::new(args.iter().map(|(name, given)| (name.clone(), value(given))));
    let returns = (descriptor.returns)(&args);
    let prefixes = |all: Vec<(IpAddr, u8)>| all.into_iter().filter_map(|(a, n)| Prefix::new(a, n)).collect();
    Returns { destinations: prefixes(returns.destinations), sources: prefixes(returns.sources) }
}

/// Return the same of all functions of a policy that have any such addresses, as planners look it up.
#[must_use]
pub fn returning(graph: &policy::PolicyGraph) -> Vec<Returning> {
    let nodes = graph.chains.iter().flat_map(|chain| &chain.nodes);
    let of = |node: &policy::Node| Returning {
        function: node.function.clone(),
        args: node.args.clone(),
        returns: returns(&node.function, &node.args),
    };
    nodes.map(of).filter(|one| !one.returns.is_empty()).collect()
}

fn traits(function: &Descriptor) -> Traits {
    let affinity = affinity(function.affinity);
    Traits {
        name: function.name.to_owned(),
        // A plan may use only what there is: no function of the library has an implementation for a switch or a
        // network card, whatever the papers had for functions of the same name.
        platforms: vec![Platform::Server],
        affinity,
        memory: memory(function.state, affinity),
        rewrites: rewrites(function),
        tables: Vec::new(),
        openflow: None,
        size: function.workload.and_then(|workload| workload.size).map(|size| catalogue::Size {
            unit: size.unit.to_owned(),
            argument: match size.told {
                Told::Argument(argument) => Some(argument.to_owned()),
                Told::Traffic => None,
            },
            usual: size.usual as f64,
        }),
        source: None,
    }
}

/// The header fields of forward packets that it rewrites.
fn rewrites(function: &Descriptor) -> Fields {
    use catena_functions::effects::Fields as Written;
    let endpoints = Written::SOURCE | Written::DESTINATION | Written::PORTS;
    match function.rewrites {
        _ if !(function.effects)(&Args::default()).writes.meets(endpoints) => Fields::NONE,
        Rewrites::Source => Fields::SOURCE.and(Fields::SOURCE_PORT),
        Rewrites::Destination => Fields::DESTINATION.and(Fields::DESTINATION_PORT),
        Rewrites::Anything => Fields::FIVE_TUPLE,
    }
}

fn affinity(affinity: Affinity) -> catalogue::Affinity {
    match affinity {
        Affinity::None => catalogue::Affinity::Any,
        Affinity::Single => catalogue::Affinity::Single,
        Affinity::Scope(scope) | Affinity::Manifest { otherwise: scope, .. } => {
            fields(scope).map_or(catalogue::Affinity::Single, catalogue::Affinity::Fields)
        }
    }
}

/// The header fields that key an object of this scope; `None` where no field does.
fn fields(scope: Scope) -> Option<Fields> {
    match scope {
        Scope::Connection => Some(Fields::FIVE_TUPLE),
        Scope::SourceEndpoint => Some(Fields::SOURCE.and(Fields::SOURCE_PORT).and(Fields::PROTOCOL)),
        Scope::HostPair => Some(Fields::SOURCE.and(Fields::DESTINATION)),
        Scope::Source => Some(Fields::SOURCE),
        Scope::Destination => Some(Fields::DESTINATION),
        Scope::Configured | Scope::Global => None,
    }
}

/// What a function with these state objects remembers, when packets are split over instances by `affinity`.
///
/// Entries of a map lie with the instance that their packets meet if the map's key has all fields of the affinity:
/// then packets of one entry are of one group. Other objects are shared out whatever their scope, as every instance
/// is built with its share of the work: what a shared object has to give is divided, and counts of all instances are
/// added up, and each writes its own records.
fn memory(state: &[Declaration], affinity: catalogue::Affinity) -> Memory {
    let apart = |object: &Declaration| match (object.object, fields(object.scope)) {
        (Object::Shared | Object::Outlet, _) => true,
        (Object::FlowMap | Object::SharedMap, None) => false,
        (Object::FlowMap | Object::SharedMap, Some(key)) => affinity.satisfies(catalogue::Affinity::Fields(key)),
    };
    match state {
        [] => Memory::None,
        objects if objects.iter().all(apart) => Memory::PerGroup,
        _ => Memory::Shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_state::Access;

    #[test]
    fn every_function_of_the_library_is_there() {
        let catalogue = catalogue();
        assert_eq!(catalogue.functions.len(), registry::FUNCTIONS.len());
        for function in registry::FUNCTIONS {
            let traits = catalogue.find(function.name).expect("every function has traits");
            assert_eq!(traits.platforms, [Platform::Server], "there is no other implementation");
            assert!(traits.tables.is_empty() && traits.openflow.is_none() && traits.source.is_none());
            if let Some(argument) = traits.size.as_ref().and_then(|size| size.argument.as_ref()) {
                assert!(function.params.iter().any(|p| p.name == argument), "{}: {argument}", function.name);
            }
        }
    }

    #[test]
    fn known_functions_have_known_traits() {
        let catalogue = catalogue();
        let of = |name: &str| {
            let traits = catalogue.find(name).expect("the library has it");
            (traits.affinity, traits.memory)
        };
        let by = |fields| catalogue::Affinity::Fields(fields);
        let rewrites = |name: &str| catalogue.find(name).map(|traits| traits.rewrites);
        assert_eq!(rewrites("NAT"), Some(Fields::SOURCE.and(Fields::SOURCE_PORT)));
        assert_eq!(rewrites("LB"), Some(Fields::DESTINATION.and(Fields::DESTINATION_PORT)));
        assert_eq!(rewrites("Native"), Some(Fields::FIVE_TUPLE));
        for keeps in ["ACL", "IPv4Fwd", "Limiter", "Monitor", "PortScan"] {
            assert_eq!(rewrites(keeps), Some(Fields::NONE), "{keeps}");
        }
        assert_eq!(of("ACL"), (catalogue::Affinity::Any, Memory::None));
        assert_eq!(of("IPv4Fwd"), (catalogue::Affinity::Any, Memory::None));
        assert_eq!(of("NAT"), (by(Fields::SOURCE), Memory::PerGroup));
        assert_eq!(of("Limiter"), (by(Fields::SOURCE), Memory::PerGroup));
        assert_eq!(of("LB"), (by(Fields::FIVE_TUPLE), Memory::PerGroup));
        assert_eq!(of("Monitor"), (by(Fields::FIVE_TUPLE), Memory::PerGroup));
        assert_eq!(catalogue.find("ACL").and_then(|f| f.size.clone()).map(|s| s.unit), Some("rules".to_owned()));
    }

    #[test]
    fn memory_follows_from_the_keys() {
        let object =
            |object, scope| Declaration { name: "x", summary: "x", object, scope, access: Access::ReadWrite, part: 0 };
        let by_source = catalogue::Affinity::Fields(Fields::SOURCE);
        let by_connection = catalogue::Affinity::Fields(Fields::FIVE_TUPLE);
        let map = |scope| [object(Object::FlowMap, scope)];
        assert_eq!(memory(&[], by_source), Memory::None);
        assert_eq!(memory(&map(Scope::Connection), by_source), Memory::PerGroup);
        assert_eq!(memory(&map(Scope::Source), by_source), Memory::PerGroup);
        // Two connections of a source may meet different instances: its entry is then in both.
        assert_eq!(memory(&map(Scope::Source), by_connection), Memory::Shared);
        assert_eq!(memory(&map(Scope::Destination), by_source), Memory::Shared);
        assert_eq!(memory(&map(Scope::Global), by_source), Memory::Shared);
        assert_eq!(memory(&map(Scope::Source), catalogue::Affinity::Any), Memory::Shared);
        assert_eq!(memory(&[object(Object::Shared, Scope::Global)], by_source), Memory::PerGroup);
        assert_eq!(memory(&[object(Object::Outlet, Scope::Global)], by_source), Memory::PerGroup);
    }
}
