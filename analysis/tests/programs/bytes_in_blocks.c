/* A block of memory holds bytes that are indexed and bytes that are copied, of one of two sizes, before a pointer: neither
 * may seem to reach it, so that names never lead to hosts.
 *
 * expect host: updateable
 * expect-fields names: top-level
 */
#include "packets.h"
struct host { unsigned char address[16]; unsigned char scores[8]; const char *name; struct host *next; };
struct host *host;
const char *names[4] = {"none", "few", "some", "many"};

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct host *new = malloc(sizeof(struct host));
        memcpy(new->address, &IP(packet)->saddr, IP(packet)->version == 4 ? 4 : 16);
        for (int i = 0; i < 8; i++) new->scores[i] = packet[i + 20];
        new->scores[packet[28] % 8]++;
        new->name = names[packet[0] & 3];
        new->next = host;
        host = new;
        printf("%s\n", host->next ? host->next->name : host->name);
    }
}
