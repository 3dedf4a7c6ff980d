/* Rules with counters in them, and flows that remember which rule they met: state that leads to configuration, and state
 * within configuration.
 *
 *     rule_hits RULES IN.pcap OUT.pcap
 *
 * A rule is a line `PORT pass|drop`; the first with a packet's destination port counts. At the end it prints the hits of every
 * rule, and for every flow its packets and its rule. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    unsigned port;
    int passes;
    unsigned long hits;
    char *text;
    struct rule *next;
};

struct flow {
    uint32_t source;
    unsigned long packets;
    struct rule *last;
    struct flow *next;
};

enum { BUCKETS = 64 };

static struct rule *rules;
static struct flow **flows;
static unsigned long others;

static struct flow *find(uint32_t source)
{
    struct flow **at = &flows[source % BUCKETS];
    for (; *at; at = &(*at)->next)
        if ((*at)->source == source) return *at;
    *at = calloc(1, sizeof **at);
    if (!*at) exit(1);
    (*at)->source = source;
    return *at;
}

int main(int argc, char **argv)
{
    char line[100], word[16], error[PCAP_ERRBUF_SIZE];
    if (argc != 4) return 2;
    FILE *in = fopen(argv[1], "r");
    if (!in) return 2;
    struct rule **end = &rules;
    while (fgets(line, sizeof line, in)) {
        struct rule *rule = calloc(1, sizeof *rule);
        if (!rule || sscanf(line, "%u %15s", &rule->port, word) != 2) return 2;
        rule->passes = strcmp(word, "pass") == 0;
        rule->text = strdup(line);
        *end = rule;
        end = &rule->next;
    }
    fclose(in);
    flows = calloc(BUCKETS, sizeof *flows);
    pcap_t *device = pcap_open_offline(argv[2], error);
    pcap_dumper_t *out = device ? pcap_dump_open(device, argv[3]) : NULL;
    if (!out || !flows) return 2;
    struct pcap_pkthdr *header;
    const u_char *packet;
    while (pcap_next_ex(device, &header, &packet) == 1) {
        if (header->caplen < 38) continue;
        uint32_t source = (uint32_t)packet[26] << 24 | packet[27] << 16 | packet[28] << 8 | packet[29];
        unsigned port = (unsigned)packet[36] << 8 | packet[37];
        struct flow *flow = find(source);
        flow->packets++;
        struct rule *rule = rules;
        while (rule && rule->port != port) rule = rule->next;
        if (rule) {
            rule->hits++;
            flow->last = rule;
        } else {
            others++;
        }
        if (!rule || rule->passes) pcap_dump((u_char *)out, header, packet);
    }
    for (struct rule *rule = rules; rule; rule = rule->next) printf("%lu of %s", rule->hits, rule->text);
    printf("%lu others\n", others);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct flow *flow = flows[i]; flow; flow = flow->next)
            printf("%08x: %lu, %s", flow->source, flow->packets, flow->last ? flow->last->text : "none\n");
    pcap_dump_close(out);
    pcap_close(device);
    return 0;
}
