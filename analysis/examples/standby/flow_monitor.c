/* A flow monitor: reads a capture, follows its flows, and logs each flow that ends, grows silent, or scans.
 *
 *     flow_monitor CAPTURE
 *
 * Its state is what monitors have: a hash table of chains, an intrusive list by time of last use, a search tree of
 * hosts, a ring of recent events, methods by protocol, names, and counters. */
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pcap.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define MOST_FLOWS 5000
#define IDLE_SECONDS 60
#define SCAN_PORTS 12
#define RECENT 32

struct link {
    struct link *before, *after;
};

struct flow;

/* What a protocol does with a packet of a flow, and how it tells of it. */
struct protocol {
    const char *name;
    int (*update)(struct flow *, const unsigned char *layer4, unsigned length);
    void (*describe)(const struct flow *, char *text, size_t size);
};

struct host {
    unsigned address;
    unsigned flows, packets;
    /* Ports it has begun flows to, as many as there are. */
    unsigned short *ports;
    unsigned port_count, port_room;
    int reported;
    char *label;
    struct host *less, *more;
};

struct flow {
    unsigned from, to;
    unsigned short from_port, to_port;
    unsigned char number;
    const struct protocol *protocol;
    union {
        struct {
            unsigned char flags;
            unsigned sequence;
        } tcp;
        struct {
            unsigned shortest, longest;
        } udp;
    } seen;
    unsigned long long packets, bytes;
    long first, last;
    struct host *host;
    struct flow *next;
    struct link age;
};

struct event {
    const char *what;
    struct flow *flow;
    long when;
};

static struct flow **table;
static struct link ages = {&ages, &ages};
static struct host *hosts;
static struct event recent[RECENT];
/* The event that comes next in the ring. */
static struct event *next_event = recent;
static unsigned flow_count;
static unsigned long long packet_count, ignored;
static long now;

static int update_tcp(struct flow *flow, const unsigned char *layer4, unsigned length) {
    const struct tcphdr *tcp = (const struct tcphdr *)layer4;
    if (length < sizeof *tcp) return 0;
    flow->seen.tcp.flags |= tcp->th_flags;
    flow->seen.tcp.sequence = ntohl(tcp->th_seq);
    return (tcp->th_flags & (TH_FIN | TH_RST)) != 0;
}

static void describe_tcp(const struct flow *flow, char *text, size_t size) {
    snprintf(text, size, "flags %02x seq %u", flow->seen.tcp.flags, flow->seen.tcp.sequence);
}

static int update_udp(struct flow *flow, const unsigned char *layer4, unsigned length) {
    (void)layer4;
    if (!flow->seen.udp.shortest || length < flow->seen.udp.shortest) flow->seen.udp.shortest = length;
    if (length > flow->seen.udp.longest) flow->seen.udp.longest = length;
    return 0;
}

static void describe_udp(const struct flow *flow, char *text, size_t size) {
    snprintf(text, size, "%u..%u bytes", flow->seen.udp.shortest, flow->seen.udp.longest);
}

static const struct protocol protocols[] = {{"tcp", update_tcp, describe_tcp}, {"udp", update_udp, describe_udp}};

static void unlink_age(struct link *link) {
    link->before->after = link->after;
    link->after->before = link->before;
}

static void touch(struct link *link) {
    link->before = ages.before;
    link->after = &ages;
    ages.before->after = link;
    ages.before = link;
}

