/* Flows remember the rule that matched first, found before or after: pointers into the configuration keep their identity.
 *
 * expect table: state
 * expect rules: configuration
 * expect count: configuration */
#include "open.h"

struct rule {
    unsigned low, high, verdict;
};

static struct rule *rules;
static unsigned count;
static struct rule *table[256];

static struct rule *find(unsigned port)
{
    for (unsigned i = 0; i < count; i++)
        if (port >= rules[i].low && port <= rules[i].high) return &rules[i];
    return NULL;
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[2]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    count = 3;
    rules = calloc(count, sizeof *rules);
    for (unsigned i = 0; i < count; i++) rules[i] = (struct rule){22 + 29 * i, 23 + 30 * i, i % 2};
    table[7] = &rules[1];
    (void)argc;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        if (header->caplen < 38) continue;
        struct rule **flow = &table[packet[29]];
        if (!*flow) *flow = find(read16(packet + 36));
        if (*flow == &rules[1] || (*flow && (*flow)->verdict)) pcap_dump((u_char *)out, header, packet);
    }
    for (unsigned i = 0; i < 256; i++)
        if (table[i]) printf("%u: %u\n", i, (unsigned)(table[i] - rules));
    pcap_dump_close(out);
    free(rules);
    return 0;
}
