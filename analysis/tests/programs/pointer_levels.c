/* An update through three levels of pointers.
 *
 * expect counter: updateable
 * expect limit: top-level
 * expect device: persistent
 */
#include "packets.h"
int counter, limit = 10;
int *one = &counter;
int **two = &one;

static void touch(int ***deep) { ***deep = ***deep + 1; }

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (IP(packet)->ttl > limit) touch(&two);
    }
}
