/* Procedures without names that hold references: kept in std::function, called for every packet.
 *
 * bytes is changed through the captured reference of a lambda in a std::function, hits by a plain one.
 *
 * expect on_packet: updateable
 * expect bytes: updateable -
 * expect hits: updateable -
 * expect made: persistent
 */
#include "packets.h"
#include <functional>
long bytes, hits;
int made;
std::function<void(const char *)> on_packet;

static void listen() {
    long &sum = bytes;
    on_packet = [&sum](const char *packet) { sum += IP(packet)->tot_len; };
    made++;
}

int main() {
    char packet[2048];
    auto count = [](long &what) { what++; };
    listen();
    while (recv(device, packet, sizeof packet, 0) > 0) {
        on_packet(packet);
        count(hits);
    }
}
