/* A vector of entries that grows, searched by address.
 *
 * expect entries: updateable src_ip
 * expect reserve: top-level -
 */
#include "packets.h"
#include <vector>
struct Entry {
    unsigned address;
    int hits;
};
std::vector<Entry> entries;
unsigned reserve = 16;

static Entry &find(unsigned address) {
    for (Entry &entry : entries)
        if (entry.address == address) return entry;
    if (entries.size() == entries.capacity()) entries.reserve(entries.size() + reserve);
    entries.push_back({address, 0});
    return entries.back();
}

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) find(IP(packet)->saddr).hits++;
}
