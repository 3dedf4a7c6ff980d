//! Rules as records, in the spelling of Lemur's published chains: `{'dst_ip': '10.0.0.0/8', 'drop': False}`.

use std::net::IpAddr;

use super::protocol;
use super::rule::{Action, Ports, Prefix, Protocols, Rule};
use crate::Value;
use crate::config::ArgError;

const KEYS: [&str; 6] = ["src_ip", "dst_ip", "src_port", "dst_port", "ip_proto", "drop"];

/// Read a record, which is the `number`-th of the rules, from 1.
///
/// # Errors
/// What is not known, or expected otherwise.
pub fn read(fields: &[(String, Value)], number: u32) -> Result<Rule, ArgError> {
    let mut rule = Rule { line: number, ..Rule::any(Action::Permit) };
    for (key, value) in fields {
        let expected = match key.as_str() {
            "src_ip" => prefix(value).map(|prefix| rule.src = Some(prefix)).ok_or("a prefix such as '10.0.0.0/8'"),
            "dst_ip" => prefix(value).map(|prefix| rule.dst = Some(prefix)).ok_or("a prefix such as '10.0.0.0/8'"),
            "src_port" => ports(value).map(|ports| rule.sport = Some(ports)).ok_or("a port or a range of ports"),
            "dst_port" => ports(value).map(|ports| rule.dport = Some(ports)).ok_or("a port or a range of ports"),
            "ip_proto" => {
                protocol(value).map(|p| rule.protocols = Protocols::one(p)).ok_or("a protocol: a number or a name")
            }
            "drop" => match value {
                Value::Bool(drop) => {
                    rule.action = if *drop { Action::Deny } else { Action::Permit };
                    Ok(())
                }
                _ => Err("true or false"),
            },
            other => return Err(unknown(other, number)),
        };
        expected
            .map_err(|expected| ArgError::new("rules", format!("number {number}, `{key}`: expected {expected}")))?;
    }
    let families = [rule.src, rule.dst].map(|prefix| prefix.map(|prefix| matches!(prefix, Prefix::V4 { .. })));
    if let [Some(src), Some(dst)] = families
        && src != dst
    {
        let message = format!("number {number}: no packet goes from IPv4 to IPv6 or back: this rule could never match");
        return Err(ArgError::new("rules", message));
    }
    Ok(rule)
}

fn unknown(key: &str, number: u32) -> ArgError {
    let error = ArgError::new("rules", format!("number {number}: a rule has no `{key}`"));
    let near = KEYS.into_iter().min_by_key(|known| strsim::osa_distance(known, key));
    match near.filter(|near| strsim::osa_distance(near, key) <= 2) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("it has {}", KEYS.join(", "))),
    }
}

fn prefix(value: &Value) -> Option<Prefix> {
    let (address, length) = match value.as_prefix() {
        Some(prefix) => prefix,
        None => {
            let text = value.as_text()?;
            let (address, length) = text.split_once('/').map_or((text, None), |(a, length)| (a, Some(length)));
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            (address, length.map_or(Some(most), |length| length.parse().ok())?)
        }
    };
    match address {
        IpAddr::V4(address) => (length <= 32).then(|| Prefix::v4(address.into(), length)),
        IpAddr::V6(address) => (length <= 128).then(|| Prefix::v6(address.into(), length)),
    }
}

fn ports(value: &Value) -> Option<Ports> {
    let (first, last) = match (value.as_range(), value.as_text()) {
        (Some(range), _) => range,
        (None, text) => {
            let text = text?;
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            (first.parse().ok()?, last.parse().ok()?)
        }
    };
    let (first, last) = (u16::try_from(first).ok()?, u16::try_from(last).ok()?);
    (first <= last).then_some(Ports { first, last })
}

fn protocol(value: &Value) -> Option<u8> {
    match value.as_text() {
        Some(text) => protocol::number(text).or_else(|| text.parse().ok()),
        None => u8::try_from(value.as_integer()?).ok(),
    }
}
