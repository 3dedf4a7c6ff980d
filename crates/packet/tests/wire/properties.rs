//! What must hold for any bytes whatever: each function takes bytes and panics if it does not. Property tests and
//! fuzzers call the same functions.

use super::reference::{self, Reading};
use catena_packet::wire::{
    FlowKey, FlowKeyV4, FlowKeyV6, Layers, Net, Seed, arp, checksum, ethernet, gre, icmp_identifier, icmpv4, icmpv6,
    ipv4, ipv6, ipv6ext, nsh, parse, parse_ip, ports, sctp, tcp, udp, vlan, vxlan,
};
use std::hint::black_box;

/// The parser reads a frame as the reference does, and a raw IP packet as the frame around it.
pub fn layers_agree(frame: &[u8]) {
    let layers = parse(frame);
    let expected = reference::read(frame);
    assert_eq!(layers.map(|layers| reading(frame, &layers)).map_err(|_| reference::Bad), expected, "{layers:?}");
    let Ok(layers) = layers else { return };
    assert!(u16::from(layers.l3) <= layers.l4 && layers.l4 <= layers.payload);
    assert!(usize::from(layers.payload) <= frame.len());
    if matches!(layers.net, Net::Ipv4 | Net::Ipv6) {
        let end = layers.end(frame).expect("an IP packet has an end");
        assert_eq!(parse(&frame[..end]), Ok(layers), "padding changes nothing");
        let raw = parse_ip(&frame[usize::from(layers.l3)..]).unwrap();
        let shifted = Layers {
            l3: 0,
            l4: layers.l4 - u16::from(layers.l3),
            payload: layers.payload - u16::from(layers.l3),
            flags: layers.flags & !Layers::VLAN,
            ..layers
        };
        assert_eq!(raw, shifted);
    }
}

/// Turn layers into what the reference says.
fn reading(frame: &[u8], layers: &Layers) -> Reading {
    let key = FlowKey::read(frame, layers);
    Reading {
        net: layers.net as u8,
        src: key.map(|key| key.src().ip()),
        dst: key.map(|key| key.dst().ip()),
        proto: layers.proto,
        tagged: layers.has(Layers::VLAN),
        options: layers.has(Layers::OPTIONS),
        authenticated: layers.has(Layers::AUTHENTICATED),
        fragment: layers.has(Layers::FRAGMENT),
        later: layers.has(Layers::LATER),
        ports: ports(frame, layers),
        l3: layers.l3.into(),
        l4: layers.l4.into(),
        payload: layers.payload.into(),
    }
}

/// Flow keys hold what the headers hold, turn around, and hash alike both ways where they should.
pub fn flow_agrees(frame: &[u8]) {
    let Ok(layers) = parse(frame) else { return };
    let seed = Seed::from_number(7);
    let Some(key) = FlowKey::read(frame, &layers) else {
        assert!(matches!(layers.net, Net::Other | Net::Arp));
        return;
    };
    let expected = match ports(frame, &layers) {
        Some(ports) if !layers.has(Layers::FRAGMENT) => ports,
        _ => (0, 0),
    };
    assert_eq!((key.src().port(), key.dst().port()), expected);
    assert_eq!(FlowKey::new(key.src(), key.dst(), key.proto()), Some(key));
    assert_eq!(key.reverse().reverse(), key);
    assert_eq!(key.symmetric_hash(&seed), key.reverse().symmetric_hash(&seed));
    assert_eq!(FlowKeyV4::read(frame, &layers).is_some(), layers.net == Net::Ipv4);
    assert_eq!(FlowKeyV6::read(frame, &layers).is_some(), layers.net == Net::Ipv6);
    assert!(!key.to_string().is_empty());
    black_box(icmp_identifier(frame, &layers));
    // Layers of one frame held against another, or made up, must not panic either.
    for cut in 0..frame.len() {
        black_box((FlowKey::read(&frame[..cut], &layers), ports(&frame[..cut], &layers)));
        black_box((icmp_identifier(&frame[..cut], &layers), layers.end(&frame[..cut])));
    }
}

