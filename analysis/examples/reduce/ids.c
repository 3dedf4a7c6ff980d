/* A small intrusion detection system in the manner of Snort as Figure 1 of Deng and Wu's NFReducer simplifies it: decodes
 * every packet into one global structure, then walks a linked list of rules to the first that matches.
 *
 *     ids -c RULES -r IN.pcap -w OUT.pcap -l LOG [-v]
 *
 * A rule: `alert|drop|pass  ip|tcp|udp|icmp  FROM PORTS -> TO PORTS [checksum:bad] ["MESSAGE"]`, addresses as
 * `any` or A.B.C.D/N, ports as `any`, N or N:M. -v writes every packet to the log. */
#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ETHERNET = 14, ETHERTYPE_IP = 0x0800, ICMP = 1, TCP = 6, UDP = 17, ANY = 0 };
enum action { PASS, ALERT, DROP };

struct rule {
    enum action action;
    uint8_t protocol;
    uint8_t bad_checksum;
    uint32_t source, source_mask, destination, destination_mask;
    uint16_t source_low, source_high, destination_low, destination_high;
    char *message;
    struct rule *next;
};

/* What is known of the packet at hand. */
static struct {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint16_t length, fragment, payload;
    uint8_t protocol, ttl, tcp_flags, icmp_type;
    uint8_t is_ip, good_checksum;
    uint32_t sequence, acknowledged;
} net;

static struct rule *rules;
static FILE *log_file;
static pcap_dumper_t *out;
static int verbose;
static struct { unsigned long packets, dropped, alerts, tcp, udp, icmp, other; } counted;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "ids: %s: %s\n", what, why);
    exit(1);
}

static uint16_t read16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static uint32_t read32(const uint8_t *at) { return (uint32_t)read16(at) << 16 | read16(at + 2); }

/* RFC 1071's sum over a number of bytes. */
static uint32_t sum(const uint8_t *at, uint32_t length, uint32_t begin)
{
    for (uint32_t i = 0; i + 1 < length; i += 2) begin += read16(at + i);
    if (length & 1) begin += (uint32_t)at[length - 1] << 8;
    return begin;
}

