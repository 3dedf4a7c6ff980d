/* A function that calls itself cannot be inlined; the initialization calls it too, before its rules are complete. What
 * processes packets is a copy of it, into which the rules, and what all packets' calls pass alike, are built.
 *
 * expect rules: configuration
 * expect limit: configuration
 * unrolled 3 */
#include "open.h"

struct rule {
    struct rule *next;
    unsigned port, answer;
};

static struct rule *rules;
static unsigned limit = 1;

static void add(unsigned port, unsigned answer)
{
    struct rule *rule = malloc(sizeof *rule);
    if (!rule) abort();
    rule->port = port;
    rule->answer = answer;
    rule->next = rules;
    rules = rule;
}

/* The first answer to ports that are halved, up to a number of times. */
static unsigned answer(unsigned port, unsigned times, unsigned otherwise)
{
    for (struct rule *rule = rules; rule; rule = rule->next)
        if (rule->port == port) return rule->answer;
    return times < limit ? answer(port / 2, times + 1, otherwise) : otherwise;
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[argc - 1]);
    struct pcap_pkthdr *header;
    const u_char *packet;
    add(80, 2);
    add(53, answer(160, 0, 9));
    add(22, answer(44, 1, 3));
    printf("%u %u\n", rules->answer, rules->next->answer);
    limit = 4;
    while (pcap_next_ex(in, &header, &packet) == 1) {
        if (header->caplen < 38) continue;
        unsigned found = answer(read16(packet + 36), 0, 5);
        printf("%u\n", found);
        if (found > 2) pcap_dump((u_char *)out, header, packet);
    }
    pcap_dump_close(out);
    return 0;
}
