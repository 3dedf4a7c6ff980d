//! Addresses by which packets on the way back show which function turned their flow round: a NAT's pool, the servers of a balancer.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network: its address and how many bits of it count, written as `198.51.100.0/28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// A network; None: the address has fewer bits.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (length <= bits).then_some(Prefix { address, length })
    }

    /// Its address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits of the address count.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let parts =
            text.split_once('/').and_then(|(address, length)| Some((address.parse().ok()?, length.parse().ok()?)));
        let prefix = parts.and_then(|(address, length)| Prefix::new(address, length));
        prefix.ok_or_else(|| format!("`{text}` is not a network such as 198.51.100.0/28"))
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Prefix, String> {
        text.parse()
    }
}

/// A packet on the way back is one of these if it is sent to one of the destinations, or comes from one of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Returns {
    /// Networks that they are sent to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Prefix>,
    /// Networks that they come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Prefix>,
}

impl Returns {
    /// Whether nothing is known by its addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty() && self.sources.is_empty()
    }

    /// Add those of another function.
    pub fn extend(&mut self, other: Returns) {
        self.destinations.extend(other.destinations);
        self.sources.extend(other.sources);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_as_people_write_them() {
        for text in ["198.51.100.0/28", "0.0.0.0/0", "2001:db8::/128"] {
            let prefix: Prefix = text.parse().unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(prefix.to_string(), text);
            let json = serde_json::to_string(&prefix).expect("JSON");
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Prefix>(&json).expect("a network"), prefix);
        }
        for text in ["198.51.100.0", "198.51.100.0/33", "2001:db8::/129", "a/8", "10.0.0.0/-1", "/8", "10.0.0.0/256"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
