// The format: a header of 24 bytes, then for each packet one of 16 and its bytes.
#include "reduce/capture.h"

#include "program/bitcode.h"
#include "reduce/native.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"
#include <random>

using namespace llvm;

namespace catena {

namespace {

constexpr size_t fileHeader = 24, packetHeader = 16, longestPacket = 65535;

uint32_t word(StringRef bytes, size_t at, bool swapped) {
    uint32_t value = support::endian::read32le(bytes.data() + at);
    return swapped ? llvm::byteswap(value) : value;
}

void put(std::string &to, uint32_t value) {
    char bytes[4];
    support::endian::write32le(bytes, value);
    to.append(bytes, sizeof bytes);
}

} // namespace

Expected<Capture> readCapture(const std::string &file) {
    auto text = readFile(file);
    if (!text) return text.takeError();
    StringRef bytes(*text);
    uint32_t magic = bytes.size() < fileHeader ? 0 : word(bytes, 0, false);
    bool swapped = magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
    if (!swapped && magic != 0xa1b2c3d4 && magic != 0xa1b23c4d)
        return failure(file + ": this is no capture in pcap's format; `tcpdump -w` and `editcap -F pcap` write it");
    Capture capture;
    capture.linkType = word(bytes, 20, swapped);
    bytes = bytes.drop_front(fileHeader);
    while (!bytes.empty()) {
        uint32_t length = bytes.size() < packetHeader ? 0 : word(bytes, 8, swapped);
        if (bytes.size() < packetHeader || bytes.size() - packetHeader < length)
            return failure(file + ": the capture ends within packet " + Twine(capture.packets.size() + 1));
        capture.packets.push_back(bytes.substr(packetHeader, length).str());
        bytes = bytes.drop_front(packetHeader + length);
    }
    return capture;
}

Error writeCapture(const Capture &capture, const std::string &file) {
    std::string text;
    for (uint32_t value : {0xa1b2c3d4u, 0x00040002u, 0u, 0u, uint32_t(longestPacket), capture.linkType})
        put(text, value);
    uint32_t microsecond = 0;
    for (const std::string &packet : capture.packets) {
        auto length = static_cast<uint32_t>(packet.size());
        put(text, microsecond / 1000000), put(text, microsecond % 1000000), put(text, length), put(text, length);
        ++microsecond;
        text += packet;
    }
    std::error_code code;
    raw_fd_ostream stream(file, code);
    if (code) return failure(file + ": " + code.message());
    stream << text;
    return Error::success();
}

Capture randomPackets(const Capture &from, unsigned count, unsigned seed) {
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    Capture made;
    made.linkType = from.linkType;
    // Headers decide most: most changes fall there.
    constexpr size_t headers = 64;
    for (unsigned i = 0; i < count; ++i) {
        std::string packet;
        if (!from.packets.empty() && below(16)) packet = from.packets[below(from.packets.size())];
        if (packet.empty()) {
            packet.resize(below(200));
            for (char &byte : packet) byte = static_cast<char>(below(256));
        }
        for (size_t changes = below(6); changes && !packet.empty(); --changes) {
            size_t at = below(std::min(packet.size(), below(8) ? headers : packet.size()));
            // A byte of another packet at the same place is more often one that the program knows.
            const std::string &other = from.packets.empty() ? packet : from.packets[below(from.packets.size())];
            packet[at] = at < other.size() && below(3) ? other[at] : static_cast<char>(below(256));
        }
        if (!below(10)) packet.resize(below(packet.size() + 1));
        made.packets.push_back(packet);
    }
    return made;
}

} // namespace catena
