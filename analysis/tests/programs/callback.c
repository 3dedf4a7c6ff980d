/* libpcap calls back for every packet.
 *
 * expect seen: updateable logs
 * expect user_limit: top-level
 * expect configured: persistent
 */
#include "packets.h"
#include <pcap.h>
int seen, user_limit, configured;

static void on_packet(unsigned char *user, const struct pcap_pkthdr *header, const unsigned char *packet) {
    int *limit = (int *)user;
    if (header->caplen > 20 && seen < *limit) seen++;
    printf("%d\n", seen);
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    configured = 1;
    user_limit = atoi(argv[1]);
    pcap_t *capture = pcap_open_offline(argv[2], error);
    pcap_loop(capture, -1, on_packet, (unsigned char *)&user_limit);
    return 0;
}
