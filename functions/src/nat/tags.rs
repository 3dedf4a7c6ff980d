//! VLAN tags: addresses of different VLANs are different addresses.

use catena_packet::wire::Layers;
use catena_packet::wire::number::ethertype;

/// The VLAN that a packet comes in, 24 bits; 0 without one.
pub type Vlan = u32;

/// Length of an EtherType that announces a tag, and of the tag's priority and identifier, in bytes.
const TAG: usize = 4;
/// Where the first one stands, behind two station addresses.
const FIRST: usize = 12;

/// Return the VLAN of a frame: a customer's identifier below, a service's above it (IEEE 802.1ad). A tag that has a
/// priority alone (identifier 0) names none. `None` where more than two name one.
#[inline]
pub fn vlan(frame: &[u8], layers: &Layers) -> Option<Vlan> {
    if !layers.has(Layers::VLAN) {
        return Some(0);
    }
    let (tags, _) = frame.get(FIRST..usize::from(layers.l3).checked_sub(2)?)?.as_chunks::<TAG>();
    let mut vlan = 0;
    let mut count = 0;
    for &[kind, of_kind, control, below] in tags {
        let id = u32::from(control & 0xf) << 8 | u32::from(below);
        if id == 0 {
            continue;
        }
        let is_customer = u16::from_be_bytes([kind, of_kind]) == ethertype::VLAN;
        vlan = match count {
            0 if is_customer => id,
            0 => id << 12,
            // The second is the customer's, whatever type the first has.
            1 if vlan >> 12 == 0 => vlan << 12 | id,
            1 => vlan | id,
            _ => return None,
        };
        count += 1;
    }
    Some(vlan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::craft;
    use catena_packet::wire::parse;

    #[test]
    fn tags_are_told_apart_by_identifier_place_and_kind() {
        let of = |tags: &[&str]| {
            let mut line = "udp 10.0.0.1:5 > 192.0.2.9:5".to_owned();
            tags.iter().rev().for_each(|tag| line = format!("tag {tag} {{ {line} }}"));
            let frame = craft(&line);
            vlan(&frame, &parse(&frame).unwrap())
        };
        assert_eq!(of(&[]), Some(0));
        assert_eq!(of(&["8100:10"]), Some(10));
        assert_eq!(of(&["88a8:10"]), Some(10 << 12));
        assert_eq!(of(&["88a8:10", "8100:4094"]), Some(10 << 12 | 4094));
        // Before IEEE 802.1ad both had one type, or others.
        assert_eq!(of(&["8100:10", "8100:20"]), of(&["88a8:10", "8100:20"]));
        assert_eq!(of(&["9100:10", "8100:20"]), of(&["88a8:10", "8100:20"]));
        assert_ne!(of(&["88a8:20", "8100:10"]), of(&["88a8:10", "8100:20"]));
        // Identifier 0 is a priority alone.
        assert_eq!(of(&["8100:0"]), Some(0));
        assert_eq!(of(&["88a8:10", "8100:0"]), of(&["88a8:10"]));
        assert_eq!(of(&["8100:0", "8100:10"]), of(&["8100:10"]));
        assert_eq!(of(&["88a8:10", "8100:20", "8100:30"]), None);
        assert_eq!(of(&["88a8:10", "8100:0", "8100:20", "8100:0"]), of(&["88a8:10", "8100:20"]));
    }
}
