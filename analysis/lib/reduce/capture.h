// Captures in pcap's format: read, made at random, written.
#pragma once

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace catena {

/// The packets of a capture, with the link type of their file.
struct Capture {
    uint32_t linkType = 1;
    std::vector<std::string> packets;
};

/// Read a capture in pcap's format, of either byte order; errors name the file.
llvm::Expected<Capture> readCapture(const std::string &file);
/// Write a capture, a packet a microsecond.
llvm::Error writeCapture(const Capture &capture, const std::string &file);
/// Return packets made of those of a capture by changing, cutting and exchanging bytes, and some all random. The same
/// seed makes the same packets.
Capture randomPackets(const Capture &from, unsigned count, unsigned seed);

} // namespace catena
