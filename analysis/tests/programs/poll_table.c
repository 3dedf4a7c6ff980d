/* poll fills a table of descriptors; only those that are ready are read.
 *
 * poll writes revents into `watched`. names is set up before and read for the log.
 *
 * expect watched: updateable logs *
 * expect count: top-level -
 * expect names: top-level *
 * expect reads: updateable logs *
 */
#include "packets.h"
#include <poll.h>
struct pollfd watched[16];
const char *names[16];
long reads[16];
int count;

int main(int argc, char **argv) {
    char packet[2048];
    for (count = 1; count < argc; count++) {
        watched[count].fd = atoi(argv[count]);
        watched[count].events = POLLIN;
        names[count] = argv[count];
    }
    for (;;) {
        poll(watched, count, -1);
        for (int at = 0; at < count; at++) {
            if (!(watched[at].revents & POLLIN)) continue;
            if (recv(watched[at].fd, packet, sizeof packet, 0) <= 0) return 0;
            printf("%s %ld\n", names[at], ++reads[at]);
        }
    }
}
