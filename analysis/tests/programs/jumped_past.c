/* A long jump passes a procedure that sends after the call: whether it sends is decided in the callee.
 *
 * forward has no branch; it sends if check returned. tokens decides whether check jumps, so tokens impacts packets. rounds
 * decides in a procedure of its own whether the program ends, which by convention is no dependence.
 *
 * expect tokens: updateable packets
 * expect dropped: updateable silent
 * expect rounds: updateable silent
 */
#include "packets.h"
#include <setjmp.h>
jmp_buf drop;
int tokens = 100, dropped, rounds;

static void check(void) {
    if (--tokens < 0) longjmp(drop, 1);
}

static void forward(char *packet) {
    check();
    send(device, packet, 100, 0);
}

static void end_some_time(void) {
    if (++rounds > 1000000) exit(1);
}

int main(void) {
    static char packet[2048];
    if (setjmp(drop)) dropped++;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        end_some_time();
        forward(packet);
    }
}
