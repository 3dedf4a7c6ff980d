/* An interpreter of small programs: the next instruction's label is taken from a table and jumped to.
 *
 * program is loaded before packets and read only; accumulator and memory change; what is sent depends on both.
 *
 * expect program: top-level *
 * expect accumulator: updateable packets -
 * expect cells: updateable packets *
 */
#include "packets.h"
unsigned char program[64];
long accumulator, cells[16];

static int run(char *packet) {
    static void *labels[] = {&&load, &&add, &&keep, &&end};
    unsigned char *at = program;
    goto *labels[*at & 3];
load:
    accumulator = packet[at[1]];
    goto *labels[*(at += 2) & 3];
add:
    accumulator += cells[at[1] & 15];
    goto *labels[*(at += 2) & 3];
keep:
    cells[at[1] & 15] = accumulator;
    goto *labels[*(at += 2) & 3];
end:
    return accumulator > 0;
}

int main(int argc, char **argv) {
    char packet[2048];
    for (int at = 1; at < argc; at++) program[at - 1] = atoi(argv[at]);
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (run(packet)) send(device, packet, 100, 0);
}
