//! What is read from a header and written into an empty buffer gives the header again, but for its reserved bits.

use catena_packet::wire::{arp, ethernet, gre, icmpv4, icmpv6, ipv4, ipv6, nsh, sctp, tcp, udp, vlan, vxlan};

/// Rewrite `bytes` as each protocol that accepts them.
pub fn rewrites(bytes: &[u8]) {
    let empty = || vec![0; bytes.len()];
    if let Ok(from) = ethernet::Packet::new_checked(bytes) {
        let mut to = ethernet::Packet::new_unchecked(empty());
        to.set_dst(from.dst());
        to.set_src(from.src());
        to.set_ethertype(from.ethertype());
        to.payload_mut().copy_from_slice(from.payload());
        assert_eq!(to.into_inner(), bytes);
    }
    if let Ok(from) = vlan::Packet::new_checked(bytes) {
        let mut to = vlan::Packet::new_unchecked(empty());
        to.set_control(from.id(), from.priority(), from.drop_eligible());
        to.set_ethertype(from.ethertype());
        to.payload_mut().copy_from_slice(from.payload());
        assert_eq!(to.into_inner(), bytes);
    }
    if let Ok(from) = arp::Packet::new_checked(bytes)
        && let Some([sender, target]) = from.ethernet_ipv4()
    {
        let mut to = arp::Packet::new_unchecked(empty());
        to.set_ethernet_ipv4(from.operation(), sender, target);
        assert_eq!(to.into_inner()[..from.len()], bytes[..from.len()]);
    }
    rewrites_network(bytes);
    rewrites_upper(bytes);
    rewrites_tunnels(bytes);
}

fn rewrites_network(bytes: &[u8]) {
    if let Ok(from) = ipv4::Packet::new_checked(bytes) {
        let total = usize::from(from.total_len());
        let mut to = ipv4::Packet::new_unchecked(vec![0; total]);
        to.set_header_len(from.header_len());
        to.set_tos(from.tos());
        to.set_total_len(from.total_len());
        to.set_ident(from.ident());
        to.set_fragment(from.dont_fragment(), from.more_fragments(), from.fragment_offset());
        to.set_ttl(from.ttl());
        to.set_proto(from.proto());
        to.set_checksum(from.checksum());
        to.set_src(from.src());
        to.set_dst(from.dst());
        to.options_mut().copy_from_slice(&from.header()[ipv4::HEADER_LEN..]);
        to.payload_mut().copy_from_slice(from.payload());
        let mut expected = bytes[..total].to_vec();
        expected[6] &= 0x7f;
        assert_eq!(to.clone().into_inner(), expected);
        to.fill_checksum();
        assert!(to.verify_checksum());
    }
    if let Ok(from) = ipv6::Packet::new_checked(bytes) {
        let total = ipv6::HEADER_LEN + usize::from(from.payload_len());
        let mut to = ipv6::Packet::new_unchecked(vec![0; total]);
        to.set_class_and_label(from.traffic_class(), from.flow_label());
        to.set_payload_len(from.payload_len());
        to.set_next_header(from.next_header());
        to.set_hop_limit(from.hop_limit());
        to.set_src(from.src());
        to.set_dst(from.dst());
        to.payload_mut().copy_from_slice(from.payload());
        assert_eq!(to.into_inner(), bytes[..total]);
    }
}

