/* Packets may change what looks like configuration: a mode through a library function, a port through a pointer. Both are state.
 *
 * expect mode: state
 * expect port: state
 * expect step: configuration */
#include "open.h"

static char mode[8] = "a";
static unsigned port, step;
static unsigned *watched;

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    port = 80, step = (unsigned)argc, watched = &port;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        unsigned to = header->caplen >= 38 ? read16(packet + 36) : 0;
        if (to == 22) snprintf(mode, sizeof mode, "%c", 'b');
        if (to == 23) *watched += step;
        if (mode[0] == 'b' || to == port) pcap_dump((u_char *)out, header, packet);
    }
    pcap_dump_close(out);
    return 0;
}
