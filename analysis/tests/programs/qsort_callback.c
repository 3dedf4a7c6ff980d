/* From time to time the table is sorted by a comparison that the library calls.
 *
 * qsort moves what lies in peers, so that sorting is an update; compare runs after packets and counts its calls. What it
 * compares are counters, no header fields; the search before it compares the source address.
 *
 * expect peers: updateable src_ip
 * expect used: updateable -
 * expect comparisons: updateable silent -
 */
#include "packets.h"
struct peer { unsigned address; int hits; };
struct peer peers[256];
int used;
long comparisons;

static int compare(const void *one, const void *two) {
    comparisons++;
    return ((const struct peer *)two)->hits - ((const struct peer *)one)->hits;
}

int main(void) {
    char packet[2048];
    unsigned packets = 0;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        int at = 0;
        while (at < used && peers[at].address != IP(packet)->saddr) at++;
        if (at == used && used < 255) peers[used++].address = IP(packet)->saddr;
        peers[at].hits++;
        if (++packets % 1000 == 0) qsort(peers, used, sizeof *peers, compare);
    }
}
