/* A procedure returns the procedure to call; what it would not return does not process packets.
 *
 * expect fast: updateable
 * expect slow: updateable
 * expect other: persistent
 */
#include "packets.h"
typedef void (*handler)(void);
typedef handler (*chooser)(int);
int fast, slow, other;

static void on_fast(void) { fast++; }
static void on_slow(void) { slow++; }
static void on_other(void) { other++; }
static handler choose(int small) { return small ? on_fast : on_slow; }
static handler never(int small) { return on_other; }

int main(void) {
    char packet[2048];
    chooser by_size = choose, by_age = never;
    while (recv(device, packet, sizeof packet, 0) > 0) by_size(IP(packet)->tot_len < 100)();
}
