/* Counts in local variables of main, which calls the procedure with the packet loop, and sends up to a number of packets of
 * each length.
 *
 *     outer_locals MOST-FILE IN.pcap OUT.pcap LOG */
#include "../programs/open.h"

struct counts {
    unsigned long of[256], refused;
};

static unsigned most;

static void serve(pcap_t *in, pcap_dumper_t *out, FILE *log, struct counts *counts)
{
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        unsigned long *count = &counts->of[header->caplen % 256];
        if (++*count > most) {
            counts->refused++;
            fprintf(log, "%u bytes: %lu\n", header->caplen, *count);
            continue;
        }
        pcap_dump((u_char *)out, header, packet);
    }
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    FILE *given = argc == 5 ? fopen(argv[1], "r") : NULL;
    if (!given || fscanf(given, "%u", &most) != 1) return 2;
    fclose(given);
    FILE *log = fopen(argv[4], "w");
    pcap_t *in = open_capture(argv[2]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[3]);
    if (!log || !out) return 2;
    serve(in, out, log, &counts);
    printf("%lu refused\n", counts.refused);
    fclose(log);
    pcap_dump_close(out);
    pcap_close(in);
    return 0;
}
