/* Looks only at packets that a filter lets through; the rest it never gets, and does not send.
 *
 *     filters EXPRESSION IN.pcap OUT.pcap */
#include "../programs/open.h"

static unsigned got, bytes;

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    pcap_t *in = open_capture(argv[2]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[3]);
    struct bpf_program filter;
    if (pcap_compile(in, &filter, argv[1], 1, PCAP_NETMASK_UNKNOWN) != 0 || pcap_setfilter(in, &filter) != 0) return 2;
    pcap_freecode(&filter);
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        got++;
        bytes += header->caplen;
        if (packet[header->caplen - 1] & 1) pcap_dump((u_char *)out, header, packet);
    }
    printf("%u of %s, %u bytes\n", got, argv[1], bytes);
    pcap_dump_close(out);
    pcap_close(in);
    return 0;
}
