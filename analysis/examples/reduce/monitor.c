/* A monitor in the manner of OpenNetVM's: counts the packets and bytes of every flow in a hash table, prints the totals
 * every so many packets if it is told to, and the flows at the end; every packet passes.
 *
 *     monitor [-p PACKETS] [-4] IN.pcap OUT.pcap FLOWS
 *
 * -4 leaves ports out of the key. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 1024, ETHERNET = 14 };

struct key {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint32_t protocol;
};

struct flow {
    struct key key;
    unsigned long packets, bytes;
    struct flow *next;
};

static struct flow *table[BUCKETS];
static unsigned print_delay;
static int with_ports = 1;
static unsigned long packets, bytes;

static uint16_t read16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static uint32_t read32(const uint8_t *at) { return (uint32_t)read16(at) << 16 | read16(at + 2); }

static int parse(const uint8_t *frame, uint32_t length, struct key *key)
{
    memset(key, 0, sizeof *key);
    if (length < ETHERNET + 20 || read16(frame + 12) != 0x0800) return 0;
    const uint8_t *ip = frame + ETHERNET;
    uint32_t header = (ip[0] & 15) * 4u;
    if (ip[0] >> 4 != 4 || header < 20) return 0;
    key->source = read32(ip + 12);
    key->destination = read32(ip + 16);
    key->protocol = ip[9];
    if ((key->protocol == 6 || key->protocol == 17) && length >= ETHERNET + header + 4) {
        key->source_port = read16(ip + header);
        key->destination_port = read16(ip + header + 2);
    }
    return 1;
}

static struct flow *find(const struct key *key)
{
    uint32_t hash = key->source * 2654435761u ^ key->destination * 2246822519u ^
                    ((uint32_t)key->source_port << 16 | key->destination_port) * 3266489917u ^ key->protocol;
    struct flow **at = &table[(hash ^ hash >> 16) % BUCKETS];
    for (; *at; at = &(*at)->next)
        if (memcmp(&(*at)->key, key, sizeof *key) == 0) return *at;
    *at = calloc(1, sizeof **at);
    if (*at) (*at)->key = *key;
    return *at;
}

static void count(const struct pcap_pkthdr *header, const uint8_t *frame)
{
    struct key key;
    packets++;
    bytes += header->len;
    if (print_delay && packets % print_delay == 0) printf("%lu packets, %lu bytes\n", packets, bytes);
    if (!parse(frame, header->caplen, &key)) return;
    if (!with_ports) key.source_port = key.destination_port = 0;
    struct flow *flow = find(&key);
    if (!flow) return;
    flow->packets++;
    flow->bytes += header->len;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "monitor: %s: %s\n", what, why);
    exit(1);
}

static void print_flows(const char *file)
{
    FILE *to = fopen(file, "w");
    if (!to) fail(file, "cannot be written");
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct flow *flow = table[i]; flow; flow = flow->next)
            fprintf(to, "%08x:%u %08x:%u %u: %lu packets, %lu bytes\n", flow->key.source, flow->key.source_port,
                    flow->key.destination, flow->key.destination_port, flow->key.protocol, flow->packets, flow->bytes);
    fclose(to);
}

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const u_char *packet;
    int option, got;
    while ((option = getopt(argc, argv, "p:4")) != -1) {
        if (option == 'p') print_delay = (unsigned)atoi(optarg);
        else if (option == '4') with_ports = 0;
        else return 2;
    }
    if (argc - optind != 3) fail("usage", "monitor [-p PACKETS] [-4] IN.pcap OUT.pcap FLOWS");
    pcap_t *in = pcap_open_offline(argv[optind], error);
    if (!in) fail(argv[optind], error);
    pcap_dumper_t *out = pcap_dump_open(in, argv[optind + 1]);
    if (!out) fail(argv[optind + 1], pcap_geterr(in));
    while ((got = pcap_next_ex(in, &header, &packet)) >= 0) {
        if (got == 0) continue;
        count(header, packet);
        pcap_dump((u_char *)out, header, packet);
    }
    print_flows(argv[optind + 2]);
    printf("%lu packets, %lu bytes\n", packets, bytes);
    pcap_dump_close(out);
    pcap_close(in);
    return 0;
}
