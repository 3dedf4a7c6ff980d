/* The kernel hands back the pointer that a descriptor was registered with.
 *
 * The connection lies on the heap, and nothing but epoll knows where: its counter's address is taken in initialization and
 * comes back by epoll_wait.
 *
 * expect requests: updateable packets
 * expect ready: updateable
 * expect port: persistent
 */
#include "packets.h"
#include <sys/epoll.h>
struct connection { int descriptor; long *counter; };
long requests;
struct epoll_event ready[16];
int port;

static void watch(int poll, int descriptor) {
    struct connection *connection = malloc(sizeof *connection);
    connection->descriptor = descriptor;
    connection->counter = &requests;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

int main(int argc, char **argv) {
    char packet[2048];
    int poll = epoll_create1(0);
    port = atoi(argv[1]);
    watch(poll, socket(AF_INET, SOCK_DGRAM, 0));
    for (;;) {
        int count = epoll_wait(poll, ready, 16, -1);
        for (int at = 0; at < count; at++) {
            struct connection *connection = ready[at].data.ptr;
            long size = recv(connection->descriptor, packet, sizeof packet, 0);
            if (++*connection->counter % 2) send(connection->descriptor, packet, size, 0);
        }
    }
}
