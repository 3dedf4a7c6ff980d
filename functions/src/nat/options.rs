//! What NAT is configured with, checked.

use std::net::IpAddr;

use super::family::Translate;
use super::mapping::{State, Timeouts};
use super::sessions::Filtering;
use super::space::Space;
use crate::addresses;
use crate::config::{ArgError, Args, Value};
use crate::family::{V4, V6};
use catena_state::Share;
use catena_state::value::ports::MOST_PORTS;

const SECOND: u64 = 1_000_000_000;
/// Most blocks of ports: a pool keeps four bytes of each.
const MOST_BLOCKS: u64 = 1 << 22;
/// Addresses taken of an IPv6 prefix.
const MOST_OF_PREFIX: u32 = 256;
/// Most mappings without `max_mappings`.
const USUAL_MAPPINGS: u64 = 1 << 22;

/// Limits and timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which packets from outside are let in.
    pub filtering: Filtering,
    /// How long mappings live unused.
    pub timeouts: Timeouts,
    /// Most mappings of a family, of all instances together.
    pub max_mappings: u64,
    /// Most ports of an inside address; 0 for any number.
    pub max_per_host: u32,
}

impl Options {
    /// Read them, for instances of which this is one.
    pub fn read(args: &Args, share: Share) -> Result<Self, ArgError> {
        let filtering = match args.text("filtering", "independent") {
            "address" => Filtering::Address,
            "address_port" => Filtering::AddressPort,
            _ => Filtering::Independent,
        };
        let mut timeouts = Timeouts([u64::MAX; 8]);
        // RFC 4787 REQ-5, RFC 5382 REQ-5, RFC 5508 REQ-2: what a timeout must not be less than, and the default.
        for (name, states, least, usual) in [
            ("udp_timeout", &[State::Udp][..], 120, 300),
            ("tcp_timeout", &[State::Established, State::Doubtful], 7440, 7440),
            ("tcp_transitory", &[State::Opening, State::Answered, State::Closing], 240, 240),
            ("icmp_timeout", &[State::Icmp], 60, 60),
        ] {
            let timeout = args.duration(name, usual * SECOND);
            if timeout == 0 {
                let message = "a mapping that lives for no time translates nothing";
                return Err(ArgError::new(name, message).help(format!("RFCs ask for at least {least}s")));
            }
            states.iter().for_each(|state| timeouts.0[*state as usize] = timeout);
        }
        Ok(Options {
            filtering,
            timeouts,
            max_mappings: args.total("max_mappings", USUAL_MAPPINGS, 1..=1 << 28, share)?,
            max_per_host: args.integer("max_per_host", 0, 0..=u64::from(u32::MAX))? as u32,
        })
    }
}

/// The external endpoints of both families.
pub struct Spaces {
    /// Of IPv4.
    pub v4: Option<Space<V4>>,
    /// Of IPv6.
    pub v6: Option<Space<V6>>,
}

impl Spaces {
    /// Read them, for instances of which this is one.
    pub fn read(args: &Args, share: Share) -> Result<Self, ArgError> {
        let ports = args.get("ports").map_or(Some((1024, 65535)), Value::as_range);
        let ports = ports.filter(|(first, last)| first <= last && *first >= 1 && *last <= 65535);
        let Some((first, last)) = ports else {
            return Err(ArgError::new("ports", "expected first and last port, 1 to 65535").help("try 1024-65535"));
        };
        let ports = (first as u16, last as u16);
        let block = args.integer("block", 64, 0..=u64::from(MOST_PORTS))?.max(1) as u16;
        if u64::from(block) > last - first + 1 {
            return Err(ArgError::new("block", "a block has more ports than an address").help("widen `ports`"));
        }
        let blocks = (last - first + 1) / u64::from(block);
        if blocks < u64::from(share.count) {
            let message =
                format!("an address has {blocks} blocks of ports, less than one for each of {} workers", share.count);
            return Err(ArgError::new("block", message).help("take a smaller `block`, more `ports` or fewer workers"));
        }
        let pool = args.require("pool")?.as_list().iter().map(run).collect::<Result<Vec<_>, _>>()?;
        if pool.is_empty() {
            return Err(ArgError::new("pool", "has no address"));
        }
        Ok(Spaces { v4: space(&pool, ports, block)?, v6: space(&pool, ports, block)? })
    }
}

/// Return first and last address, if packets may come from them and all between.
fn usable<F: Translate>(first: F::Address, last: F::Address) -> Result<(F::Address, F::Address), ArgError> {
    match F::unusable(first, last) {
        Some(what) => Err(ArgError::new("pool", format!("has {what}, which no router forwards"))
            .help("take addresses that are routed to this NAT")),
        None => Ok((first, last)),
    }
}

/// Return the external endpoints of one family, if the pool has addresses of it.
fn space<F: Translate>(pool: &[(IpAddr, IpAddr)], ports: (u16, u16), block: u16) -> Result<Option<Space<F>>, ArgError> {
    let runs = pool.iter().filter_map(|(first, last)| F::address(*first).zip(F::address(*last)));
    let runs = runs.map(|(first, last)| usable::<F>(first, last)).collect::<Result<_, _>>()?;
    let space = Space::new(runs, ports, block);
    match &space {
        Some(space) if u64::from(space.grid.addresses) * u64::from(space.grid.blocks) > MOST_BLOCKS => {
            let message = format!("has more than {MOST_BLOCKS} blocks of ports");
            Err(ArgError::new("pool", message).help("take fewer addresses or a larger `block`"))
        }
        _ => Ok(space),
    }
}

/// Return first and last address of one entry of the pool.
pub fn run(value: &Value) -> Result<(IpAddr, IpAddr), ArgError> {
    if let Value::AddressRange(first, last) = *value {
        let count = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => u128::from(last.to_bits()).checked_sub(first.to_bits().into()),
            (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits().checked_sub(first.to_bits()),
            _ => return Err(ArgError::new("pool", "a range from one family to another")),
        };
        return match count {
            None => Err(ArgError::new("pool", "a range that ends before it begins").help("swap its addresses")),
            Some(count) if count >= 1 << 16 => {
                Err(ArgError::new("pool", "a range of more than 65536 addresses").help("take fewer"))
            }
            Some(_) => Ok((first, last)),
        };
    }
    let Some((address, length)) = value.as_prefix() else {
        return Err(ArgError::new("pool", "expected a prefix, an address, a range of addresses, or a list of these"));
    };
    let (first, last) = addresses::range(address, length);
    match (first, last) {
        (IpAddr::V4(_), _) if length < 16 => {
            Err(ArgError::new("pool", "a prefix of more than 65536 addresses").help("/16 is the largest"))
        }
        // RFC 4291 §2.6.1: the first address of a subnet is its routers' anycast address.
        (IpAddr::V6(first), IpAddr::V6(last)) if first != last => {
            let last = last.to_bits().min(first.to_bits().saturating_add(u128::from(MOST_OF_PREFIX)));
            Ok((IpAddr::V6((first.to_bits() + 1).into()), IpAddr::V6(last.into())))
        }
        _ => Ok((first, last)),
    }
}
