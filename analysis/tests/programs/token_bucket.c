/* A rate limit per source: a bucket of tokens that fills with time.
 *
 * Buckets are found by source address; the clock's struct is filled by a library function and is no state of a flow.
 *
 * expect buckets: updateable packets src_ip
 * expect clock_now: updateable packets
 * expect rate: top-level -
 * expect burst: top-level -
 */
#include "packets.h"
#include <time.h>
struct bucket { unsigned address; double tokens; long filled; struct bucket *next; };
struct bucket *buckets[512];
struct timespec clock_now;
double rate = 1e6, burst = 1e5;

static struct bucket *find(unsigned address) {
    struct bucket **chain = &buckets[address % 512];
    for (struct bucket *at = *chain; at; at = at->next)
        if (at->address == address) return at;
    struct bucket *made = calloc(1, sizeof *made);
    made->address = address;
    made->tokens = burst;
    made->next = *chain;
    return *chain = made;
}

int main(void) {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        struct bucket *bucket = find(IP(packet)->saddr);
        clock_gettime(CLOCK_MONOTONIC, &clock_now);
        bucket->tokens += (clock_now.tv_sec - bucket->filled) * rate;
        if (bucket->tokens > burst) bucket->tokens = burst;
        bucket->filled = clock_now.tv_sec;
        if (bucket->tokens < size) continue;
        bucket->tokens -= size;
        send(device, packet, size, 0);
    }
}
