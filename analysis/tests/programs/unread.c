/* Variables that packets change and nothing reads, and others that look like it.
 *
 * expect total: updateable silent unread
 * expect bounded: updateable silent unread
 * expect largest: updateable silent unread
 * expect lengths: updateable silent unread
 * expect last: updateable silent unread
 * expect copied: updateable silent read
 * expect copy: updateable silent unread
 * expect printed_at_end: updateable logs read
 * expect stops: updateable packets logs read
 * expect kept: updateable silent read
 * expect chooses: updateable packets read
 * expect chosen: updateable packets read
 */
#include "packets.h"
struct entry {
    long bytes;
    struct entry *next;
};
struct entry *last;
long total, bounded, largest, lengths[16], copied, copy, printed_at_end, stops, kept, chooses, chosen;
void keep(long value); /* a function of some library */

static long larger(long a, long b) { return a > b ? a : b; }

int main(void) {
    char packet[2048];
    long size;
    while (stops < 1000 && (size = recv(device, packet, sizeof packet, 0)) > 0) {
        struct entry *entry = malloc(sizeof *entry);
        total += size;
        if (bounded < 100) bounded++;
        largest = larger(largest, size);
        lengths[size % 16]++;
        entry->bytes = size;
        entry->next = last;
        last = entry;
        copied += size;
        copy = copied;
        printed_at_end++;
        stops++;
        kept += size;
        keep(kept);
        chooses ^= size;
        if (chooses & 1) chosen = size;
        send(device, &chosen, sizeof chosen, 0);
    }
    printf("%ld\n", printed_at_end);
}
