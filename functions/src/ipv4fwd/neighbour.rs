//! Who stands behind a next hop's address: station addresses, as a table of neighbours gives them.

use std::collections::HashMap;
use std::net::IpAddr;

use catena_packet::wire::ethernet::Mac;

use crate::config::{ArgError, Args, Value};

/// What [`mac`] accepts, in words.
pub(super) const MAC: &str = "the address of one station such as 02:00:00:00:00:01";

/// Reads a station's address: six pairs of hexadecimal digits. Not one of a group.
///
/// RFC 1812 §3.3.2: "A router MUST not believe any ARP reply that claims that the Link Layer address of
/// another host or router is a broadcast or multicast address."
pub(super) fn mac(text: &str) -> Option<Mac> {
    let mut bytes = [0; 6];
    let mut pairs = text.split(':');
    for byte in &mut bytes {
        let pair = pairs.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    let mac = Mac(bytes);
    (pairs.next().is_none() && !mac.is_multicast() && bytes != [0; 6]).then_some(mac)
}

/// Reads the argument `mac`.
pub(super) fn own(args: &Args) -> Result<Option<Mac>, ArgError> {
    args.get("mac").map(|value| station("mac", value)).transpose()
}

/// Reads the argument `neighbours`.
pub(super) fn table(args: &Args) -> Result<HashMap<IpAddr, Mac>, ArgError> {
    let pairs = match args.get("neighbours") {
        None => &[][..],
        Some(Value::Record(pairs)) => pairs,
        Some(_) => return Err(ArgError::new("neighbours", "expected a record of addresses").help(EXAMPLE)),
    };
    let mut table = HashMap::with_capacity(pairs.len());
    for (address, station_value) in pairs {
        let Ok(address) = address.parse() else {
            let found = format!("expected the address of a next hop, found `{address}`");
            return Err(ArgError::new("neighbours", found).help(EXAMPLE));
        };
        table.insert(address, station("neighbours", station_value)?);
    }
    Ok(table)
}

const EXAMPLE: &str = "for example {\"192.0.2.1\": \"02:00:00:00:00:01\"}";

fn station(param: &str, value: &Value) -> Result<Mac, ArgError> {
    let text = value.as_text().unwrap_or_default();
    mac(text).ok_or_else(|| ArgError::new(param, format!("expected {MAC}, found `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_and_nothing_else() {
        assert_eq!(mac("02:0a:Ff:00:00:01"), Some(Mac([2, 10, 255, 0, 0, 1])));
        let wrong = ["", "02", "02:00:00:00:00", "02:00:00:00:00:01:02", "2:0:0:0:0:1", "02:00:00:00:00:+1"];
        assert!(wrong.into_iter().all(|text| mac(text).is_none()));
        let groups = ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"];
        assert!(groups.into_iter().all(|text| mac(text).is_none()));
    }
}
