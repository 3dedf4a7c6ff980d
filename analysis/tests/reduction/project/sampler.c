/* Sends one of so many packets of each place.
 *
 *     sampler EVERY-FILE IN.pcap OUT.pcap */
#include "place.h"
#include <pcap/pcap.h>
#include <stdio.h>

static unsigned long seen[16];

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    if (argc != 4) return 2;
    unsigned every = every_of(argv[1], 2);
    pcap_t *in = pcap_open_offline(argv[2], error);
    pcap_dumper_t *out = in ? pcap_dump_open(in, argv[3]) : NULL;
    if (!out) return 2;
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(in, &header, &packet) == 1)
        if (seen[place_of(packet, header->caplen)]++ % every == 0) pcap_dump((u_char *)out, header, packet);
    for (unsigned i = 0; i < 16; i++) printf("%u: %lu\n", i, seen[i]);
    pcap_dump_close(out);
    pcap_close(in);
    return 0;
}
