/* A log line of sixteen values; the last one is only ever logged there.
 *
 * expect first: updateable logs -
 * expect name: updateable logs *
 */
#include "packets.h"
int first;
char name[16];

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        first++;
        name[first % 15] = packet[0];
        printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %s\n", first, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
               15, name);
    }
}
