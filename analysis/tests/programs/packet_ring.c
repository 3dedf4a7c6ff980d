/* An AF_PACKET ring that the kernel writes into: no function receives, so the one that hands out frames is named.
 *
 * options --receive next_frame:packet=return
 *
 * ring and next lead to the frames; release changes a frame's status. What is sent depends on the count of packets with
 * SYN, which is kept per destination.
 *
 * expect ring: updateable packets
 * expect next: updateable packets -
 * expect opened: updateable packets dst_ip
 * expect frames: top-level -
 */
#include "packets.h"
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <poll.h>
char *ring;
unsigned next, frames = 256;
int opened[65536];

__attribute__((noinline)) struct tpacket2_hdr *next_frame(void) {
    struct tpacket2_hdr *frame = (struct tpacket2_hdr *)(ring + next * 2048);
    struct pollfd ready = {device, POLLIN, 0};
    while (!(frame->tp_status & TP_STATUS_USER)) poll(&ready, 1, -1);
    next = (next + 1) % frames;
    return frame;
}

static void release(struct tpacket2_hdr *frame) { frame->tp_status = TP_STATUS_KERNEL; }

int main(void) {
    device = socket(PF_PACKET, SOCK_RAW, 0);
    ring = mmap(NULL, frames * 2048, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
    for (;;) {
        struct tpacket2_hdr *frame = next_frame();
        char *packet = (char *)frame + frame->tp_net;
        unsigned at = IP(packet)->daddr & 0xffff;
        if (TCP(packet)->syn) opened[at]++;
        if (opened[at] < 100) send(device, packet, frame->tp_len, 0);
        release(frame);
    }
}
