/* The configuration says which functions process which protocol; what comes from the clock is no constant.
 *
 * expect handlers: configuration
 * expect begin: configuration */
#include "open.h"
#include <time.h>

typedef int handler(const u_char *, unsigned);
static handler *handlers[256];
static time_t begin;

static int even(const u_char *packet, unsigned length) { return length >= 38 && read16(packet + 36) % 2 == 0; }
static int any(const u_char *packet, unsigned length) { return packet[0] + length > 0; }

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    begin = time(NULL) + (time_t)(uintptr_t)clock();
    handlers[6] = even;
    handlers[17] = argc > 3 ? even : any;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        if (header->caplen < 24 || begin == 0) continue;
        handler *handle = handlers[packet[23]];
        if (handle && handle(packet, header->caplen)) pcap_dump((u_char *)out, header, packet);
    }
    pcap_dump_close(out);
    return 0;
}
