/* One variable under two names, and one procedure under two names.
 *
 * Writing through the second name changes the first one's variable.
 *
 * expect first: updateable
 * expect calls: updateable -
 */
#include "packets.h"
int first, calls;
extern int second __attribute__((alias("first")));
static void work(void) { calls++; }
static void also(void) __attribute__((alias("work")));

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        second++;
        also();
    }
}
