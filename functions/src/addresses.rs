//! Ranges of addresses, and the prefixes that they are written as.

use std::net::IpAddr;

/// Return the first and the last address of a prefix, whatever bits stand behind its length.
pub fn range(address: IpAddr, length: u8) -> (IpAddr, IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            (IpAddr::V4((address.to_bits() & !mask).into()), IpAddr::V4((address.to_bits() | mask).into()))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shr(length.into()).unwrap_or(0);
            (IpAddr::V6((address.to_bits() & !mask).into()), IpAddr::V6((address.to_bits() | mask).into()))
        }
    }
}

/// Return the prefixes that cover a range of addresses of one family exactly.
pub fn prefixes(first: IpAddr, last: IpAddr) -> Vec<(IpAddr, u8)> {
    let (mut at, last, width) = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (u128::from(first.to_bits()), u128::from(last.to_bits()), 32),
        (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits(), last.to_bits(), 128),
        _ => return Vec::new(),
    };
    let mut cover = Vec::new();
    while at <= last {
        let aligned = at.trailing_zeros().min(width - 1);
        let fits = (last - at + 1).ilog2();
        let bits = aligned.min(fits);
        let address =
            if width == 32 { IpAddr::from((at as u32).to_be_bytes()) } else { IpAddr::from(at.to_be_bytes()) };
        cover.push((address, (width - bits) as u8));
        match at.checked_add(1 << bits) {
            Some(next) => at = next,
            None => break,
        }
    }
    cover
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_range() {
        let of = |address: &str, length| {
            let (first, last) = range(address.parse().unwrap(), length);
            format!("{first} {last}")
        };
        assert_eq!(of("10.1.2.3", 8), "10.0.0.0 10.255.255.255");
        assert_eq!(of("10.1.2.3", 32), "10.1.2.3 10.1.2.3");
        assert_eq!(of("10.1.2.3", 0), "0.0.0.0 255.255.255.255");
        assert_eq!(of("2001:db8::7", 64), "2001:db8:: 2001:db8::ffff:ffff:ffff:ffff");
        assert_eq!(of("2001:db8::7", 128), "2001:db8::7 2001:db8::7");
    }

    #[test]
    fn a_range_is_covered_exactly() {
        let cover = |first: &str, last: &str| {
            let prefixes = prefixes(first.parse().unwrap(), last.parse().unwrap());
            prefixes.iter().map(|(a, n)| format!("{a}/{n}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cover("10.0.0.0", "10.0.0.255"), "10.0.0.0/24");
        assert_eq!(cover("10.0.0.1", "10.0.0.4"), "10.0.0.1/32 10.0.0.2/31 10.0.0.4/32");
        assert_eq!(cover("255.255.255.254", "255.255.255.255"), "255.255.255.254/31");
        assert_eq!(cover("2001:db8::1", "2001:db8::3"), "2001:db8::1/128 2001:db8::2/127");
    }
}
