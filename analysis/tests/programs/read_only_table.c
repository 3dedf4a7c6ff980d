/* A pointer that may lead to a table in read-only memory writes only where that can be: what the table says stays.
 *
 * expect limit: top-level
 * expect packets: updateable
 * expect own: updateable
 */
#include "packets.h"
struct action { void (*run)(void); };
int limit = 10, packets;

static void count(void) { packets += packets < limit; }
static void reset(void) { limit = 0; }
static const struct action usual = {count};
struct action own = {count};

int main(int argc, char **argv) {
    char packet[2048];
    struct action *actions[2] = {(struct action *)&usual, &own};
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (packet[0] == 'o') actions[1]->run = count;
        usual.run();
    }
    actions[argc > 1]->run = reset;
}
