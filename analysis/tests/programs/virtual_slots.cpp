/* A call of a virtual function calls what lies in its place of the table, not what lies beside it: reset is of the same
 * type as packet, and nothing calls it.
 *
 * expect packets: updateable
 * expect resets: persistent
 * expect chosen: top-level
 */
#include "packets.h"
long packets, resets;
struct Step {
    virtual void packet(long size) = 0;
    virtual void reset(long size) = 0;
};
struct Counter : Step {
    void packet(long size) override { packets += size; }
    void reset(long size) override { resets += size; }
};
Counter counter;
Step *chosen = &counter;

int main() {
    char packet[2048];
    long size;
    printf("%ld\n", resets);
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        chosen->packet(size);
        send(device, packet, packets > 10 ? size : 20, 0);
    }
}
