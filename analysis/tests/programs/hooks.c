/* Modules hang themselves into a list of hooks, each with a context of its own that the hook gets as void *.
 *
 * Both contexts are written by their hooks; the third module is linked in but never registered.
 *
 * expect hooks: updateable
 * expect ports: updateable dst_port
 * expect bytes: updateable -
 * expect dormant: persistent
 */
#include "packets.h"
struct hook { void (*run)(void *context, char *packet); void *context; struct hook *next; };
struct ports { int seen[65536]; };
struct hook *hooks;
struct ports ports;
long bytes, dormant;

static void count_port(void *context, char *packet) { ((struct ports *)context)->seen[UDP(packet)->dest]++; }
static void count_bytes(void *context, char *packet) { *(long *)context += IP(packet)->tot_len; }
static void count_never(void *context, char *packet) { dormant++; }

static void hang(void (*run)(void *, char *), void *context) {
    struct hook *hook = malloc(sizeof *hook);
    hook->run = run;
    hook->context = context;
    hook->next = hooks;
    hooks = hook;
}

int main(void) {
    char packet[2048];
    hang(count_port, &ports);
    hang(count_bytes, &bytes);
    while (recv(device, packet, sizeof packet, 0) > 0)
        for (struct hook *at = hooks; at; at = at->next) at->run(at->context, packet);
}
