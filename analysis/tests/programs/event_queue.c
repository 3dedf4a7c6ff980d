/* Packets wait in a list of events; another procedure, called from elsewhere in the loop, works on them.
 *
 * expect first: updateable
 * expect last: updateable
 * expect total: updateable
 * expect started: persistent
 */
#include "packets.h"
struct event { struct event *next; void (*run)(struct event *); unsigned bytes; };
struct event *first, *last;
unsigned long total;
int started;

static void account(struct event *event) { total += event->bytes; }

static void raise_event(char *packet) {
    struct event *event = malloc(sizeof *event);
    event->next = NULL;
    event->run = account;
    event->bytes = IP(packet)->tot_len;
    if (last) last->next = event; else first = event;
    last = event;
}

static void dispatch(void) {
    while (first) {
        struct event *event = first;
        first = event->next;
        if (!first) last = NULL;
        event->run(event);
        free(event);
    }
}

int main(void) {
    char packet[2048];
    started = 1;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        raise_event(packet);
        dispatch();
    }
}