static struct host *find_host(unsigned address) {
    struct host **at = &hosts;
    while (*at && (*at)->address != address) at = address < (*at)->address ? &(*at)->less : &(*at)->more;
    if (!*at) {
        char label[32];
        const unsigned char *bytes = (const unsigned char *)&address;
        *at = calloc(1, sizeof **at);
        if (!*at) abort();
        (*at)->address = address;
        snprintf(label, sizeof label, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
        (*at)->label = strdup(label);
    }
    return *at;
}

static void begin_port(struct host *host, unsigned short port) {
    for (unsigned i = 0; i < host->port_count; i++)
        if (host->ports[i] == port) return;
    if (host->port_count == host->port_room) {
        host->port_room = host->port_room * 2 + 4;
        host->ports = realloc(host->ports, host->port_room * sizeof *host->ports);
        if (!host->ports) abort();
    }
    host->ports[host->port_count++] = port;
    if (host->port_count < SCAN_PORTS || host->reported) return;
    host->reported = 1;
    printf("%ld scan %s %u ports\n", now, host->label, host->port_count);
}

static void note_event(const char *what, struct flow *flow) {
    next_event->what = what;
    next_event->flow = flow;
    next_event->when = now;
    if (++next_event == recent + RECENT) next_event = recent;
}

static unsigned bucket_of(const struct flow *key) {
    unsigned hash = key->from * 2654435761u ^ key->to * 40503u ^ (unsigned)(key->from_port << 16 | key->to_port);
    return (hash ^ hash >> 15 ^ key->number) % BUCKETS;
}

static void end_flow(struct flow *flow, const char *why) {
    char text[64];
    struct flow **at = &table[bucket_of(flow)];
    while (*at != flow) at = &(*at)->next;
    *at = flow->next;
    unlink_age(&flow->age);
    flow->protocol->describe(flow, text, sizeof text);
    printf("%ld %s %s %s:%u -> %08x:%u %llu packets %llu bytes %ld s %s\n", now, why, flow->protocol->name,
           flow->host->label, flow->from_port, flow->to, flow->to_port, flow->packets, flow->bytes,
           flow->last - flow->first, text);
    for (unsigned i = 0; i < RECENT; i++)
        if (recent[i].flow == flow) recent[i].flow = NULL;
    flow_count--;
    free(flow);
}

static void expire(void) {
    while (ages.after != &ages) {
        struct flow *oldest = (struct flow *)((char *)ages.after - offsetof(struct flow, age));
        if (flow_count < MOST_FLOWS && oldest->last + IDLE_SECONDS > now) break;
        end_flow(oldest, "idle");
    }
}

static struct flow *find_flow(const struct flow *key) {
    unsigned bucket = bucket_of(key);
    for (struct flow *flow = table[bucket]; flow; flow = flow->next)
        if (flow->from == key->from && flow->to == key->to && flow->from_port == key->from_port &&
            flow->to_port == key->to_port && flow->number == key->number)
            return flow;
    struct flow *flow = malloc(sizeof *flow);
    if (!flow) abort();
    *flow = *key;
    flow->protocol = &protocols[key->number == IPPROTO_UDP];
    flow->first = now;
    flow->host = find_host(key->from);
    flow->host->flows++;
    flow->next = table[bucket];
    table[bucket] = flow;
    touch(&flow->age);
    flow_count++;
    begin_port(flow->host, key->to_port);
    note_event("new", flow);
    return flow;
}

static void process(const unsigned char *packet, unsigned length) {
    const struct ether_header *ethernet = (const struct ether_header *)packet;
    const struct ip *ip = (const struct ip *)(packet + sizeof *ethernet);
    packet_count++;
    if (length < sizeof *ethernet + sizeof *ip || ntohs(ethernet->ether_type) != ETHERTYPE_IP || ip->ip_v != 4) {
        ignored++;
        return;
    }
    unsigned begin = sizeof *ethernet + ip->ip_hl * 4u;
    if ((ip->ip_p != IPPROTO_TCP && ip->ip_p != IPPROTO_UDP) || length < begin + 8) {
        ignored++;
        return;
    }
    struct flow key = {0};
    key.from = ip->ip_src.s_addr;
    key.to = ip->ip_dst.s_addr;
    key.number = ip->ip_p;
    key.from_port = ntohs(*(const unsigned short *)(packet + begin));
    key.to_port = ntohs(*(const unsigned short *)(packet + begin + 2));
    struct flow *flow = find_flow(&key);
    flow->packets++;
    flow->bytes += length;
    flow->last = now;
    flow->host->packets++;
    unlink_age(&flow->age);
    touch(&flow->age);
    if (flow->protocol->update(flow, packet + begin, length - begin)) end_flow(flow, "end");
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    if (argc != 2) {
        fprintf(stderr, "usage: flow_monitor CAPTURE\n");
        return 2;
    }
    pcap_t *capture = pcap_open_offline(argv[1], error);
    if (!capture) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    table = calloc(BUCKETS, sizeof *table);
    if (!table) return 1;
    struct pcap_pkthdr *header;
    const unsigned char *packet;
    while (pcap_next_ex(capture, &header, &packet) == 1) {
        now = header->ts.tv_sec;
        process(packet, header->caplen);
        expire();
    }
    for (const struct event *event = next_event;;) {
        if (event->what && event->flow)
            printf("recent %ld %s %s\n", event->when, event->what, event->flow->host->label);
        if (++event == recent + RECENT) event = recent;
        if (event == next_event) break;
    }
    printf("%llu packets, %llu ignored, %u flows are open\n", packet_count, ignored, flow_count);
    return 0;
}
