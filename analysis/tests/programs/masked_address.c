/* A chunk's head is found by clearing the low bits of an address within it.
 *
 * The only way to `used` is by rounding down what free_cell points to; the head lies in the same block.
 *
 * expect chunk: updateable logs
 * expect free_cell: updateable
 * expect memory: updateable logs
 * expect counter: persistent
 */
#include "packets.h"
#include <stdint.h>
struct chunk { long used; char cells[4088]; };
struct chunk *chunk;
struct chunk memory __attribute__((aligned(4096)));
long *counter;
char *free_cell;

int main(void) {
    char packet[2048];
    chunk = &memory;
    free_cell = memory.cells + 128;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct chunk *head = (struct chunk *)((uintptr_t)free_cell & ~(uintptr_t)4095);
        head->used++;
        printf("%ld\n", chunk->used);
    }
}
