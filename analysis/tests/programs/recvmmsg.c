/* Many datagrams at once: buffers hang below vectors below message headers.
 *
 * messages, parts and buffers are filled by the kernel; the counter's key is read from the buffers.
 *
 * expect buffers: updateable
 * expect messages: updateable
 * expect hits: updateable dst_port
 * expect batch: top-level -
 */
#define _GNU_SOURCE
#include "packets.h"
char buffers[8][2048];
struct iovec parts[8];
struct mmsghdr messages[8];
int hits[65536], batch = 8;

int main(void) {
    for (int i = 0; i < 8; i++) {
        parts[i].iov_base = buffers[i];
        parts[i].iov_len = 2048;
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count;
    while ((count = recvmmsg(device, messages, batch, 0, NULL)) > 0)
        for (int i = 0; i < count; i++) {
            struct iovec *part = messages[i].msg_hdr.msg_iov;
            hits[UDP((char *)part->iov_base)->dest]++;
        }
}
