/* From a member to the struct around it by arithmetic on integers.
 *
 * The table points to a member; the pointer to the counter lies before it and is found by subtraction, which is not a
 * pointer's own step. host is read only, but leads to the counter.
 *
 * expect counter: updateable logs
 * expect host: updateable logs
 * expect table: updateable
 */
#include "packets.h"
#include <stddef.h>
#include <stdint.h>
struct host { int *hits; long address; };
int counter;
struct host host = {&counter, 0};
long *table[4];

int main(void) {
    char packet[2048];
    table[0] = &host.address;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        uintptr_t at = (uintptr_t)table[packet[0] & 3];
        struct host *found = (struct host *)(at - offsetof(struct host, address));
        ++*found->hits;
        printf("%d\n", counter);
    }
}
