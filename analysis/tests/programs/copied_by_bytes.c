/* A struct with a pointer in it is copied byte by byte in a loop of the program's own.
 *
 * A limit that the book names: bytes are not followed as parts of pointers, so the update through the copy is
 * missed; the precise answer would be `updateable`.
 *
 * expect hits: persistent
 */
#include "packets.h"
struct entry { int *counter; };
int hits;
struct entry entries[2] = {{&hits}};

static void copy(char *to, const char *from, int size) {
    while (size--) *to++ = *from++;
}

int main(void) {
    char packet[2048];
    copy((char *)&entries[1], (char *)&entries[0], sizeof *entries);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct entry mine;
        copy((char *)&mine, (char *)&entries[1], sizeof mine);
        ++*mine.counter;
    }
}
