/* A parser gives up by an exception; who catches it counts and answers.
 *
 * errors is changed in the handler by what the exception carries. Whether the answer is sent depends on depth, which
 * decides if the exception is thrown: so depth impacts packets though no branch around `send` reads it.
 *
 * expect errors: updateable packets
 * expect depth: updateable packets
 * expect parsed: updateable silent
 */
#include "packets.h"
struct Malformed {
    int *counter;
};
int errors, depth, parsed;

static void parse(const char *packet) {
    depth += IP(packet)->ihl;
    if (depth % 7 == 3) throw Malformed{&errors};
    parsed++;
}

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        try {
            parse(packet);
        } catch (const Malformed &what) {
            if (++*what.counter < 10) send(device, packet, 20, 0);
        }
    }
}
