/* Between two addresses lies a length, from which no address comes back.
 *
 * expect name: top-level
 * expect payload: updateable
 */
#include "packets.h"
#include <stdint.h>
char name[16] = "edge", payload[2048];

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        char *end = name + strlen(name);
        uintptr_t length = (uintptr_t)end - (uintptr_t)name;
        char *at = (char *)((uintptr_t)payload + length);
        *at = packet[0];
    }
}
