/* A hang-up signal makes the loop read the configuration again.
 *
 * What reload stores to is stored to by a procedure that is called in the packet loop: updateable by Figure 4.9,
 * though no packet's content decides it. path is only read, by a library function. Packets are sent by what rules say.
 *
 * expect rules: updateable packets
 * expect count: updateable packets -
 * expect again: updateable packets -
 * expect path: top-level
 */
#include "packets.h"
#include <signal.h>
struct rule { unsigned address; int port; };
struct rule rules[64];
int count;
volatile int again;
char path[256];

static void hang_up(int number) { again = 1; }

static void reload(void) {
    FILE *file = fopen(path, "r");
    count = 0;
    while (count < 64 && fscanf(file, "%u %d", &rules[count].address, &rules[count].port) == 2) count++;
    fclose(file);
}

int main(int argc, char **argv) {
    char packet[2048];
    strncpy(path, argv[1], sizeof path - 1);
    signal(SIGHUP, hang_up);
    reload();
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (again) {
            again = 0;
            reload();
        }
        for (int at = 0; at < count; at++)
            if (rules[at].address == IP(packet)->daddr) send(rules[at].port, packet, 100, 0);
    }
}
