/* A struct that ends in an array of unknown length, allocated in one block with it.
 *
 * The array's cells are indexed by the destination port; length is read only, but lies in the same block.
 *
 * expect table: updateable dst_port
 * expect length: persistent
 */
#include "packets.h"
struct table { unsigned length; int cells[]; };
struct table *table;
unsigned length = 1024;

int main(void) {
    char packet[2048];
    table = calloc(1, sizeof *table + length * sizeof(int));
    table->length = length;
    while (recv(device, packet, sizeof packet, 0) > 0) table->cells[UDP(packet)->dest % table->length]++;
}
