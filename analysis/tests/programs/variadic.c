/* A pointer passed as a variable argument is written through.
 *
 * expect sum: updateable
 * expect factor: top-level
 */
#include "packets.h"
#include <stdarg.h>
int sum, factor = 2;

static void add(int count, ...) {
    va_list list;
    va_start(list, count);
    while (count--) {
        int *to = va_arg(list, int *);
        *to += factor;
    }
    va_end(list);
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) add(1, &sum);
}
