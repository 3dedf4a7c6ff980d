//! Whether the slots of a chain's packets may go from worker to worker while it runs.

use catena_compile::Host;
use catena_compile::host::Lowered;

use super::ports::Ports;
use crate::Failure;

/// Check that this chain on these ports can be run with `--rebalance`.
///
/// # Errors
/// Why it cannot.
pub fn check(host: &Host, ports: &Ports, workers: usize) -> Result<(), Failure> {
    if workers < 2 {
        return Err("--rebalance: there is one worker; take several: `--workers 2`".into());
    }
    if !ports.is_live() {
        let why = "an interface on one side at least; what is recorded and written to files goes through in order";
        return Err(format!("--rebalance: it is for traffic by the wall's time: {why}").into());
    }
    if !host.cuts.is_empty() {
        // A packet that waits there is neither held nor brought through before its slot goes.
        return Err(
            "--rebalance: the plan has queues between its tasks, where packets of a slot that goes would be left"
                .into(),
        );
    }
    let functions = host.modules.iter().filter_map(|module| match &module.kind {
        Lowered::Function { descriptor, args, .. } => Some((&module.name, descriptor, args)),
        _ => None,
    });
    let mut rewrites: Option<&str> = None;
    for (name, descriptor, args) in functions {
        if let Err(why) = (descriptor.moves)(args) {
            return Err(format!("--rebalance: {name}: {why}").into());
        }
        if let Some(before) = rewrites.filter(|_| descriptor.owner.is_some()) {
            let why = "the addresses that one gives to several hosts would be one host to the other";
            return Err(format!("--rebalance: there are two NATs, {before} and {name}: {why}").into());
        }
        rewrites = rewrites.or(descriptor.owner.map(|_| &**name));
    }
    Ok(())
}
