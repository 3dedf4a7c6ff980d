/* A firewall in the manner of OpenNetVM's: an array of rules over addresses, protocol and destination ports, a default,
 * and counters; packets that pass leave with a smaller TTL.
 *
 *     firewall RULES IN.pcap OUT.pcap
 *
 * A rule: `accept|drop  any|tcp|udp  FROM/BITS  TO/BITS  LOW HIGH`; a line `default accept|drop`. */
#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 16384, LARGEST = 65536, ETHERNET = 14 };

struct entry {
    uint32_t source, source_mask, destination, destination_mask;
    uint16_t low, high;
    uint8_t protocol, accept;
};

struct firewall {
    struct entry entries[MOST_RULES];
    unsigned count;
    int accept_by_default;
};

struct counters {
    unsigned long accepted, dropped, malformed;
};

struct headers {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint8_t protocol, ttl, options;
};

static uint16_t read16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static uint32_t read32(const uint8_t *at) { return (uint32_t)read16(at) << 16 | read16(at + 2); }

static int parse(const uint8_t *frame, uint32_t length, struct headers *headers)
{
    memset(headers, 0, sizeof *headers);
    if (length < ETHERNET + 20 || read16(frame + 12) != 0x0800) return 0;
    const uint8_t *ip = frame + ETHERNET;
    uint32_t words = ip[0] & 15, ip_length = length - ETHERNET;
    if (ip[0] >> 4 != 4 || words < 5 || words * 4 > ip_length) return 0;
    headers->options = words > 5;
    headers->ttl = ip[8];
    headers->protocol = ip[9];
    headers->source = read32(ip + 12);
    headers->destination = read32(ip + 16);
    if ((headers->protocol == 6 || headers->protocol == 17) && ip_length >= words * 4 + 4) {
        headers->source_port = read16(ip + words * 4);
        headers->destination_port = read16(ip + words * 4 + 2);
    }
    return 1;
}

static int accepts(const struct firewall *firewall, const struct headers *headers)
{
    for (unsigned i = 0; i < firewall->count; i++) {
        const struct entry *entry = &firewall->entries[i];
        if (entry->protocol && entry->protocol != headers->protocol) continue;
        if ((headers->source & entry->source_mask) != entry->source) continue;
        if ((headers->destination & entry->destination_mask) != entry->destination) continue;
        if (headers->destination_port < entry->low || headers->destination_port > entry->high) continue;
        return entry->accept;
    }
    return firewall->accept_by_default;
}

/* Decrement the TTL, and adapt the checksum as RFC 1624 does. */
static void decrement_ttl(uint8_t *ip)
{
    uint32_t sum = read16(ip + 10) + 0x0100u;
    ip[8]--;
    sum = (sum & 0xffff) + (sum >> 16);
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "firewall: %s: %s\n", what, why);
    exit(1);
}

static uint32_t address(const char *text, uint32_t *mask)
{
    char copy[32];
    struct in_addr parsed;
    snprintf(copy, sizeof copy, "%s", text);
    char *slash = strchr(copy, '/');
    if (!slash) fail(text, "an address has a length: A.B.C.D/N");
    *slash = 0;
    int bits = atoi(slash + 1);
    if (bits < 0 || bits > 32 || inet_pton(AF_INET, copy, &parsed) != 1) fail(text, "this is no address");
    *mask = bits ? 0xffffffffu << (32 - bits) : 0;
    return ntohl(parsed.s_addr) & *mask;
}

static struct firewall *configure(const char *file)
{
    char line[256], verdict[16], protocol[16], from[32], to[32];
    unsigned low, high;
    FILE *in = fopen(file, "r");
    if (!in) fail(file, "cannot be read");
    struct firewall *firewall = calloc(1, sizeof *firewall);
    if (!firewall) fail(file, "out of memory");
    while (fgets(line, sizeof line, in)) {
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "default %15s", verdict) == 1) {
            firewall->accept_by_default = strcmp(verdict, "accept") == 0;
            continue;
        }
        if (sscanf(line, "%15s %15s %31s %31s %u %u", verdict, protocol, from, to, &low, &high) != 6)
            fail(line, "this is no rule");
        if (firewall->count == MOST_RULES) fail(file, "too many rules");
        struct entry *entry = &firewall->entries[firewall->count++];
        entry->accept = strcmp(verdict, "accept") == 0;
        entry->protocol = strcmp(protocol, "tcp") == 0 ? 6 : strcmp(protocol, "udp") == 0 ? 17 : 0;
        entry->source = address(from, &entry->source_mask);
        entry->destination = address(to, &entry->destination_mask);
        entry->low = (uint16_t)low;
        entry->high = (uint16_t)high;
    }
    fclose(in);
    return firewall;
}

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    static uint8_t copy[LARGEST];
    struct counters counters = {0, 0, 0};
    struct pcap_pkthdr *header;
    const u_char *packet;
    int got;
    if (argc != 4) fail("usage", "firewall RULES IN.pcap OUT.pcap");
    struct firewall *firewall = configure(argv[1]);
    pcap_t *in = pcap_open_offline(argv[2], error);
    if (!in) fail(argv[2], error);
    pcap_dumper_t *out = pcap_dump_open(in, argv[3]);
    if (!out) fail(argv[3], pcap_geterr(in));
    while ((got = pcap_next_ex(in, &header, &packet)) >= 0) {
        struct headers headers;
        if (got == 0) continue;
        if (header->caplen > LARGEST || !parse(packet, header->caplen, &headers)) {
            counters.malformed++;
            continue;
        }
        if (headers.ttl <= 1 || !accepts(firewall, &headers)) {
            counters.dropped++;
            continue;
        }
        memcpy(copy, packet, header->caplen);
        decrement_ttl(copy + ETHERNET);
        counters.accepted++;
        pcap_dump((u_char *)out, header, copy);
    }
    printf("accepted %lu, dropped %lu, malformed %lu\n", counters.accepted, counters.dropped, counters.malformed);
    pcap_dump_close(out);
    pcap_close(in);
    free(firewall);
    return 0;
}
