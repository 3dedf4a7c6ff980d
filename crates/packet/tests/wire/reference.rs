//! A slow, obvious reading of a frame: one header after the other, as the RFCs tell it, with nothing shared with the
//! code under test.

use std::net::IpAddr;

/// What a frame says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// 0 other, 1 ARP, 4, 6: as in the parser.
    pub net: u8,
    pub src: Option<IpAddr>,
    pub dst: Option<IpAddr>,
    pub proto: u8,
    pub tagged: bool,
    /// Options or extension headers.
    pub options: bool,
    pub authenticated: bool,
    pub fragment: bool,
    pub later: bool,
    pub ports: Option<(u16, u16)>,
    /// How many bytes stand before the network header, before the upper layer, before its payload.
    pub l3: usize,
    pub l4: usize,
    pub payload: usize,
}

/// A frame that must be dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bad;

/// Takes headers off the front of what is left.
struct Rest<'a> {
    left: &'a [u8],
    taken: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let (head, left) = self.left.split_at_checked(count).ok_or(Bad)?;
        self.left = left;
        self.taken += count;
        Ok(head)
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, &byte| number * 256 + usize::from(byte))
}

pub fn read(frame: &[u8]) -> Result<Reading, Bad> {
    let mut rest = Rest { left: frame, taken: 0 };
    let mut reading = Reading::default();
    rest.take(12)?;
    let mut ethertype = number(rest.take(2)?);
    for tags in 0.. {
        if ![0x8100, 0x88a8, 0x9100, 0x9200, 0x9300].contains(&ethertype) {
            break;
        }
        if tags == 4 {
            return Err(Bad);
        }
        reading.tagged = true;
        ethertype = number(&rest.take(4)?[2..]);
    }
    reading.l3 = rest.taken;
    match ethertype {
        0x0800 => {
            reading.net = 4;
            read_ipv4(&mut rest, &mut reading)?;
        }
        0x86dd => {
            reading.net = 6;
            read_ipv6(&mut rest, &mut reading)?;
        }
        0x0806 => {
            reading.net = 1;
            reading.l4 = rest.taken;
            reading.payload = rest.taken;
            let head = rest.take(8)?;
            rest.take(2 * usize::from(head[4]) + 2 * usize::from(head[5]))?;
        }
        _ => {
            reading.l4 = rest.taken;
            reading.payload = rest.taken;
        }
    }
    Ok(reading)
}

fn read_ipv4(rest: &mut Rest, reading: &mut Reading) -> Result<(), Bad> {
    let whole = rest.left;
    let head = rest.take(20)?;
    let header = usize::from(head[0] % 16) * 4;
    let total = number(&head[2..4]);
    if head[0] / 16 != 4 || header < 20 || total < header || total > whole.len() {
        return Err(Bad);
    }
    rest.take(header - 20)?;
    rest.left = &whole[header..total];
    let place = number(&head[6..8]) % 0x4000;
    let (more, offset) = (place >= 0x2000, place % 0x2000 * 8);
    reading.src = Some(<[u8; 4]>::try_from(&head[12..16]).unwrap().into());
    reading.dst = Some(<[u8; 4]>::try_from(&head[16..20]).unwrap().into());
    reading.proto = head[9];
    reading.options = header > 20;
    reading.fragment = more || offset > 0;
    reading.later = offset > 0;
    let uneven = more && !rest.left.len().is_multiple_of(8);
    if uneven
        || (reading.fragment && offset + total > 65535)
        || (reading.later && offset < clear_of_headers(4, head[9]))
    {
        return Err(Bad);
    }
    let fragmented = rest.taken;
    reading.l4 = rest.taken;
    while reading.proto == 51 && !reading.later {
        reading.proto = read_authentication(rest)?;
        reading.authenticated = true;
        reading.l4 = rest.taken;
    }
    read_upper(rest, reading, fragmented)
}

/// The least offset at which a later fragment leaves the headers of the first alone.
fn clear_of_headers(net: u8, proto: u8) -> usize {
    match (net, proto) {
        (6, _) | (4, 51) => 128,
        (4, 6) => 20,
        (4, 33 | 132) => 12,
        _ => 8,
    }
}

fn read_ipv6(rest: &mut Rest, reading: &mut Reading) -> Result<(), Bad> {
    let head = rest.take(40)?;
    let length = number(&head[4..6]);
    if head[0] / 16 != 6 || length > rest.left.len() {
        return Err(Bad);
    }
    rest.left = &rest.left[..length];
    reading.src = Some(<[u8; 16]>::try_from(&head[8..24]).unwrap().into());
    reading.dst = Some(<[u8; 16]>::try_from(&head[24..40]).unwrap().into());
    reading.proto = head[6];
    let mut seen = Vec::new();
    let mut fragmented = rest.taken;
    while !reading.later && [0, 43, 44, 51, 60].contains(&reading.proto) {
        if seen.len() == 8 || (reading.proto == 0 && !seen.is_empty()) {
            return Err(Bad);
        }
        if reading.proto == 44 && seen.contains(&44) {
            return Err(Bad);
        }
        seen.push(reading.proto);
        reading.options = true;
        reading.proto = match reading.proto {
            51 => {
                reading.authenticated = true;
                read_authentication(rest)?
            }
            44 => {
                let before = rest.taken - reading.l3 - 40;
                let header = rest.take(8)?;
                let place = number(&header[2..4]);
                let (more, offset) = (place % 2 == 1, place / 8 * 8);
                let uneven = more && !rest.left.len().is_multiple_of(8);
                if uneven || before + offset + rest.left.len() > 65535 {
                    return Err(Bad);
                }
                if offset > 0 && offset < clear_of_headers(6, header[0]) {
                    return Err(Bad);
                }
                fragmented = rest.taken;
                reading.fragment = more || offset > 0;
                reading.later = offset > 0;
                header[0]
            }
            _ => {
                let header = rest.take(2)?;
                rest.take(usize::from(header[1]) * 8 + 6)?;
                header[0]
            }
        };
    }
    reading.l4 = rest.taken;
    read_upper(rest, reading, fragmented)
}

/// Take an authentication header off if it is whole, and say what follows it.
fn read_authentication(rest: &mut Rest) -> Result<u8, Bad> {
    let length = (usize::from(*rest.left.get(1).ok_or(Bad)?) + 2) * 4;
    if length < 12 {
        return Err(Bad);
    }
    Ok(rest.take(length)?[0])
}

/// Read the header of the upper layer; what is fragmented begins at `fragmented`.
fn read_upper(rest: &mut Rest, reading: &mut Reading, fragmented: usize) -> Result<(), Bad> {
    reading.payload = reading.l4;
    if reading.later {
        return Ok(());
    }
    let data = rest.left;
    let smallest = match reading.proto {
        6 => 20,
        17 | 1 | 136 => 8,
        132 | 33 => 12,
        58 => 4,
        _ => 0,
    };
    if data.len() < smallest {
        return Err(Bad);
    }
    let header = match reading.proto {
        6 => usize::from(data[12] / 16) * 4,
        58 => data.len().min(8),
        _ => smallest,
    };
    if header < smallest || header > data.len() {
        return Err(Bad);
    }
    if reading.fragment && rest.taken + header - fragmented > 128 {
        return Err(Bad);
    }
    if reading.proto == 17 {
        let length = number(&data[4..6]);
        if length < 8 || (length > data.len() && !reading.fragment) {
            return Err(Bad);
        }
    }
    if [6, 17, 132].contains(&reading.proto) {
        reading.ports = Some((number(&data[..2]) as u16, number(&data[2..4]) as u16));
    }
    reading.payload += header;
    Ok(())
}
