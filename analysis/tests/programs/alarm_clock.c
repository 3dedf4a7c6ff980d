/* An alarm ages the table while packets come in: the handler is installed by sigaction, in a struct.
 *
 * age runs at any time after it is installed, so also between packets: what it changes is updateable. handler_set is used
 * before the loop only.
 *
 * expect levels: updateable packets dst_port
 * expect ages: updateable logs -
 * expect handler_set: persistent
 */
#include "packets.h"
#include <signal.h>
#include <unistd.h>
int levels[65536];
volatile int ages;
int handler_set;

static void age(int number) {
    ages++;
    for (int at = 0; at < 65536; at++) levels[at] /= 2;
    alarm(1);
}

int main(void) {
    char packet[2048];
    struct sigaction action = {.sa_handler = age};
    handler_set = sigaction(SIGALRM, &action, NULL) == 0;
    alarm(1);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (++levels[UDP(packet)->dest] < 1000) send(device, packet, 100, 0);
        printf("%d\n", ages);
    }
}
