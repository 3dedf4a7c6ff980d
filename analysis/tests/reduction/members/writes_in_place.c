/* Writes into the packets that it receives, where libpcap has them, looks at them before and after, and sends them. */
#include "../programs/open.h"

static unsigned before, after;

int main(int argc, char **argv)
{
    (void)argc;
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(in, &header, &packet) >= 0) {
        if (header->caplen < 34) continue;
        u_char *own = (u_char *)packet;
        before += packet[22];
        own[22] = (u_char)(own[22] - 1);
        after += packet[22];
        if (packet[22] > 128) continue;
        own[23] ^= (u_char)(packet[22] & 1);
        pcap_dump((u_char *)out, header, packet);
    }
    printf("%u before, %u after\n", before, after);
    pcap_dump_close(out);
    return 0;
}
