/* A struct that is passed as a copy is read by the call; one that the loop's procedure was given is its own.
 *
 * expect settings: top-level
 * expect current: top-level
 * expect context: updateable
 */
#include "packets.h"
struct settings { long limits[8]; } settings;
struct context { long seen[8]; };
struct settings *current = &settings;

static int allowed(struct settings copy, int which) { return copy.limits[which & 7] > 0; }

static void run(struct context context) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (allowed(*current, packet[0])) context.seen[packet[1] & 7]++;
}

int main(void) {
    struct context empty = {0};
    settings.limits[1] = 3;
    run(empty);
}
