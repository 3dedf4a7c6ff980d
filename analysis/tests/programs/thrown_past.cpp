/* An exception passes a procedure that sends after the call: whether it sends is decided in the callee.
 *
 * forward has no handler and no branch; it sends if check returned. tokens decides whether check throws, so tokens impacts
 * packets.
 *
 * expect tokens: updateable packets
 * expect dropped: updateable silent
 */
#include "packets.h"
int tokens = 100, dropped;

static void check() {
    if (--tokens < 0) throw 1;
}

static void forward(const char *packet) {
    check();
    send(device, packet, 100, 0);
}

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        try {
            forward(packet);
        } catch (int) {
            dropped++;
        }
    }
}
