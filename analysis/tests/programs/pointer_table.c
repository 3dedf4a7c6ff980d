/* Counters behind two levels of pointers in a table: rows of pointers, each to a row of cells.
 *
 * rows is read to find a row (top-level) and leads to what is changed, so it is updateable; so are the cells. The index is
 * the protocol. spare's address is never taken by packet code, nor is it named there.
 *
 * expect rows: updateable proto
 * expect cells: updateable proto
 * expect spare: persistent
 */
#include "packets.h"
int cells[256], spare[4];
int *rows[2];

int main(void) {
    char packet[2048];
    rows[0] = cells;
    rows[1] = cells + 128;
    spare[0] = 1;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        int **row = &rows[IP(packet)->protocol / 128];
        (*row)[IP(packet)->protocol % 128]++;
    }
}
