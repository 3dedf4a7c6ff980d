/* A request is split by strtok, which keeps its place in memory of its own: the words lie in `request`.
 *
 * strtok(NULL, ..) returns a pointer into what the call before was given. Writing through it changes request, which is
 * printed.
 *
 * expect request: updateable logs
 * expect separators: top-level
 */
#include "packets.h"
char request[2048], separators[8];

static void shout(char *word) {
    for (; *word; word++) *word -= 32;
}

int main(void) {
    char packet[2048];
    strcpy(separators, " \t");
    while (recv(device, packet, sizeof packet, 0) > 0) {
        char *word = strtok(request, separators);
        word = strtok(NULL, separators);
        if (word) shout(word);
        puts(request);
    }
}
