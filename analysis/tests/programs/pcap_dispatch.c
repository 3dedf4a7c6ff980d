/* libpcap calls back for packets while a second device is polled in the same loop.
 *
 * inside and outside come in as user data of the two callbacks; what one callback changes, the other one reads.
 * handles is used for the handles of pcap_dispatch and pcap_inject alone, so it is not top-level.
 *
 * expect inside: updateable packets
 * expect outside: updateable packets
 * expect handles: persistent
 */
#include "packets.h"
#include <pcap.h>
struct side { struct side *other; unsigned long packets; pcap_t *out; };
struct side inside, outside;
pcap_t *handles[2];

static void on_packet(unsigned char *user, const struct pcap_pkthdr *header, const unsigned char *packet) {
    struct side *side = (struct side *)user;
    side->packets++;
    if (side->other->packets > side->packets / 2) pcap_inject(side->out, packet, header->caplen);
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    handles[0] = pcap_open_live(argv[1], 65535, 1, 10, error);
    handles[1] = pcap_open_live(argv[2], 65535, 1, 10, error);
    inside.other = &outside, inside.out = handles[1];
    outside.other = &inside, outside.out = handles[0];
    for (;;) {
        pcap_dispatch(handles[0], 64, on_packet, (unsigned char *)&inside);
        pcap_dispatch(handles[1], 64, on_packet, (unsigned char *)&outside);
    }
}
