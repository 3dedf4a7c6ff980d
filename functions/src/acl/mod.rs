//! ACL: permits or denies packets by addresses, ports and protocol; the first rule that matches
//! decides.
//!
//! # Rules
//!
//! One rule a line, in words:
//!
//! ```text
//! # the edge: comments begin with a hash and end with the line
//! permit tcp from 10.0.0.0/8 to any port 80-443
//! deny   udp from any port 53 to 2001:db8::/32
//! permit udp to 192.0.2.1 port 123,5060,16384-32767
//! permit icmp
//! deny any
//! ```
//!
//! `ACTION [PROTOCOL] [from ADDRESS [port PORTS]] [to ADDRESS [port PORTS]]`, where at least one
//! word follows the action:
//!
//! - ACTION: `permit` or `deny`.
//! - PROTOCOL: `any`, a name (`tcp`, `udp`, `icmp`, `icmpv6`, `sctp`, `gre`, `esp`, `ah`, `ospf`, …),
//!   a number of 0 to 255, or a range of numbers such as `50-51`.
//! - ADDRESS: `any`, an address, or a network such as `10.0.0.0/8` or `2001:db8::/32`.
//! - PORTS: a port, a range such as `80-443`, or several of these with commas.
//!
//! What is not said matches everything. A rule without addresses applies to IPv4 and IPv6, one with
//! an address to packets of its family only. A rule that asks for a port never matches a packet
//! that carries none, such as a later fragment, an ICMP message or a segment cut short in its
//! ports; `port 0-65535` asks for just that a packet has ports.
//!
//! Mistakes are reported with line, column, what was expected and the likely word.
//!
//! # Rules of iptables
//!
//! What `iptables-save` and `ip6tables-save` print is read too: the chain `FORWARD` of the `filter`
//! table (or another, if named) and the chains it leads to, with `RETURN`, gotos, `!`, `multiport`,
//! `iprange` and the chain's policy. Rules that look at connections, interfaces, rates or flags
//! cannot be said in a list of rules; unless they only log or mark, they are an error that names
//! line and match, or are left out where the user asks for it by the name of the match
//! (`conntrack`, `in-interface`, `tcp-flags`, …). See [`iptables`].
//!
//! # Speed
//!
//! Rules are compiled into search trees ([`classifier`]), and each worker remembers the verdicts of
//! recent flows ([`matcher`]). Cycles per packet on a virtual AMD EPYC (Zen 4, 2.6 GHz), over lists
//! after ClassBench's three families (`cargo bench --bench acl`):
//!
//! | rules | IPv4 new flow | IPv4 known flow | IPv6 new flow | IPv6 known flow |
//! | ---: | ---: | ---: | ---: | ---: |
//! | 100 | 35–47 | 16–18 | 60–79 | 36–39 |
//! | 1,000 | 51–61 | 17–18 | 78–104 | 40–45 |
//! | 10,000 | 76–118 | 18–20 | 146–197 | 48–57 |
//! | 100,000 | 146–247 | 19–21 | 325–490 | 55–63 |
//!
//! Memory stays under 192 bytes a rule for IPv4 and 384 for IPv6, plus 256 KiB each, and 3 MiB per
//! worker for remembered verdicts. Compiling 100,000 rules takes one to three seconds.

mod cache;
pub mod classifier;
pub mod error;
pub mod iptables;
pub mod key;
pub mod matcher;
pub mod parse;
pub mod protocol;
pub mod rule;
pub mod synthetic;
