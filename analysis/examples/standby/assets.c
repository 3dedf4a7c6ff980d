/* A passive asset detector in the manner of PRADS: reads a capture and logs each host that it sees for the first time,
 * the systems that its packets look like, and the services that it offers.
 *
 *     assets SIGNATURES CAPTURE
 *
 * A line of SIGNATURES is the system's name, the time to live it begins with, and the window of its first segment. */
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

/* Configuration: read once, pointed to by assets. */
struct signature {
    char *name;
    unsigned ttl, window;
    struct signature *next;
};

struct service {
    unsigned short port;
    unsigned long hits;
    char banner[24];
    struct service *next;
};

struct asset {
    unsigned address;
    unsigned char hardware[6];
    unsigned long packets;
    long first, last;
    const struct signature *system;
    struct service *services;
    struct asset *next;
};

struct watch {
    pcap_t *capture;
    struct asset **assets;
    unsigned asset_count;
    long now;
};

static struct signature *signatures;
static const struct signature unknown = {"unknown", 0, 0, NULL};
static unsigned long matched, packets_seen;
/* The asset of the packet before: most packets come in trains. */
static struct asset *latest;

static void *need(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static int read_signatures(const char *path) {
    char line[256], name[64];
    unsigned ttl, window;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    struct signature **end = &signatures;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63s %u %u", name, &ttl, &window) != 3) continue;
        struct signature *signature = need(sizeof *signature);
        signature->name = strdup(name);
        signature->ttl = ttl;
        signature->window = window;
        *end = signature;
        end = &signature->next;
    }
    fclose(file);
    return 1;
}

static const struct signature *match(unsigned ttl, unsigned window) {
    for (const struct signature *signature = signatures; signature; signature = signature->next)
        if (ttl <= signature->ttl && ttl + 32 > signature->ttl && window == signature->window) return signature;
    return &unknown;
}

static const char *text_of(unsigned address) {
    static char text[16];
    const unsigned char *bytes = (const unsigned char *)&address;
    snprintf(text, sizeof text, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
    return text;
}

static struct asset *find(struct watch *watch, unsigned address, const unsigned char *hardware) {
    if (latest && latest->address == address) return latest;
    struct asset **bucket = &watch->assets[(address ^ address >> 8 ^ address >> 16 ^ address >> 24) % BUCKETS];
    for (struct asset *asset = *bucket; asset; asset = asset->next)
        if (asset->address == address) return latest = asset;
    struct asset *asset = need(sizeof *asset);
    asset->address = address;
    memcpy(asset->hardware, hardware, sizeof asset->hardware);
    asset->first = watch->now;
    asset->system = &unknown;
    asset->next = *bucket;
    *bucket = asset;
    watch->asset_count++;
    printf("%ld asset %s\n", watch->now, text_of(address));
    return latest = asset;
}

static void offer(struct watch *watch, struct asset *asset, unsigned short port, const unsigned char *data,
                  int length) {
    struct service **at = &asset->services;
    while (*at && (*at)->port != port) at = &(*at)->next;
    if (!*at) {
        *at = need(sizeof **at);
        (*at)->port = port;
        printf("%ld service %s:%u\n", watch->now, text_of(asset->address), port);
    }
    (*at)->hits++;
    if ((*at)->banner[0] || length < 4) return;
    for (int i = 0; i < length && i < (int)sizeof(*at)->banner - 1 && data[i] >= ' ' && data[i] < 127; i++)
        (*at)->banner[i] = (char)data[i];
    if ((*at)->banner[0]) printf("%ld banner %s:%u %s\n", watch->now, text_of(asset->address), port, (*at)->banner);
}

static void on_packet(unsigned char *user, const struct pcap_pkthdr *header, const unsigned char *packet) {
    struct watch *watch = (struct watch *)user;
    const struct ether_header *ethernet = (const struct ether_header *)packet;
    const struct ip *ip = (const struct ip *)(ethernet + 1);
    packets_seen++;
    watch->now = header->ts.tv_sec;
    if (header->caplen < sizeof *ethernet + sizeof *ip || ntohs(ethernet->ether_type) != ETHERTYPE_IP) return;
    struct asset *asset = find(watch, ip->ip_src.s_addr, ethernet->ether_shost);
    asset->packets++;
    asset->last = watch->now;
    unsigned begin = sizeof *ethernet + ip->ip_hl * 4u;
    if (ip->ip_p != IPPROTO_TCP || header->caplen < begin + sizeof(struct tcphdr)) return;
    const struct tcphdr *tcp = (const struct tcphdr *)(packet + begin);
    if ((tcp->th_flags & (TH_SYN | TH_ACK)) == TH_SYN) {
        const struct signature *system = match(ip->ip_ttl, ntohs(tcp->th_win));
        if (system != asset->system && system != &unknown) {
            asset->system = system;
            matched++;
            printf("%ld system %s %s\n", watch->now, text_of(asset->address), system->name);
        }
    } else if ((tcp->th_flags & (TH_SYN | TH_ACK)) == (TH_SYN | TH_ACK)) {
        offer(watch, asset, ntohs(tcp->th_sport), NULL, 0);
    } else if (ntohs(tcp->th_sport) < 1024) {
        unsigned data = begin + tcp->th_off * 4u;
        if (data < header->caplen)
            offer(watch, asset, ntohs(tcp->th_sport), packet + data, (int)(header->caplen - data));
    }
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    struct watch watch = {0};
    if (argc != 3 || !read_signatures(argv[1])) {
        fprintf(stderr, "usage: assets SIGNATURES CAPTURE\n");
        return 2;
    }
    watch.capture = pcap_open_offline(argv[2], error);
    if (!watch.capture) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    watch.assets = need(BUCKETS * sizeof *watch.assets);
    pcap_loop(watch.capture, -1, on_packet, (unsigned char *)&watch);
    printf("%lu packets, %u assets, %lu systems\n", packets_seen, watch.asset_count, matched);
    return 0;
}
