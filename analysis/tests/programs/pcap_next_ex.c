/* A meter over a capture: bytes per protocol by the header's length, first and last time of a packet.
 *
 * `first` is stored to by packet code once and logged; `kinds` is indexed by the IP protocol.
 *
 * expect kinds: updateable logs proto
 * expect first: updateable logs
 * expect last: updateable logs
 * expect offline: persistent
 */
#include "packets.h"
#include <pcap.h>
struct kind { unsigned long packets, bytes; };
struct kind kinds[256];
struct timeval first, last;
int offline;

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const unsigned char *packet;
    offline = 1;
    pcap_t *capture = pcap_open_offline(argv[1], error);
    while (pcap_next_ex(capture, &header, &packet) == 1) {
        struct iphdr *ip = (struct iphdr *)(packet + 14);
        if (header->caplen < 34) continue;
        if (!first.tv_sec) first = header->ts;
        last = header->ts;
        kinds[ip->protocol].packets++;
        kinds[ip->protocol].bytes += header->len;
    }
    for (int at = 0; at < 256; at++)
        if (kinds[at].packets)
            printf("%d %lu %lu in %ld s\n", at, kinds[at].packets, kinds[at].bytes, last.tv_sec - first.tv_sec);
}
