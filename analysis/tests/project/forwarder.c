/* The first program: sends every second packet of a source on. */
#include "flows.h"
#include <sys/socket.h>
long said;

void say(long count) { said = count; }

int main(void) {
    char packet[2048];
    while (recv(0, packet, sizeof packet, 0) > 0) {
        long count = count_packet(packet);
        say(count);
        if (count % 2) send(1, packet, sizeof packet, 0);
    }
    return 0;
}
