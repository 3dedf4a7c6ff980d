/* One counter steers what is sent, one is only logged, one is neither.
 *
 * expect dropped: updateable packets
 * expect logged: updateable logs
 * expect forgotten: updateable silent unread
 */
#include "packets.h"
int dropped, logged, forgotten;

int main(void) {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        forgotten++;
        logged++;
        printf("%d\n", logged);
        dropped++;
        if (dropped % 2) send(device, packet, 100, 0);
    }
}
