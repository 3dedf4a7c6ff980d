/* A parser of nested options: two procedures call each other, and count at the bottom.
 *
 * expect options: updateable logs -
 * expect deepest: updateable logs -
 * expect most: top-level -
 */
#include "packets.h"
int options, deepest, most = 8;

static void parse_list(unsigned char *at, int length, int depth);

static void parse_option(unsigned char *at, int length, int depth) {
    if (depth > deepest) deepest = depth;
    if (at[0] == 0xff)
        parse_list(at + 2, at[1], depth + 1);
    else
        options++;
}

static void parse_list(unsigned char *at, int length, int depth) {
    if (depth > most) return;
    for (int used = 0; used < length; used += 2) parse_option(at + used, length - used, depth);
}

int main(void) {
    unsigned char packet[2048];
    int length;
    while ((length = recv(device, packet, sizeof packet, 0)) > 0) {
        parse_list(packet + 20, length - 20, 0);
        printf("%d %d\n", options, deepest);
    }
}
