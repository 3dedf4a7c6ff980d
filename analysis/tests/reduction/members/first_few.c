/* Sends on what it receives, but leaves its loop after some packets, from within another loop; what it prints at the end
 * follows. */
#include "../programs/open.h"

static unsigned long sum;

static int bytes_of(const u_char *packet, unsigned length)
{
    int odd = 0;
    for (unsigned i = 0; i < length; i++) {
        if (i == 60) break;
        odd ^= packet[i] & 1;
        sum += packet[i];
    }
    return odd;
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    unsigned left = argc > 3 ? (unsigned)atoi(argv[3]) : 10;
    struct pcap_pkthdr *header;
    const u_char *packet;
    int rounds = 0;
    for (;;) {
        rounds++;
        int got = pcap_next_ex(in, &header, &packet);
        if (got < 0) break;
        if (bytes_of(packet, header->caplen)) continue;
        pcap_dump((u_char *)out, header, packet);
        if (--left == 0) {
            printf("enough\n");
            break;
        }
    }
    printf("rounds %d, left %u, sum %lu\n", rounds, left, sum);
    pcap_dump_close(out);
    return left ? 3 : 0;
}
