/* The C library's one hash table, by name; the entry leads to a counter.
 *
 * hsearch keeps the pointers it is given, and hands out its entry. No variable of the program names the table.
 * What is kept is one memory: the data of an entry may be its name as far as the analysis tells, so that names counts as
 * updateable; the precise answer would be top-level.
 *
 * expect counters: updateable logs
 * expect names: updateable
 */
#include "packets.h"
#include <search.h>
#include <arpa/inet.h>
int counters[2];
char names[2][16] = {"10.0.0.1", "10.0.0.2"};

int main(void) {
    char packet[2048];
    hcreate(16);
    for (int at = 0; at < 2; at++) hsearch((ENTRY){names[at], &counters[at]}, ENTER);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        ENTRY *found = hsearch((ENTRY){inet_ntoa((struct in_addr){IP(packet)->saddr}), NULL}, FIND);
        if (found) ++*(int *)found->data;
        printf("%d %d\n", counters[0], counters[1]);
    }
}
