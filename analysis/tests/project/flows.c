/* The shared library: counts packets by source address. */
#include "flows.h"
#include <netinet/ip.h>
#include <stdio.h>
static struct flow flows[1024];
long calls_of_library;

long count_packet(const char *packet) {
    unsigned source = ((const struct iphdr *)packet)->saddr;
    struct flow *flow = &flows[source % 1024];
    calls_of_library++;
    flow->source = source;
    return ++flow->packets;
}

/* Each program may have its own, which the loader then takes. */
void say(long count) { printf("%ld\n", count); }
