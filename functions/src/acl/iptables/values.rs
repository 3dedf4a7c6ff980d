//! The values of options: addresses, networks, ports, protocols.

use std::net::IpAddr;

use super::Family;
use crate::acl::error::{RuleError, Word};
use crate::acl::protocol;
use crate::acl::rule::{Ports, Prefix};

/// An address of the family, as a number.
pub fn address(word: &Word, text: &str, family: Family) -> Result<u128, RuleError> {
    match (text.parse::<IpAddr>(), family) {
        (Ok(IpAddr::V4(a)), Family::V4) => Ok(u32::from(a).into()),
        (Ok(IpAddr::V6(a)), Family::V6) => Ok(a.into()),
        (_, Family::V4) => Err(word.unexpected("an IPv4 address such as `10.0.0.0/8`")),
        (_, Family::V6) => Err(word.unexpected("an IPv6 address such as `2001:db8::/32`")),
    }
}

/// A network: an address, alone, with a length or with a netmask.
pub fn prefix(word: &Word, text: &str, family: Family) -> Result<Prefix, RuleError> {
    let (host, mask) = text.split_once('/').unwrap_or((text, ""));
    let host = address(word, host, family)?;
    let bits: u8 = match family {
        Family::V4 => 32,
        Family::V6 => 128,
    };
    let length = match mask.parse::<u8>() {
        _ if mask.is_empty() && !text.contains('/') => bits,
        Ok(length) if length <= bits => length,
        _ => {
            // A netmask; its ones must stand together.
            let mask = address(word, mask, family)? << (128 - u32::from(bits));
            if mask.leading_ones() + mask.trailing_zeros().min(128) < 128 {
                return Err(word.error("a netmask with gaps cannot be expressed as a network"));
            }
            mask.leading_ones() as u8
        }
    };
    Ok(match family {
        Family::V4 => Prefix::v4(host as u32, length),
        Family::V6 => Prefix::v6(host, length),
    })
}

/// Ports: numbers and ranges such as `80:443`, with commas between.
pub fn ports(word: &Word) -> Result<Vec<Ports>, RuleError> {
    let mut ranges = Vec::new();
    for item in word.text.split(',') {
        let (first, last) = item.split_once(':').unwrap_or((item, item));
        let number = |text: &str, open: u16| match text {
            "" if item.contains(':') => Ok(open),
            text => text.parse().map_err(|_| word.unexpected("ports such as `80`, `80:443` or `80,443`")),
        };
        let range = Ports { first: number(first, 0)?, last: number(last, u16::MAX)? };
        if range.first > range.last {
            return Err(word.error(format!("the range `{item}` is empty")));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// A protocol by name or number; 0 is all of them.
pub fn protocol(word: &Word) -> Result<u8, RuleError> {
    Ok(match word.text.parse::<u8>() {
        Ok(number) => number,
        Err(_) if word.text.eq_ignore_ascii_case("all") => 0,
        Err(_) => protocol::number(&word.text).ok_or_else(|| {
            let known = protocol::NAMES.iter().map(|&(name, _)| name);
            word.unexpected("a protocol (a name or 0 to 255)").nearest(&word.text, known)
        })?,
    })
}
