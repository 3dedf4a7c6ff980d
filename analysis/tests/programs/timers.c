/* Timers in a list, each with a procedure to call; packets start them and the loop runs those that are due.
 *
 * expire is only called through the list. flows is keyed by the source port; half of its entries are changed by the timers.
 * now is stored to in the loop. All three decide whether expire runs, and so whether it prints. What is sent depends on a
 * flow's bytes, which timers do not change; without fields `open` and `bytes` are one.
 *
 * expect-merged timers: updateable packets logs
 * expect-fields timers: updateable logs
 * expect flows: updateable packets logs src_port
 * expect-merged now: updateable packets logs -
 * expect-fields now: updateable logs -
 * expect expired: updateable logs -
 * expect lifetime: top-level -
 */
#include "packets.h"
#include <time.h>
struct timer { long due; void (*run)(void *); void *given; struct timer *next; };
struct flow { int open; long bytes; };
struct timer *timers;
struct flow flows[65536];
time_t now;
long lifetime = 60, expired;

static void expire(void *given) {
    struct flow *flow = given;
    flow->open = 0;
    printf("expired %ld\n", ++expired);
}

static void start(void (*run)(void *), void *given) {
    struct timer *timer = malloc(sizeof *timer);
    timer->due = now + lifetime;
    timer->run = run;
    timer->given = given;
    timer->next = timers;
    timers = timer;
}

static void run_timers(void) {
    struct timer **at = &timers;
    while (*at) {
        struct timer *timer = *at;
        if (timer->due > now) {
            at = &timer->next;
            continue;
        }
        *at = timer->next;
        timer->run(timer->given);
        free(timer);
    }
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        now = time(NULL);
        run_timers();
        struct flow *flow = &flows[TCP(packet)->source];
        if (!flow->open) {
            flow->open = 1;
            start(expire, flow);
        }
        flow->bytes += IP(packet)->tot_len;
        if (flow->bytes < 1000) send(device, packet, 100, 0);
    }
}
