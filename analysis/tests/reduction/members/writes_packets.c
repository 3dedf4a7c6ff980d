/* Writes into the packets that it receives: the function before it in a chain must not see that. */
#include "../programs/open.h"
#include <unistd.h>

static unsigned changed, by = 1;

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "b:")) != -1)
        if (option == 'b') by = (unsigned)atoi(optarg);
    pcap_t *in = open_capture(argv[optind]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[optind + 1]);
    struct pcap_pkthdr header;
    u_char *packet;
    while ((packet = (u_char *)pcap_next(in, &header))) {
        if (header.caplen > 12) {
            packet[0] = (u_char)(packet[0] + by);
            packet[header.caplen - 1] ^= 0xff;
            changed++;
        }
        pcap_dump((u_char *)out, &header, packet);
    }
    printf("%u changed, to %s\n", changed, argv[optind + 1] ? "a file" : "nothing");
    pcap_dump_close(out);
    return 0;
}
