/* Packets come by the program's own driver, which has to be named.
 *
 * options --receive fetch:packet=return
 * expect seen: updateable
 * expect ring: updateable
 */
#include "packets.h"
char ring[16][2048];
int seen, at;

__attribute__((noinline)) char *fetch(void) { return ring[at++ % 16]; }

int main(void) {
    for (;;) {
        char *packet = fetch();
        if (IP(packet)->protocol == 6) seen++;
        packet[8]--;
    }
}
