/* Sends packets of its own making, then looks at what it sent: twice the same, and some cut. */
#include "../programs/open.h"
#include <unistd.h>

static u_char copy[65536];
static unsigned sent, differ;

static void send_it(pcap_dumper_t *out, const struct pcap_pkthdr *header)
{
    u_char first = copy[0];
    pcap_dump((u_char *)out, header, copy);
    sent++;
    differ += copy[0] != first;
}

static void process(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    struct pcap_pkthdr cut = *header;
    memcpy(copy, packet, header->caplen);
    copy[0] ^= 1;
    if (cut.caplen > 40) cut.caplen = 40;
    send_it((pcap_dumper_t *)user, header);
    send_it((pcap_dumper_t *)user, &cut);
}

int main(int argc, char **argv)
{
    int option, most = -1;
    while ((option = getopt(argc, argv, "m:")) != -1) most = atoi(optarg);
    pcap_t *in = open_capture(argv[optind]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[optind + 1]);
    pcap_loop(in, most, process, (u_char *)out);
    printf("%u sent, %u differ, %d\n", sent, differ, optind);
    pcap_dump_close(out);
    return 0;
}
