//! Tests of the dataplane's public face: pipelines that are edited, captures, and packet sockets.

mod edits;
mod port_captures;
mod port_packet_socket;
