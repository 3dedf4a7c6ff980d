/* One template makes two tables; each has its own static state.
 *
 * Table<Source> is updated and keyed by the source, Table<Destination> by the destination.
 *
 * expect by_source: updateable src_ip
 * expect by_destination: updateable dst_ip
 */
#include "packets.h"
struct Source {
    static unsigned of(const char *packet) { return IP(packet)->saddr; }
};
struct Destination {
    static unsigned of(const char *packet) { return IP(packet)->daddr; }
};
template <typename Field> struct Table {
    void see(const char *packet) { ++cells[Field::of(packet) % 1024]; }
    int cells[1024];
};
Table<Source> by_source;
Table<Destination> by_destination;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        by_source.see(packet);
        by_destination.see(packet);
    }
}
