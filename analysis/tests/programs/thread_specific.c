/* Each thread keeps its own counters behind a key of the threads library.
 *
 * The block's address goes in by pthread_setspecific and comes out elsewhere; it leads to `all`, a global of which
 * packet code has no name.
 *
 * expect all: updateable
 * expect key: top-level -
 * expect blocks: persistent
 */
#include "packets.h"
#include <pthread.h>
struct block { long *sum; };
pthread_key_t key;
long all;
int blocks;

static void prepare(void) {
    struct block *block = malloc(sizeof *block);
    block->sum = &all;
    pthread_setspecific(key, block);
    blocks++;
}

static void count(void) {
    struct block *block = pthread_getspecific(key);
    ++*block->sum;
}

static void *work(void *unused) {
    char packet[2048];
    prepare();
    while (recv(device, packet, sizeof packet, 0) > 0) count();
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_key_create(&key, free);
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, NULL);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
}
