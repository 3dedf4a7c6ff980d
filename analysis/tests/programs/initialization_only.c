/* What is used before the first packet only is no state; what packet code reads is read-only.
 *
 * expect rules: top-level
 * expect path: persistent
 * expect lines: persistent
 * expect hits: updateable
 */
#include "packets.h"
int rules[64], lines, hits;
char path[256];

static void load(const char *name) {
    strncpy(path, name, sizeof path - 1);
    for (lines = 0; lines < 64; lines++) rules[lines] = lines;
}

int main(int argc, char **argv) {
    char packet[2048];
    load(argv[1]);
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (rules[packet[0] & 63]) hits++;
}
