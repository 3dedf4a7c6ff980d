/* A server over select: state per connection, in an array by file descriptor.
 *
 * clients is indexed by descriptors, which no header field determines: all flows. watched is changed through the macro
 * that sets bits and by select itself (a copy). listener is used as a handle of accept, which is none of the listed
 * handles: it is used in packet code.
 *
 * expect clients: updateable packets *
 * expect watched: updateable packets
 * expect highest: updateable packets -
 */
#include "packets.h"
#include <sys/select.h>
#include <unistd.h>
struct client { int used; long bytes; char last[512]; };
struct client clients[1024];
fd_set watched;
int highest;

static void drop(int which) {
    close(which);
    FD_CLR(which, &watched);
    memset(&clients[which], 0, sizeof clients[which]);
}

int main(int argc, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    listen(listener, 10);
    FD_ZERO(&watched);
    FD_SET(listener, &watched);
    highest = listener;
    for (;;) {
        fd_set ready = watched;
        select(highest + 1, &ready, NULL, NULL, NULL);
        for (int at = 0; at <= highest; at++) {
            if (!FD_ISSET(at, &ready)) continue;
            if (at == listener) {
                int one = accept(listener, NULL, NULL);
                FD_SET(one, &watched);
                clients[one].used = 1;
                if (one > highest) highest = one;
                continue;
            }
            long size = recv(at, clients[at].last, 512, 0);
            if (size <= 0) { drop(at); continue; }
            clients[at].bytes += size;
            if (clients[at].bytes > 1000) send(at, clients[at].last, size, 0);
        }
    }
}
