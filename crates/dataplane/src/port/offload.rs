//! What a sender left for its interface to do, done in software: checksums and VLAN tags.

use catena_packet::Packet;
use catena_packet::wire::number::proto;
use catena_packet::wire::{checksum, parse};

/// Complete the checksum over `frame[start..]`, whose field is `offset` bytes on and holds the sum of the
/// pseudo header. Returns whether the field is inside the frame.
#[must_use]
pub(super) fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    const SCTP_FIELD: usize = 8;
    let Some(covered) = frame.get(start..) else { return false };
    if !offset.is_multiple_of(2) || covered.len() < offset + 2 {
        return false;
    }
    if offset == SCTP_FIELD
        && covered.len() >= SCTP_FIELD + 4
        && parse(frame).is_ok_and(|layers| layers.proto == proto::SCTP && usize::from(layers.l4) == start)
    {
        let covered = &mut frame[start..];
        covered[SCTP_FIELD..][..4].fill(0);
        // RFC 9260 appendix A: the bytes of the CRC go out lowest first.
        let check = crc32c(covered).to_le_bytes();
        covered[SCTP_FIELD..][..4].copy_from_slice(&check);
        return true;
    }
    // As UDP needs it (RFC 768), and for the others the two zeros are the same.
    let check = checksum::udp_nonzero(!checksum::sum(covered));
    frame[start + offset..][..2].copy_from_slice(&check.to_be_bytes());
    true
}

/// Put a VLAN tag (type and control information) behind the addresses. Returns whether there was room.
#[must_use]
pub(super) fn put_tag(packet: &mut Packet, tag: [u8; 4]) -> bool {
    const ADDRESSES: usize = 12;
    if packet.len() < ADDRESSES || !packet.push_front(&tag) {
        return false;
    }
    let data = packet.data_mut();
    data.copy_within(4..4 + ADDRESSES, 0);
    data[ADDRESSES..][..4].copy_from_slice(&tag);
    true
}

/// The CRC of SCTP (Castagnoli's polynomial, reflected), a byte at a time: SCTP is rare.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut n = 0;
        while n < 256 {
            let (mut crc, mut bit) = (n as u32, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[n] = crc;
            n += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use catena_packet::Depot;

    use super::*;

    #[test]
    fn a_partial_checksum_is_completed() {
        // ICMPv6-like: a field of two bytes, two on, that holds a pseudo header's sum.
        let mut frame = [0u8; 40];
        frame[20..].copy_from_slice(&[7; 20]);
        frame[22..24].copy_from_slice(&0x1234u16.to_be_bytes());
        let whole = checksum::sum(&frame[20..]);
        assert!(complete_checksum(&mut frame, 20, 2));
        let stored = u16::from_be_bytes([frame[22], frame[23]]);
        assert_eq!(stored, !whole);
    }

    #[test]
    fn a_zero_checksum_is_sent_as_ones() {
        let mut frame = [0u8; 10];
        frame[2..4].copy_from_slice(&[0xff, 0xff]);
        assert!(complete_checksum(&mut frame, 2, 6));
        assert_eq!(frame[8..], [0xff, 0xff]);
    }

    #[test]
    fn a_field_outside_the_frame_is_refused() {
        let mut frame = [0u8; 40];
        for (start, offset) in [(41, 0), (40, 0), (30, 10), (0, 39), (65535, 65535), (20, 3)] {
            assert!(!complete_checksum(&mut frame, start, offset), "{start} {offset}");
        }
    }

    #[test]
    fn sctp_gets_its_crc() {
        // RFC 3720 appendix B.4: 32 bytes of zeros, of ones.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let mut frame = [0u8; 14 + 20 + 16];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[17] = 36;
        frame[23] = proto::SCTP;
        assert!(complete_checksum(&mut frame, 34, 8));
        assert_eq!(frame[42..46], crc32c(&[0; 16]).to_le_bytes());
    }

    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let depot = Depot::map(1, 0).unwrap();
        let mut packet = depot.pool().take(60).unwrap();
        let bytes: Vec<u8> = (0..60).collect();
        packet.fill(&bytes);
        assert!(put_tag(&mut packet, [0x81, 0, 0, 5]));
        assert_eq!(packet.data(), [&bytes[..12], &[0x81, 0, 0, 5], &bytes[12..]].concat());
        packet.truncate(11);
        assert!(!put_tag(&mut packet, [0; 4]));
    }
}
