/* Flags in one word: changing one of them is a load, a mask and a store of the whole word.
 *
 * flags is stored to, options only read. What is sent depends on flags.seen_syn.
 *
 * expect flags: updateable packets
 * expect options: top-level
 */
#include "packets.h"
struct flags { unsigned seen_syn : 1; unsigned seen_fin : 1; unsigned count : 30; };
struct flags flags;
struct { unsigned strict : 1; unsigned : 3; unsigned level : 4; } options;

int main(int argc, char **argv) {
    char packet[2048];
    options.strict = argc > 1;
    options.level = argc;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (TCP(packet)->syn) flags.seen_syn = 1;
        flags.count++;
        if (flags.seen_syn && options.strict) send(device, packet, 40, 0);
    }
}
