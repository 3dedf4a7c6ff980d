//! Tests of packets' public face: captures read and written, and headers parsed.

mod pcap_reader;
mod pcap_traces;
mod pcap_writer;
mod wire;
mod wire_tshark;
