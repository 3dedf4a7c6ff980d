/* A signal handler changes what packet code reads; packet code changes what it prints.
 *
 * expect verbose: top-level
 * expect packets: updateable logs
 */
#include "packets.h"
#include <signal.h>
volatile int verbose;
int packets;

static void toggle(int number) { verbose = !verbose; }

int main(void) {
    char packet[2048];
    signal(SIGUSR1, toggle);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        packets++;
        if (verbose) printf("%d\n", packets);
    }
}
