//! Whether the slots of a chain's packets may go from worker to worker while it runs.

use catena_compile::Host;
use catena_compile::host::Lowered;

use crate::Failure;
use crate::names::Names;
use crate::ports::Ports;

/// Check that this chain on these ports can be run so that slots move.
///
/// # Errors
/// Why it cannot.
pub fn check(host: &Host, ports: &Ports, workers: usize, names: &Names) -> Result<(), Failure> {
    let name = names.rebalance;
    if workers < 2 {
        return Err(format!("{name}: there is one worker; take several: `{} 2`", names.workers).into());
    }
    if !ports.is_live() {
        let why = "an interface on one side at least, or generated with `time=wall`; what is recorded and written to files goes through in order";
        return Err(format!("{name}: it is for traffic by the wall's time: {why}").into());
    }
    if !host.cuts.is_empty() {
        // A packet that waits there is neither held nor brought through before its slot goes.
        return Err(format!(
            "{name}: the plan has queues between its tasks, where packets of a slot that goes would be left"
        )
        .into());
    }
    let functions = host.modules.iter().filter_map(|module| match &module.kind {
        Lowered::Function { descriptor, args, .. } => Some((&module.name, descriptor, args)),
        _ => None,
    });
    let mut rewrites: Option<&str> = None;
    for (module, descriptor, args) in functions {
        if let Err(why) = (descriptor.moves)(args) {
            return Err(format!("{name}: {module}: {why}").into());
        }
        if let Some(before) = rewrites.filter(|_| descriptor.owner.is_some()) {
            let why = "the addresses that one gives to several hosts would be one host to the other";
            return Err(format!("{name}: there are two NATs, {before} and {module}: {why}").into());
        }
        rewrites = rewrites.or(descriptor.owner.map(|_| &**module));
    }
    Ok(())
}