fn rewrites_upper(bytes: &[u8]) {
    const PSEUDO: u16 = 0x1234;
    let empty = || vec![0; bytes.len()];
    if let Ok(from) = tcp::Packet::new_checked(bytes) {
        let mut to = tcp::Packet::new_unchecked(empty());
        to.set_src_port(from.src_port());
        to.set_dst_port(from.dst_port());
        to.set_seq(from.seq());
        to.set_ack(from.ack());
        to.set_header_len(from.header_len());
        to.set_flags(from.flags());
        to.set_window(from.window());
        to.set_checksum(from.checksum());
        to.set_urgent(from.urgent());
        to.options_mut().copy_from_slice(&bytes[tcp::HEADER_LEN..from.header_len()]);
        to.payload_mut().copy_from_slice(from.payload());
        let mut expected = bytes.to_vec();
        expected[12] &= 0xf0;
        assert_eq!(to.clone().into_inner(), expected);
        to.fill_checksum(PSEUDO);
        assert!(to.verify_checksum(PSEUDO));
    }
    if let Ok(from) = udp::Packet::new_checked(bytes) {
        let length = usize::from(from.length());
        let mut to = udp::Packet::new_unchecked(vec![0; length]);
        to.set_src_port(from.src_port());
        to.set_dst_port(from.dst_port());
        to.set_length(from.length());
        to.set_checksum(from.checksum());
        to.payload_mut().copy_from_slice(from.payload());
        assert_eq!(to.clone().into_inner(), bytes[..length]);
        to.fill_checksum(PSEUDO);
        assert!(to.verify_checksum(PSEUDO) && to.checksum() != 0);
    }
    if let Ok(from) = icmpv4::Packet::new_checked(bytes) {
        let mut to = icmpv4::Packet::new_unchecked(empty());
        to.set_kind(from.kind(), from.code());
        to.set_checksum(from.checksum());
        to.set_rest(from.rest());
        to.payload_mut().copy_from_slice(from.payload());
        assert_eq!(to.clone().into_inner(), bytes);
        to.fill_checksum();
        assert!(to.verify_checksum() || bytes.iter().all(|&byte| byte == 0));
    }
    if let Ok(from) = icmpv6::Packet::new_checked(bytes) {
        let mut to = icmpv6::Packet::new_unchecked(empty());
        to.set_kind(from.kind(), from.code());
        to.set_checksum(from.checksum());
        to.body_mut().copy_from_slice(from.body());
        assert_eq!(to.clone().into_inner(), bytes);
        to.fill_checksum(PSEUDO);
        assert!(to.verify_checksum(PSEUDO));
    }
    if let Ok(from) = sctp::Packet::new_checked(bytes) {
        let mut to = sctp::Packet::new_unchecked(bytes.to_vec());
        to.set_src_port(from.src_port());
        to.set_dst_port(from.dst_port());
        to.set_verification_tag(from.verification_tag());
        assert_eq!(to.into_inner(), bytes);
    }
}

fn rewrites_tunnels(bytes: &[u8]) {
    let empty = || vec![0; bytes.len()];
    if let Ok(from) = gre::Packet::new_checked(bytes) {
        let mut to = gre::Packet::new_unchecked(empty());
        let has_checksum = from.checksum().is_some();
        to.set_words(has_checksum, from.key().is_some(), from.sequence().is_some());
        to.set_protocol(from.protocol());
        to.set_key(from.key().unwrap_or(0));
        to.set_sequence(from.sequence().unwrap_or(0));
        to.payload_mut().copy_from_slice(from.payload());
        to.fill_checksum();
        let to = gre::Packet::new_checked(to.into_inner()).expect("what was written is a packet");
        assert!(to.verify_checksum());
        assert_eq!((to.protocol(), to.key(), to.sequence()), (from.protocol(), from.key(), from.sequence()));
        assert_eq!((to.payload(), to.checksum().is_some()), (from.payload(), has_checksum));
    }
    if let Ok(from) = vxlan::Packet::new_checked(bytes) {
        let mut to = vxlan::Packet::new_unchecked(empty());
        to.set_network(from.network());
        to.payload_mut().copy_from_slice(from.payload());
        let expected = [&[8, 0, 0, 0], &bytes[4..7], &[0], from.payload()].concat();
        assert_eq!(to.into_inner(), expected);
    }
    if let Ok(from) = nsh::Packet::new_checked(bytes) {
        let mut to = nsh::Packet::new_unchecked(empty());
        to.set_base(from.metadata_type(), from.metadata().len(), from.next_protocol(), from.ttl());
        to.set_path(from.path(), from.index());
        to.metadata_mut().copy_from_slice(from.metadata());
        to.payload_mut().copy_from_slice(from.payload());
        let mut expected = bytes.to_vec();
        expected[0] &= 0x0f;
        expected[2] &= 0x0f;
        assert_eq!(to.into_inner(), expected);
    }
}
