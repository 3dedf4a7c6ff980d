/* Counts packets by source in a table of which the configuration says how large it is, and sends every other one of each
 * place in it.
 *
 *     sized_table SIZE-FILE IN.pcap OUT.pcap LOG */
#include "../programs/open.h"

static unsigned long *table;
static unsigned size;

int main(int argc, char **argv)
{
    FILE *sizes = argc == 5 ? fopen(argv[1], "r") : NULL;
    if (!sizes || fscanf(sizes, "%u", &size) != 1 || !size) return 2;
    fclose(sizes);
    table = calloc(size, sizeof *table);
    FILE *log = fopen(argv[4], "w");
    pcap_t *in = open_capture(argv[2]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[3]);
    if (!table || !log || !out) return 2;
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        if (header->caplen < 30) continue;
        unsigned place = read16(packet + 28) % size;
        table[place]++;
        fprintf(log, "%u: %lu\n", place, table[place]);
        if (table[place] & 1) pcap_dump((u_char *)out, header, packet);
    }
    for (unsigned i = 0; i < size; i++)
        if (table[i]) printf("%u: %lu packets\n", i, table[i]);
    fclose(log);
    pcap_dump_close(out);
    pcap_close(in);
    return 0;
}