static int sums_to_zero(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

static uint32_t pseudo_header(const uint8_t *ip, uint32_t length)
{
    return sum(ip + 12, 8, 0) + ip[9] + length;
}

static void decode_tcp(const uint8_t *ip, const uint8_t *tcp, uint32_t length)
{
    counted.tcp++;
    if (length < 20) return;
    net.source_port = read16(tcp);
    net.destination_port = read16(tcp + 2);
    net.sequence = read32(tcp + 4);
    net.acknowledged = read32(tcp + 8);
    net.tcp_flags = tcp[13];
    net.payload = (uint16_t)(length - 20);
    net.good_checksum &= sums_to_zero(sum(tcp, length, pseudo_header(ip, length)));
    if (verbose) fprintf(log_file, "tcp %u -> %u\n", net.source_port, net.destination_port);
}

static void decode_udp(const uint8_t *ip, const uint8_t *udp, uint32_t length)
{
    counted.udp++;
    if (length < 8) return;
    net.source_port = read16(udp);
    net.destination_port = read16(udp + 2);
    net.payload = (uint16_t)(length - 8);
    if (read16(udp + 6) != 0) net.good_checksum &= sums_to_zero(sum(udp, length, pseudo_header(ip, length)));
    if (verbose) fprintf(log_file, "udp %u -> %u\n", net.source_port, net.destination_port);
}

static void decode_icmp(const uint8_t *icmp, uint32_t length)
{
    counted.icmp++;
    if (length < 8) return;
    net.icmp_type = icmp[0];
    net.payload = (uint16_t)(length - 8);
    net.good_checksum &= sums_to_zero(sum(icmp, length, 0));
    if (verbose) fprintf(log_file, "icmp %u\n", net.icmp_type);
}

static void decode_ip(const uint8_t *ip, uint32_t length)
{
    if (length < 20 || ip[0] >> 4 != 4) return;
    uint32_t header = (ip[0] & 15) * 4u, total = read16(ip + 2);
    if (header < 20 || total < header || total > length) return;
    net.is_ip = 1;
    net.source = read32(ip + 12);
    net.destination = read32(ip + 16);
    net.protocol = ip[9];
    net.ttl = ip[8];
    net.length = (uint16_t)total;
    net.fragment = read16(ip + 6) & 0x1fff;
    net.good_checksum = sums_to_zero(sum(ip, header, 0)) != 0;
    if (verbose) fprintf(log_file, "ip %08x -> %08x protocol %u\n", net.source, net.destination, net.protocol);
    if (net.fragment) return;
    if (net.protocol == TCP)
        decode_tcp(ip, ip + header, total - header);
    else if (net.protocol == UDP)
        decode_udp(ip, ip + header, total - header);
    else if (net.protocol == ICMP)
        decode_icmp(ip + header, total - header);
    else
        counted.other++;
}

static void decode_ethernet(const uint8_t *frame, uint32_t length)
{
    memset(&net, 0, sizeof net);
    if (length < ETHERNET || read16(frame + 12) != ETHERTYPE_IP) return;
    decode_ip(frame + ETHERNET, length - ETHERNET);
}

static int matches(const struct rule *rule)
{
    if (rule->protocol != ANY && rule->protocol != net.protocol) return 0;
    if ((net.source & rule->source_mask) != rule->source) return 0;
    if ((net.destination & rule->destination_mask) != rule->destination) return 0;
    if (net.source_port < rule->source_low || net.source_port > rule->source_high) return 0;
    if (net.destination_port < rule->destination_low || net.destination_port > rule->destination_high) return 0;
    if (rule->bad_checksum && net.good_checksum) return 0;
    return 1;
}

static enum action apply_rules(void)
{
    if (!net.is_ip) return PASS;
    for (const struct rule *rule = rules; rule; rule = rule->next)
        if (matches(rule)) {
            if (rule->action != PASS) {
                counted.alerts++;
                fprintf(log_file, "%s: %08x -> %08x\n", rule->message, net.source, net.destination);
            }
            return rule->action;
        }
    return PASS;
}

static void process(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    (void)user;
    counted.packets++;
    decode_ethernet(packet, header->caplen);
    if (apply_rules() == DROP)
        counted.dropped++;
    else
        pcap_dump((u_char *)out, header, packet);
}

static void read_address(const char *word, uint32_t *address, uint32_t *mask)
{
    char text[32];
    unsigned bits = 32;
    struct in_addr parsed;
    *address = *mask = 0;
    if (strcmp(word, "any") == 0) return;
    snprintf(text, sizeof text, "%s", word);
    char *slash = strchr(text, '/');
    if (slash) {
        *slash = 0;
        bits = (unsigned)atoi(slash + 1);
    }
    if (bits > 32 || inet_pton(AF_INET, text, &parsed) != 1) fail(word, "this is no address");
    *mask = bits ? 0xffffffffu << (32 - bits) : 0;
    *address = ntohl(parsed.s_addr) & *mask;
}

static void read_ports(const char *word, uint16_t *low, uint16_t *high)
{
    *low = 0;
    *high = 0xffff;
    if (strcmp(word, "any") == 0) return;
    const char *colon = strchr(word, ':');
    *low = *high = (uint16_t)atoi(word);
    if (colon) *high = (uint16_t)atoi(colon + 1);
}

static uint8_t read_protocol(const char *word)
{
    if (strcmp(word, "ip") == 0) return ANY;
    if (strcmp(word, "tcp") == 0) return TCP;
    if (strcmp(word, "udp") == 0) return UDP;
    if (strcmp(word, "icmp") == 0) return ICMP;
    fail(word, "this is no protocol: ip, tcp, udp or icmp");
    return ANY;
}

static enum action read_action(const char *word)
{
    if (strcmp(word, "pass") == 0) return PASS;
    if (strcmp(word, "alert") == 0) return ALERT;
    if (strcmp(word, "drop") == 0) return DROP;
    fail(word, "this is no action: pass, alert or drop");
    return PASS;
}

static void load_rules(const char *file)
{
    char line[512];
    FILE *in = fopen(file, "r");
    if (!in) fail(file, "cannot be read");
    struct rule **last = &rules;
    while (fgets(line, sizeof line, in)) {
        char action[16], protocol[16], from[32], from_ports[16], to[32], to_ports[16];
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%15s %15s %31s %15s -> %31s %15s", action, protocol, from, from_ports, to, to_ports) != 6)
            fail(line, "this is no rule");
        struct rule *rule = calloc(1, sizeof *rule);
        if (!rule) fail(file, "out of memory");
        rule->action = read_action(action);
        rule->protocol = read_protocol(protocol);
        read_address(from, &rule->source, &rule->source_mask);
        read_address(to, &rule->destination, &rule->destination_mask);
        read_ports(from_ports, &rule->source_low, &rule->source_high);
        read_ports(to_ports, &rule->destination_low, &rule->destination_high);
        rule->bad_checksum = strstr(line, "checksum:bad") != NULL;
        char *quote = strchr(line, '"');
        char *end = quote ? strchr(quote + 1, '"') : NULL;
        rule->message = end ? strndup(quote + 1, (size_t)(end - quote - 1)) : strdup("rule");
        *last = rule;
        last = &rule->next;
    }
    fclose(in);
}

int main(int argc, char **argv)
{
    const char *rules_name = NULL, *in_name = NULL, *out_name = NULL, *log_name = NULL;
    char error[PCAP_ERRBUF_SIZE];
    int option;
    while ((option = getopt(argc, argv, "c:r:w:l:v")) != -1) {
        if (option == 'c') rules_name = optarg;
        else if (option == 'r') in_name = optarg;
        else if (option == 'w') out_name = optarg;
        else if (option == 'l') log_name = optarg;
        else if (option == 'v') verbose = 1;
        else return 2;
    }
    if (!rules_name || !in_name || !out_name || !log_name) fail("usage", "ids -c RULES -r IN -w OUT -l LOG [-v]");
    load_rules(rules_name);
    pcap_t *in = pcap_open_offline(in_name, error);
    if (!in) fail(in_name, error);
    out = pcap_dump_open(in, out_name);
    if (!out) fail(out_name, pcap_geterr(in));
    log_file = fopen(log_name, "w");
    if (!log_file) fail(log_name, "cannot be written");
    if (pcap_loop(in, -1, process, NULL) < 0) fail(in_name, pcap_geterr(in));
    printf("%lu packets, %lu dropped, %lu alerts; tcp %lu, udp %lu, icmp %lu, other %lu\n", counted.packets,
           counted.dropped, counted.alerts, counted.tcp, counted.udp, counted.icmp, counted.other);
    fclose(log_file);
    pcap_dump_close(out);
    pcap_close(in);
    while (rules) {
        struct rule *next = rules->next;
        free(rules->message);
        free(rules);
        rules = next;
    }
    return 0;
}
