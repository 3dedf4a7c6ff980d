/* One member of the decoded packet is not set by every packet, but read by every one: it carries a value from packet to
 * packet, the others do not.
 *
 * expect net: state
 * expect limit: configuration */
#include "open.h"

static struct {
    unsigned length, port, last_port;
} net;
static unsigned limit;

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    limit = (unsigned)argc * 20;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        net.length = header->caplen;
        net.port = net.length >= 38 ? read16(packet + 36) : 0;
        if (net.length > limit) net.last_port = net.port;
        if (net.last_port == 80 || net.port == 53) pcap_dump((u_char *)out, header, packet);
    }
    pcap_dump_close(out);
    return 0;
}
