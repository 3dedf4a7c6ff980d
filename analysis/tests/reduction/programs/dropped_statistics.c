/* Counts, logs, locks and looks at the clock; of all that only one counter decides about packets. What is dropped goes, what
 * packets depend on stays, and so does what is not said to be dropped.
 *
 * options --drop all
 * dropped seen
 * dropped bytes.of_long
 * dropped log_packet
 * dropped fprintf
 * dropped pthread_mutex_lock
 * dropped time
 * dropped talkers
 * not listed sent
 * not listed pcap_dump
 * expect sent: state */
#include "open.h"
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

struct talker {
    unsigned port;
    unsigned long packets;
    struct talker *next;
};

static unsigned long seen, sent;
static struct { unsigned long of_short, of_long; } bytes;
static struct talker *talkers;
static time_t last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;

/* Not inlined, for its arguments are variable. */
static void log_packet(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(log_file, format, arguments);
    va_end(arguments);
}

static void count(unsigned port)
{
    struct talker *talker;
    for (talker = talkers; talker; talker = talker->next)
        if (talker->port == port) break;
    if (!talker) {
        talker = calloc(1, sizeof *talker);
        if (!talker) exit(1);
        talker->port = port;
        talker->next = talkers;
        talkers = talker;
    }
    talker->packets++;
}

static void process(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    char text[64];
    pthread_mutex_lock(&lock);
    seen++;
    if (header->caplen > 60)
        bytes.of_long += header->caplen;
    else
        bytes.of_short += header->caplen;
    if (header->caplen >= 38) {
        count(read16(packet + 36));
        snprintf(text, sizeof text, "to %u after %lu", read16(packet + 36), seen);
        fprintf(log_file, "%s\n", text);
    }
    if (time(NULL) < last) log_packet("%s runs backwards, %lu\n", "time", seen);
    last = time(NULL);
    pthread_mutex_unlock(&lock);
    if (sent >= 100) {
        log_packet("%s", "no more\n");
        return;
    }
    sent++;
    pcap_dump(user, header, packet);
}

int main(int argc, char **argv)
{
    pcap_t *in = open_capture(argv[1]);
    pcap_dumper_t *out = pcap_dump_open(in, argv[argc - 1]);
    log_file = stderr;
    pcap_loop(in, -1, process, (u_char *)out);
    pcap_dump_close(out);
    printf("%lu packets seen, %lu sent, %lu and %lu bytes\n", seen, sent, bytes.of_short, bytes.of_long);
    while (talkers) {
        struct talker *next = talkers->next;
        printf("%u %lu\n", talkers->port, talkers->packets);
        free(talkers);
        talkers = next;
    }
    return 0;
}
