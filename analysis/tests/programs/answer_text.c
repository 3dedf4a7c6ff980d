/* An answer is put together as text: formatted, appended, sent.
 *
 * snprintf writes `answer`, strcat appends to it; name is read by the formatting. The request's number is scanned into
 * limit by sscanf, an update by a library function; what is sent depends on all of them, name as a setting that is only
 * read.
 *
 * expect answer: updateable packets *
 * expect limit: updateable packets -
 * expect served: updateable packets -
 * expect name: top-level *
 */
#include "packets.h"
char answer[512], name[32];
int limit, served;

int main(int argc, char **argv) {
    char packet[2048];
    strncpy(name, argv[1], 31);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        sscanf(packet, "limit %d", &limit);
        if (++served > limit) continue;
        snprintf(answer, sizeof answer, "%s: %d of ", name, served);
        char number[16];
        sprintf(number, "%d", limit);
        strcat(answer, number);
        send(device, answer, strlen(answer), 0);
    }
}
