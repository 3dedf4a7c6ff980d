//! The figures of a run as a table for people.

use std::fmt;

use super::{Rebalanced, Report, Totals};
use crate::table::{Table, thousands, time};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(
            &["module", "function", "packets", "dropped", "cycles/packet", "p50", "p99", "why dropped"],
            &[false, false, true, true, true, true, true, false],
        );
        for row in self.modules.iter().filter(|row| row.packets > 0 || row.function.is_some()) {
            let mut why = row.drops.iter().map(|(reason, count)| format!("{reason}: {}", thousands(*count)));
            let latency = |ns: Option<u64>| ns.map_or(String::new(), time);
            table.row([
                row.name.clone(),
                row.function.unwrap_or_default().to_owned(),
                thousands(row.packets),
                thousands(row.drops.values().sum()),
                format!("{:.0}", row.cycles_per_packet),
                latency(row.residence_ns.p50),
                latency(row.residence_ns.p99),
                why.next().unwrap_or_default(),
            ]);
            for more in why {
                let blank = || String::new();
                table.row([blank(), blank(), blank(), blank(), blank(), blank(), blank(), more]);
            }
        }
        write!(f, "{table}")?;
        for row in &self.modules {
            let told: Vec<String> = row
                .gauges
                .iter()
                .filter(|g| g.value > 0)
                .map(|g| format!("{} {}", thousands(g.value), g.name))
                .collect();
            if !told.is_empty() {
                writeln!(f, "{}: {}", row.name, told.join(", "))?;
            }
        }
        for gauge in &self.ports {
            writeln!(f, "{} {}", gauge.name, thousands(gauge.value))?;
        }
        if let Some(Rebalanced { moves, slots, given_up, longest_ns }) = &self.rebalanced {
            let (times, longest) = (if *moves == 1 { "move" } else { "moves" }, time(*longest_ns));
            write!(f, "rebalanced: {} slots in {} {times}", thousands(*slots), thousands(*moves))?;
            if *moves > 0 {
                write!(f, ", their packets waited {longest} at most")?;
            }
            if *given_up > 0 {
                write!(f, "; {} given up", thousands(*given_up))?;
            }
            writeln!(f)?;
        }
        let Totals { packets, .. } = self.input;
        let rate = packets as f64 / self.seconds.max(1e-9) / 1e6;
        writeln!(
            f,
            "\n{} packets in = {} out + {} dropped, in {:.2} s ({rate:.2} Mpps, {:.0} cycles a packet)",
            thousands(packets),
            thousands(self.output.packets),
            thousands(self.dropped),
            self.seconds,
            self.cycles_per_packet,
        )?;
        if let (Some(p50), Some(p99), Some(p999)) = (self.latency_ns.p50, self.latency_ns.p99, self.latency_ns.p999) {
            let [p50, p99, p999] = [p50, p99, p999].map(time);
            writeln!(f, "latency of sampled packets: {p50} at the middle, {p99} at 99%, {p999} at 99.9%")?;
        }
        if let Some(promised) = &self.promised {
            promised.fmt(f)?;
        }
        if let Some(tenants) = &self.tenants {
            tenants.fmt(f)?;
        }
        match &self.planned {
            Some(planned) => planned.fmt(f),
            None => Ok(()),
        }
    }
}