/// No accessor of a checked view panics, whatever the bytes; nor does a setter.
pub fn views_never_panic(bytes: &[u8]) {
    macro_rules! look {
        ($view:expr => $($accessor:ident($($argument:expr),*) $(.$then:ident())?),+) => {
            if let Ok(mut view) = $view {
                $(black_box(view.$accessor($($argument),*) $(.$then())?);)+
                black_box(view.to_string());
            }
        };
    }
    let copy = || bytes.to_vec();
    let mac = ethernet::Mac::BROADCAST;
    look!(ethernet::Packet::new_checked(copy()) => dst(), src(), ethertype(), payload(), set_dst(mac), set_src(mac),
        set_ethertype(1), payload_mut());
    look!(vlan::Packet::new_checked(copy()) => id(), priority(), drop_eligible(), ethertype(), payload(),
        set_control(1, 2, true), set_ethertype(1), payload_mut());
    look!(arp::Packet::new_checked(copy()) => len(), hardware(), protocol(), operation(), sender_hardware(),
        sender_protocol(), target_hardware(), target_protocol(), ethernet_ipv4(), set_operation(2));
    look!(ipv4::Packet::new_checked(copy()) => version(), header_len(), tos(), total_len(), ident(), dont_fragment(),
        more_fragments(), fragment_offset(), is_fragment(), ttl(), proto(), checksum(), src(), dst(), header(),
        options().count(), verify_checksum(), pseudo_sum(), payload(), set_tos(1), set_ident(1), set_ttl(1),
        set_fragment(true, true, 8), set_proto(1), set_src([1; 4].into()), set_dst([2; 4].into()), fill_checksum(),
        options_mut(), payload_mut());
    look!(ipv6::Packet::new_checked(copy()) => version(), traffic_class(), flow_label(), payload_len(), next_header(),
        hop_limit(), src(), dst(), extensions().is_ok(), pseudo_sum(6, 1), payload(), set_class_and_label(1, 2),
        set_next_header(1), set_hop_limit(1), set_src([1; 16].into()), set_dst([2; 16].into()), payload_mut());
    look!(tcp::Packet::new_checked(copy()) => src_port(), dst_port(), seq(), ack(), header_len(), flags(), window(),
        checksum(), urgent(), options().count(), verify_checksum(1), payload(), set_src_port(1), set_dst_port(1),
        set_seq(1), set_ack(1), set_flags(1), set_window(1), set_urgent(1), fill_checksum(1), options_mut(),
        payload_mut());
    look!(udp::Packet::new_checked(copy()) => src_port(), dst_port(), length(), checksum(), verify_checksum(1),
        payload(), set_src_port(1), set_dst_port(1), fill_checksum(1), payload_mut());
    look!(icmpv4::Packet::new_checked(copy()) => kind(), code(), checksum(), rest(), ident(), sequence(),
        next_hop_mtu(), is_error(), verify_checksum(), payload(), set_kind(1, 2), set_rest([1; 4]), set_ident(1),
        set_sequence(1), fill_checksum(), payload_mut());
    look!(icmpv6::Packet::new_checked(copy()) => kind(), code(), checksum(), body(), echo(), mtu(), is_echo(),
        is_error(), original(), verify_checksum(1), set_kind(1, 2), fill_checksum(1), body_mut());
    look!(sctp::Packet::new_checked(copy()) => src_port(), dst_port(), verification_tag(), checksum(), payload(),
        set_src_port(1), set_dst_port(1), set_verification_tag(1));
    look!(gre::Packet::new_checked(copy()) => protocol(), header_len(), checksum(), key(), sequence(),
        verify_checksum(), payload(), set_protocol(1), set_key(1), set_sequence(1), fill_checksum(), payload_mut());
    look!(vxlan::Packet::new_checked(copy()) => network(), payload(), set_network(1), payload_mut());
    look!(nsh::Packet::new_checked(copy()) => is_oam(), ttl(), header_len(), metadata_type(), next_protocol(), path(),
        index(), metadata(), contexts().count(), payload(), set_path(1, 2), decrement_ttl(), metadata_mut(),
        payload_mut());
    if let Some((&next, payload)) = bytes.split_first()
        && let Ok(chain) = ipv6ext::walk(next, payload)
    {
        assert!(chain.offset <= payload.len());
    }
    black_box((checksum::checksum(bytes), checksum::verify_ipv4_checksum(bytes)));
}

/// Where the parser finds a header, its view agrees that it is one.
pub fn views_agree_with_layers(frame: &[u8]) {
    let Ok(layers) = parse(frame) else { return };
    let network = &frame[layers.l3.into()..];
    let upper = match layers.net {
        Net::Ipv4 => ipv4::Packet::new_checked(network).unwrap().into_inner().len(),
        Net::Ipv6 => ipv6::Packet::new_checked(network).unwrap().into_inner().len(),
        Net::Arp => arp::Packet::new_checked(network).unwrap().into_inner().len(),
        Net::Other => return,
    };
    assert_eq!(upper, network.len());
    if layers.has(Layers::FRAGMENT) || layers.payload == layers.l4 {
        return;
    }
    let data = &frame[layers.l4.into()..];
    match layers.proto {
        6 => assert_eq!(tcp::Packet::new_checked(data).unwrap().header_len(), usize::from(layers.payload - layers.l4)),
        17 => assert!(udp::Packet::new_checked(data).is_ok()),
        1 => assert!(icmpv4::Packet::new_checked(data).is_ok()),
        58 => assert!(icmpv6::Packet::new_checked(data).is_ok()),
        132 => assert!(sctp::Packet::new_checked(data).is_ok()),
        _ => {}
    }
}
