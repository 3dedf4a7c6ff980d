//! Flow records as lines of JSON, with the names of Zeek's `conn.log` where it has one.

use std::io::{self, Write};

use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{ACK, CWR, ECE, FIN, PSH, RST, SYN, URG};

use super::export::Record;
use super::flow::End;

/// Write one line.
pub(super) fn write(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let Record { key, flow, end } = record;
    let (orig, resp) = (flow.origin(), 1 - flow.origin());
    let key = if orig == 0 { key.flow_key() } else { key.flow_key().reverse() };
    let (src, dst) = (key.src(), key.dst());
    write!(
        out,
        "{{\"ts\":{},\"id.orig_h\":\"{}\",\"id.orig_p\":{},\"id.resp_h\":\"{}\",\"id.resp_p\":{},\"proto\":\"{}\",\
         \"ip_proto\":{},\"duration\":{},\"conn_state\":\"{}\",\"orig_pkts\":{},\"orig_ip_bytes\":{},\"resp_pkts\":{},\
         \"resp_ip_bytes\":{}",
        Seconds(flow.first),
        src.ip(),
        src.port(),
        dst.ip(),
        dst.port(),
        proto_name(key.proto()),
        key.proto(),
        Seconds(flow.last - flow.first),
        state(key.proto(), flow.flags[orig], flow.flags[resp], flow.packets[resp] > 0),
        flow.packets[orig],
        flow.bytes[orig],
        flow.packets[resp],
        flow.bytes[resp],
    )?;
    if key.proto() == proto::TCP {
        let (orig, resp) = (Flags(flow.flags[orig]), Flags(flow.flags[resp]));
        write!(out, ",\"orig_tcp_flags\":\"{orig}\",\"resp_tcp_flags\":\"{resp}\"")?;
    }
    if flow.rtt > 0 {
        write!(out, ",\"tcp_rtt\":{}", Seconds(u64::from(flow.rtt) * 1000))?;
    }
    writeln!(out, ",\"end\":\"{}\"}}", end_name(*end))
}

/// ns as seconds, to the microsecond.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1000)
    }
}

/// TCP flags by their first letters, `C` for CWR and `E` for ECE.
struct Flags(u8);

impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, 'A'), (URG, 'U'), (ECE, 'E'), (CWR, 'C')];
        names.iter().filter(|(bit, _)| self.0 & bit != 0).try_for_each(|(_, name)| write!(f, "{name}"))
    }
}

fn proto_name(number: u8) -> &'static str {
    match number {
        proto::TCP => "tcp",
        proto::UDP => "udp",
        proto::ICMP | proto::ICMPV6 => "icmp",
        proto::SCTP => "sctp",
        _ => "unknown_transport",
    }
}

const fn end_name(end: End) -> &'static str {
    match end {
        End::Idle => "idle",
        End::Active => "active",
        End::Closed => "closed",
        End::Forced => "forced",
        End::Evicted => "evicted",
    }
}

/// Zeek's `conn_state`, as far as flags tell.
fn state(number: u8, orig: u8, resp: u8, answered: bool) -> &'static str {
    if number != proto::TCP {
        return if answered { "SF" } else { "S0" };
    }
    let (began, accepted) = (orig & SYN != 0, resp & SYN != 0);
    match (began, accepted) {
        (true, true) if orig & RST != 0 => "RSTO",
        (true, true) if resp & RST != 0 => "RSTR",
        (true, true) => match (orig & FIN != 0, resp & FIN != 0) {
            (true, true) => "SF",
            (true, false) => "S2",
            (false, true) => "S3",
            (false, false) => "S1",
        },
        (true, false) if resp & RST != 0 => "REJ",
        (true, false) if orig & RST != 0 => "RSTOS0",
        (true, false) if orig & FIN != 0 => "SH",
        (true, false) if !answered => "S0",
        (false, true) if resp & RST != 0 => "RSTRH",
        (false, true) if resp & FIN != 0 => "SHR",
        _ => "OTH",
    }
}
