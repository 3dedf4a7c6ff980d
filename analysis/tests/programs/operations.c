/* Objects with a table of operations each: packets are given to whatever the configuration chose.
 *
 * The table of operations itself is only read; the filter's own members change through the pointer it is called with.
 *
 * expect chosen: updateable packets
 * expect bucket: updateable packets
 * expect bucket_operations: top-level
 * expect mirror: persistent
 */
#include "packets.h"
struct filter;
struct operations { int (*accept)(struct filter *, char *); void (*reset)(struct filter *); };
struct filter { struct operations *operations; long level, size; };

static int bucket_accept(struct filter *self, char *packet) {
    if (self->level < IP(packet)->tot_len) return 0;
    self->level -= IP(packet)->tot_len;
    return 1;
}
static void bucket_reset(struct filter *self) { self->level = self->size; }
static int mirror_accept(struct filter *self, char *packet) { return ++self->level; }

struct operations bucket_operations = {bucket_accept, bucket_reset};
struct operations mirror_operations = {mirror_accept, bucket_reset};
struct filter bucket = {&bucket_operations, 0, 100000}, mirror = {&mirror_operations, 0, 0};
struct filter *chosen;

int main(void) {
    char packet[2048];
    mirror.size = 1;
    chosen = &bucket;
    chosen->operations->reset(chosen);
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (chosen->operations->accept(chosen, packet)) send(device, packet, 100, 0);
}
