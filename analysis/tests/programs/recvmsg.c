/* The packet lies where a vector in a struct points to.
 *
 * expect count: updateable dst_port
 * expect name: persistent
 */
#include "packets.h"
int count[65536];
char name[64];

int main(void) {
    char packet[2048];
    struct iovec part = {packet, sizeof packet};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    strcpy(name, "eth0");
    while (recvmsg(device, &message, 0) > 0) count[UDP(packet)->dest]++;
}
