/* Pointers to functions of several kinds in one table, told apart by a number: a call that gives one argument does not
 * mean the function that takes three.
 *
 * expect limit: top-level
 * expect packets: updateable
 */
#include "packets.h"
int limit = 10, packets;

static void count(int by) { packets += by > limit ? limit : by; }
static void configure(int a, int b, int c) { limit = a + b + c; }

void *actions[] = {count, configure};
int kinds[] = {1, 3};

int main(int argc, char **argv) {
    char packet[2048];
    ((void (*)(int, int, int))actions[argc > 1])(1, 2, 3);
    while (recv(device, packet, sizeof packet, 0) > 0)
        for (int i = 0; i < 2; ++i)
            if (kinds[i] == 1) ((void (*)(int))actions[i])(1);
}
