/* Packets change a member of every element of two arrays on the heap, and read the members behind it: what is changed in
 * the first element is changed in all. Elements of the one are numbers wide, those of the other three bytes.
 *
 * expect rules: configuration
 * expect marks: configuration
 * unrolled 4 */
#include "open.h"

struct rule {
    unsigned short port, left;
    unsigned long unused;
};

struct mark {
    unsigned char protocol, seen, kept;
};

static struct rule *rules;
static struct mark *marks;
static unsigned count;

static void configure(void)
{
    for (unsigned port = 80; port < 84; port++) {
        rules = realloc(rules, (count + 1) * sizeof *rules);
        rules[count] = (struct rule){port, 3, port};
        marks = realloc(marks, (count + 1) * sizeof *marks);
        marks[count] = (struct mark){count * 6, 0, 1};
        count++;
    }
}

static void process(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    if (header->caplen < 38) return;
    for (unsigned i = 0; i < count; i++) {
        if (marks[i].protocol == packet[23] && marks[i].kept) marks[i].seen++;
        if (rules[i].port != read16(packet + 36) || !rules[i].left) continue;
        rules[i].left--;
        return;
    }
    pcap_dump(user, header, packet);
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[argc - 1]);
    configure();
    pcap_loop(in, -1, process, (u_char *)out);
    pcap_dump_close(out);
    for (unsigned i = 0; i < count; i++)
        printf("%u %u, %u %u %lu\n", marks[i].protocol, marks[i].seen, rules[i].port, rules[i].left, rules[i].unused);
    return 0;
}
