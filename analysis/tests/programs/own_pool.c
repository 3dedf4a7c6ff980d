/* Pools that hand out what they were given back: their code mixes all objects up; a list says that they allocate.
 *
 * options --library @own_pool.list
 * expect settings: top-level
 * expect flows: updateable
 * expect small: updateable
 */
#include "packets.h"
struct pool { void *unused; };
struct setting { int limit; };
struct flow { int packets; };
struct pool small, large;
struct setting *settings;
struct flow *flows;

void *pool_take(struct pool *pool, unsigned size) {
    void **first = pool->unused;
    if (!first) return malloc(size);
    pool->unused = *first;
    return first;
}

void pool_give(struct pool *pool, void *object) {
    *(void **)object = pool->unused;
    pool->unused = object;
}

int main(void) {
    char packet[2048];
    settings = pool_take(&small, sizeof *settings);
    flows = pool_take(&small, sizeof *flows);
    settings->limit = 100;
    flows->packets = 0;
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (flows->packets++ > settings->limit) {
            pool_give(&small, flows);
            flows = pool_take(&small, sizeof *flows);
        }
}
