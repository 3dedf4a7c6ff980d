/* A parser gives up by longjmp; what follows setjmp counts the error.
 *
 * expect errors: updateable
 * expect parsed: updateable
 */
#include "packets.h"
#include <setjmp.h>
jmp_buf give_up;
int errors, parsed;

static void parse(char *packet) {
    if (IP(packet)->version != 4) longjmp(give_up, 1);
    parsed++;
}

int main(void) {
    static char packet[2048];
    if (setjmp(give_up)) errors++;
    while (recv(device, packet, sizeof packet, 0) > 0) parse(packet);
}
