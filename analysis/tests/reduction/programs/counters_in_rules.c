/* Every rule counts its hits beside what is configured: the rules' other members are constants, the counters stay, and the
 * list is freed at the end.
 *
 * expect rules: configuration
 * unrolled 3 */
#include "open.h"

struct rule {
    unsigned port;
    unsigned long hits;
    char name[8];
    struct rule *next;
};

static struct rule *rules;

static void configure(void)
{
    for (unsigned port = 82; port > 79; port--) {
        struct rule *rule = malloc(sizeof *rule);
        *rule = (struct rule){port, 0, "", rules};
        snprintf(rule->name, sizeof rule->name, "r%u", port);
        rules = rule;
    }
}

static void process(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    pcap_dumper_t *out = (pcap_dumper_t *)user;
    if (header->caplen < 38) return;
    for (struct rule *rule = rules; rule; rule = rule->next)
        if (rule->port == read16(packet + 36)) {
            rule->hits++;
            return;
        }
    pcap_dump((u_char *)out, header, packet);
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[argc - 1]);
    configure();
    pcap_loop(in, -1, process, (u_char *)out);
    pcap_dump_close(out);
    while (rules) {
        struct rule *next = rules->next;
        printf("%s %lu\n", rules->name, rules->hits);
        free(rules);
        rules = next;
    }
    return 0;
}
