/* A server over libevent: the library's loop calls back, with a local of main as the callback's data.
 *
 * What is used of the library is declared here. The library's loop is the packet loop, so main, which runs it, is a loop
 * procedure, and its local `server` is persistent; packets change it through the pointer the callback gets.
 *
 * expect server: updateable packets
 * expect tries: persistent
 */
#include "packets.h"
struct event_base; struct event; struct timeval;
struct event_base *event_base_new(void);
struct event *event_new(struct event_base *, int, short, void (*)(int, short, void *), void *);
int event_add(struct event *, const struct timeval *);
int event_base_dispatch(struct event_base *);
struct server { long requests, limit; };

static void on_ready(int socket, short what, void *given) {
    struct server *server = given;
    char packet[2048];
    if (recv(socket, packet, sizeof packet, 0) > 0 && ++server->requests < server->limit) send(socket, packet, 10, 0);
}

int main(void) {
    struct server server = {0, 1000};
    int tries = 3;
    while (tries-- && device <= 0) device = socket(AF_INET, SOCK_DGRAM, 0);
    struct event_base *base = event_base_new();
    event_add(event_new(base, device, 2, on_ready, &server), NULL);
    return event_base_dispatch(base);
}
