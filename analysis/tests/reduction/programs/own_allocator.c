/* Rules and counters come from one allocator of the program's own, which asks for memory in one place: they are told apart
 * by who called it, so that the counters stay and the rules are constants. One rule is inserted by a packet.
 *
 * expect rules: configuration
 * expect table: configuration
 * expect learned: state
 * unrolled 3 */
#include "open.h"

struct rule {
    struct rule *next;
    unsigned port;
};

static struct rule *rules, *learned;
static unsigned *table;

static void *take(size_t size)
{
    void *block = malloc(size);
    if (!block) abort();
    return memset(block, 0, size);
}

static struct rule *make(unsigned port)
{
    struct rule *rule = take(sizeof *rule);
    rule->port = port;
    return rule;
}

static void configure(void)
{
    for (unsigned port = 82; port > 79; port--) {
        struct rule *rule = make(port);
        rule->next = rules;
        rules = rule;
    }
    table = take(256 * sizeof *table);
}

static int find(unsigned port)
{
    for (struct rule *rule = rules; rule; rule = rule->next)
        if (rule->port == port) return 1;
    return learned && learned->port == port;
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[argc - 1]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    configure();
    while (pcap_next_ex(in, &header, &packet) == 1) {
        if (header->caplen < 38) continue;
        unsigned port = read16(packet + 36);
        table[port % 256]++;
        if (port == 1000 && !learned) learned = make(53);
        if (find(port) || table[22] == 3) pcap_dump((u_char *)out, header, packet);
    }
    for (unsigned i = 0; i < 256; i++)
        if (table[i]) printf("%u %u\n", i, table[i]);
    pcap_dump_close(out);
    return 0;
}
