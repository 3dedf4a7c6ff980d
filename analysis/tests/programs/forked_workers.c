/* One process per core: after fork each has its own copy of the state, except what lies in shared memory.
 *
 * own is per worker, total in the shared block; both change with packets. When a worker has
 * had its last packet, main goes on with its loop and reads workers: as far as control flow tells, after a packet.
 *
 * expect own: updateable packets -
 * expect total: updateable logs
 * expect workers: top-level -
 */
#include "packets.h"
#include <sys/mman.h>
#include <unistd.h>
struct shared { volatile long packets; };
struct shared *total;
int own, workers = 4;

static void work(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        total->packets++;
        if (++own % 10) send(device, packet, 100, 0);
        printf("%ld\n", total->packets);
    }
}

int main(void) {
    total = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int at = 0; at < workers; at++)
        if (fork() == 0) work();
    return 0;
}
