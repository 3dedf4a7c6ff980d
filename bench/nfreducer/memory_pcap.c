/* Stands in for libpcap in measurements: hands out a capture from memory, again and again, and takes packets without
 * writing them, so that what is measured is the function and not files.
 *
 * ROUNDS says how often the capture is handed out; RESULT names a file for the nanoseconds per packet, on the processor. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct packet {
    struct pcap_pkthdr header;
    const u_char *bytes;
};

static struct packet *packets;
static size_t count, next, rounds, round_now;
static double begin;
static uint64_t taken;
static int measured;
static char handle;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint32_t word(const u_char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

pcap_t *pcap_open_offline(const char *name, char *error)
{
    FILE *file = fopen(name, "rb");
    if (!file) {
        snprintf(error, PCAP_ERRBUF_SIZE, "%s cannot be read", name);
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    u_char *bytes = malloc(size);
    if (!bytes || fread(bytes, 1, size, file) != size) abort();
    fclose(file);
    /* Every function of a spliced chain opens the capture; packets are handed out once. */
    free(packets);
    count = 0;
    for (size_t at = 24; at + 16 <= size; at += 16 + word(bytes + at + 8)) count++;
    packets = calloc(count, sizeof *packets);
    if (!packets) abort();
    size_t i = 0;
    for (size_t at = 24; at + 16 <= size; at += 16 + word(bytes + at + 8), i++) {
        packets[i].header.ts.tv_sec = word(bytes + at);
        packets[i].header.ts.tv_usec = word(bytes + at + 4);
        packets[i].header.caplen = word(bytes + at + 8);
        packets[i].header.len = word(bytes + at + 12);
        packets[i].bytes = bytes + at + 16;
    }
    rounds = getenv("ROUNDS") ? strtoul(getenv("ROUNDS"), NULL, 10) : 1;
    return (pcap_t *)&handle;
}

int pcap_next_ex(pcap_t *from, struct pcap_pkthdr **header, const u_char **bytes)
{
    (void)from;
    /* The first round warms caches and branch predictors. */
    if (next == count) {
        if (round_now++ == 0) begin = now();
        if (round_now > rounds) return PCAP_ERROR_BREAK;
        next = 0;
    }
    *header = &packets[next].header;
    *bytes = packets[next++].bytes;
    return 1;
}

int pcap_loop(pcap_t *from, int most, pcap_handler handler, u_char *user)
{
    struct pcap_pkthdr *header;
    const u_char *bytes;
    (void)most;
    while (pcap_next_ex(from, &header, &bytes) == 1) handler(user, header, bytes);
    return 0;
}

pcap_dumper_t *pcap_dump_open(pcap_t *from, const char *name)
{
    (void)from, (void)name;
    return (pcap_dumper_t *)&handle;
}

void pcap_dump(u_char *to, const struct pcap_pkthdr *header, const u_char *bytes)
{
    (void)to;
    taken += header->caplen + bytes[0];
}

void pcap_dump_close(pcap_dumper_t *to) { (void)to; }

void pcap_close(pcap_t *from)
{
    (void)from;
    const char *name = getenv("RESULT");
    if (measured++) return;
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file) return;
    fprintf(file, "%.3f %lu\n", (now() - begin) / (double)(count * rounds), (unsigned long)taken);
    fclose(file);
}

char *pcap_geterr(pcap_t *from)
{
    (void)from;
    static char none[] = "no error";
    return none;
}
