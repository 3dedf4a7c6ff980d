//! A filter's conditions as tests of the dataplane.

use std::net::IpAddr;

use catena_dataplane::branch::bpf::{Insn, Invalid, Program};
use catena_dataplane::branch::{self, Prefix, Protocols, Test};
use catena_packet::wire::Net;
use catena_policy::filter::{Condition, Endpoint, Expression, Network, View};

/// Make the test of an expression.
///
/// # Errors
/// What is wrong with a program in it.
pub fn test(expression: &Expression) -> Result<Test, Invalid> {
    Ok(match expression {
        Expression::All(parts) => Test::All(cheapest_first(parts.iter().map(test).collect::<Result<_, _>>()?)),
        Expression::Any(parts) => {
            let mut tests = Vec::new();
            for part in parts {
                push_any(&mut tests, test(part)?);
            }
            Test::Any(cheapest_first(tests))
        }
        Expression::Not(inner) => Test::Not(Box::new(test(inner)?)),
        Expression::Is(condition) => condition_test(condition)?,
    })
}

/// Conditions change nothing, so that any may come first: programs come last.
fn cheapest_first(mut tests: Vec<Test>) -> Vec<Test> {
    tests.sort_by_key(Test::cost);
    tests
}

/// Add an alternative; networks of one endpoint become one test.
fn push_any(tests: &mut Vec<Test>, test: Test) {
    match (tests.last_mut(), test) {
        (
            Some(Test::Address { endpoint, prefixes, resolution }),
            Test::Address { endpoint: other, prefixes: more, resolution: also },
        ) if *endpoint == other => {
            prefixes.extend(more);
            resolution.extend(also);
        }
        (_, test) => tests.push(test),
    }
}

fn condition_test(condition: &Condition) -> Result<Test, Invalid> {
    Ok(match condition {
        Condition::Network(network) => Test::Network(net(*network)),
        Condition::Protocol { over, number } => Test::Protocol { over: over.map(net), number: *number },
        Condition::Address { endpoint, network, prefix, resolution } => Test::Address {
            endpoint: side(*endpoint),
            prefixes: vec![self::prefix(*network, *prefix)],
            resolution: resolution.iter().map(|program| runnable(program)).collect::<Result<_, _>>()?,
        },
        Condition::Port { endpoint, protocols, from, to } => {
            let what = "ports of a protocol without ports";
            let protocols = Protocols::of(protocols).ok_or(Invalid { at: 0, what })?;
            Test::Port { endpoint: side(*endpoint), protocols, from: *from, to: *to }
        }
        Condition::Vlan { depth, id } => Test::Vlan { depth: *depth, id: *id },
        Condition::Program { program, view } => {
            let view = match view {
                View::Frame => branch::View::Frame,
                View::Untagged => branch::View::Untagged,
                View::Bare => branch::View::Bare,
            };
            Test::Program(Box::new(runnable(program)?), view)
        }
    })
}

fn runnable(program: &[catena_policy::Insn]) -> Result<Program, Invalid> {
    let insns: Vec<Insn> = program.iter().map(|i| Insn { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    Program::new(&insns)
}

fn net(network: Network) -> Net {
    match network {
        Network::Ipv4 => Net::Ipv4,
        Network::Ipv6 => Net::Ipv6,
        Network::Arp => Net::Arp,
    }
}

fn side(endpoint: Endpoint) -> branch::Endpoint {
    match endpoint {
        Endpoint::Source => branch::Endpoint::Source,
        Endpoint::Destination => branch::Endpoint::Destination,
        Endpoint::Either => branch::Endpoint::Either,
        Endpoint::Both => branch::Endpoint::Both,
    }
}

/// Return a network as address and mask.
pub fn prefix(address: IpAddr, length: u8) -> Prefix {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            Prefix::V4(address.to_bits() & mask, mask)
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
            Prefix::V6(address.to_bits() & mask, mask)
        }
    }
}
