/* Counters that are only printed when the capture ends, by a procedure that exit calls.
 *
 * The log statement is executed after packets were received, so what it prints impacts logs. peak is changed and compared
 * with, and the comparison decides only about peak itself: nothing is sent or printed by it.
 *
 * expect packets: updateable logs -
 * expect bytes: updateable logs -
 * expect peak: updateable silent -
 */
#include "packets.h"
unsigned long packets, bytes, peak;

static void summary(void) { printf("%lu packets, %lu bytes\n", packets, bytes); }

int main(void) {
    char packet[2048];
    long size;
    atexit(summary);
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        packets++;
        bytes += size;
        if ((unsigned long)size > peak) peak = size;
    }
    return 0;
}
