/* What strtok returns for NULL leads back to a buffer on the heap that packets fill.
 *
 * counter is reached only through a pointer that lies in the buffer behind the second word.
 *
 * expect counter: updateable
 * expect buffer: updateable
 */
#include "packets.h"
int counter;
struct text { int *behind; char words[64]; };
struct text *buffer;

int main(void) {
    char packet[2048];
    buffer = malloc(sizeof *buffer);
    buffer->behind = &counter;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        strtok(buffer->words, " ");
        char *second = strtok(NULL, " ");
        struct text *text = (struct text *)(second - second[0] - sizeof(int *));
        ++*text->behind;
    }
}
