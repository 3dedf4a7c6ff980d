/* libpcap's receptions and sends, over batches of Catena's packets.
 *
 * A packet that the program sends while it has it goes on, with the bytes that were sent; one that it does not send is
 * dropped. The program has a copy of it, as libpcap gives it one, and may do with that what it likes. */
#define _GNU_SOURCE
#include "adapter.h"

#include <pcap/pcap.h>
#include <string.h>

enum { LARGEST = 65536, PATIENCE = 1000 };

static struct catena_context *context;
static struct catena_packet *const *batch;
static struct catena_packet *current;
static uint32_t in_batch, next_one;
static bool was_sent, over, broken;
struct pcap_pkthdr packet_header;
u_char packet_bytes[LARGEST];
const uint64_t packet_bytes_size = LARGEST, packet_header_size = sizeof packet_header;
uint64_t packets_beside[2];
static uint64_t asked_after_end;
static char unsent[200];
/* The filter of the device, if there is one. */
static struct bpf_program filter;
static bool is_filtered;
/* Whether what was opened last is a capture: the first function of a spliced chain, which receives, opens last. */
static bool is_recorded;

/* ---- Receptions */

static void settle(void)
{
    if (current && !was_sent) catena_drop(current, NOT_SENT);
    current = NULL;
}

/* Wait for the next packet; return whether there is one, or else it was the last. */
static bool receive(void)
{
    for (;;) {
        settle();
        while (next_one < in_batch) {
            current = batch[next_one++];
            was_sent = false;
            uint32_t length = current->len < LARGEST ? current->len : LARGEST;
            packet_header.caplen = packet_header.len = length;
            packet_header.ts.tv_sec = (time_t)(current->arrival_ns / 1000000000);
            packet_header.ts.tv_usec = (suseconds_t)(current->arrival_ns / 1000 % 1000000);
            memcpy(packet_bytes, current->data, length);
            if (!is_filtered || pcap_offline_filter(&filter, &packet_header, packet_bytes)) return true;
            settle();
        }
        if (over) {
            /* A program that waits for a signal to end would ask for ever. */
            if (++asked_after_end > PATIENCE) program_refuse("did not end after its last packet");
            return false;
        }
        program_wait();
    }
}

static int end_of_packets(void) { return is_recorded ? 0 : PCAP_ERROR_BREAK; }

static int receive_many(int count, bool once, pcap_handler handler, u_char *user)
{
    int received = 0;
    while (!broken && (count <= 0 || received < count)) {
        /* A dispatch ends with what there is. */
        if (once && received && next_one >= in_batch) return received;
        if (!receive()) return received && once ? received : end_of_packets();
        received++;
        handler(user, &packet_header, packet_bytes);
    }
    if (!broken) return once ? received : 0;
    broken = false;
    return PCAP_ERROR_BREAK;
}

int REPLACES(pcap_loop)(pcap_t *device, int count, pcap_handler handler, u_char *user)
{
    (void)device;
    return receive_many(count, false, handler, user);
}

int REPLACES(pcap_dispatch)(pcap_t *device, int count, pcap_handler handler, u_char *user)
{
    (void)device;
    return receive_many(count, true, handler, user);
}

int REPLACES(pcap_next_ex)(pcap_t *device, struct pcap_pkthdr **to, const u_char **packet)
{
    (void)device;
    if (!receive()) return PCAP_ERROR_BREAK;
    *to = &packet_header;
    *packet = packet_bytes;
    return 1;
}

const u_char *REPLACES(pcap_next)(pcap_t *device, struct pcap_pkthdr *to)
{
    (void)device;
    if (!receive()) return NULL;
    *to = packet_header;
    return packet_bytes;
}

void REPLACES(pcap_breakloop)(pcap_t *device)
{
    (void)device;
    broken = true;
}

/* ---- Sends */

static bool set_length(uint32_t length)
{
    struct catena_packet *packet = current;
    if (length > packet->len) return catena_grow_back(context, packet, length - packet->len) != NULL;
    return length == packet->len || catena_shrink_back(context, packet, packet->len - length) != NULL;
}

static bool send_packet(const void *from, size_t length)
{
    if (!current) {
        packets_beside[1]++;
        return false;
    }
    if (was_sent) {
        packets_beside[0]++;
        return false;
    }
    was_sent = true;
    if (length > LARGEST || !length || !set_length((uint32_t)length)) {
        catena_drop(current, TOO_LONG);
        return false;
    }
    memcpy(current->data, from, length);
    catena_pass(context, current);
    return true;
}

void REPLACES(pcap_dump)(u_char *user, const struct pcap_pkthdr *of, const u_char *packet)
{
    (void)user;
    send_packet(packet, of->caplen);
}

int REPLACES(pcap_inject)(pcap_t *device, const void *packet, size_t size)
{
    (void)device;
    return send_packet(packet, size) ? (int)size : PCAP_ERROR;
}

int REPLACES(pcap_sendpacket)(pcap_t *device, const u_char *packet, int size)
{
    (void)device;
    return size > 0 && send_packet(packet, (size_t)size) ? 0 : PCAP_ERROR;
}

/* ---- Devices and captures: none is opened, but the program may ask */

static pcap_t *device(void) { return pcap_open_dead(DLT_EN10MB, LARGEST); }

pcap_t *REPLACES(pcap_open_offline)(const char *name, char *error)
{
    (void)name, (void)error;
    is_recorded = true;
    return device();
}

pcap_t *REPLACES(pcap_fopen_offline)(FILE *file, char *error)
{
    (void)file, (void)error;
    is_recorded = true;
    return device();
}

pcap_t *REPLACES(pcap_open_live)(const char *name, int length, int promiscuous, int wait, char *error)
{
    (void)name, (void)length, (void)promiscuous, (void)wait;
    if (error) *error = 0;
    is_recorded = false;
    return device();
}

pcap_t *REPLACES(pcap_create)(const char *name, char *error)
{
    (void)name, (void)error;
    is_recorded = false;
    return device();
}

int REPLACES(pcap_activate)(pcap_t *of) { return (void)of, 0; }
int REPLACES(pcap_set_snaplen)(pcap_t *of, int value) { return (void)of, (void)value, 0; }
int REPLACES(pcap_set_promisc)(pcap_t *of, int value) { return (void)of, (void)value, 0; }
int REPLACES(pcap_set_timeout)(pcap_t *of, int value) { return (void)of, (void)value, 0; }
int REPLACES(pcap_set_buffer_size)(pcap_t *of, int value) { return (void)of, (void)value, 0; }
int REPLACES(pcap_set_immediate_mode)(pcap_t *of, int value) { return (void)of, (void)value, 0; }
int REPLACES(pcap_setnonblock)(pcap_t *of, int value, char *error) { return (void)of, (void)value, (void)error, 0; }
int REPLACES(pcap_setdirection)(pcap_t *of, pcap_direction_t value) { return (void)of, (void)value, 0; }

int REPLACES(pcap_setfilter)(pcap_t *of, struct bpf_program *program)
{
    (void)of;
    /* The program may free its own afterwards. */
    struct bpf_insn *copy = malloc((program->bf_len + 1) * sizeof *copy);
    if (!copy) return PCAP_ERROR;
    memcpy(copy, program->bf_insns, program->bf_len * sizeof *copy);
    free(filter.bf_insns);
    filter.bf_insns = copy;
    filter.bf_len = program->bf_len;
    is_filtered = true;
    return 0;
}

int REPLACES(pcap_stats)(pcap_t *of, struct pcap_stat *to)
{
    (void)of;
    memset(to, 0, sizeof *to);
    return 0;
}

/* What a program sends to by pcap_dump; nothing but its address is used. */
static int dumper;

pcap_dumper_t *REPLACES(pcap_dump_open)(pcap_t *of, const char *name)
{
    static unsigned opened;
    (void)of, (void)name;
    if (opened++) program_refuse("writes packets to more than one capture, of which one cannot be the chain, and ended");
    return (pcap_dumper_t *)&dumper;
}

/* What a function of a spliced chain opens for the next one, which gets packets by a call instead. */
pcap_dumper_t *catena_open_for_next(pcap_t *of, const char *name)
{
    (void)of, (void)name;
    static int nothing;
    return (pcap_dumper_t *)&nothing;
}

void REPLACES(pcap_dump_close)(pcap_dumper_t *of) { (void)of; }
int REPLACES(pcap_dump_flush)(pcap_dumper_t *of) { return (void)of, 0; }

/* ---- Catena's side */

void packets_process(struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    context = cx;
    batch = packets;
    in_batch = count;
    next_one = 0;
    program_resume();
    if (!program_has_ended()) return;
    /* What it had begun is decided; the rest it does not see any more. */
    settle();
    for (uint32_t i = next_one; i < count; i++) catena_drop(packets[i], HAS_ENDED);
}

void packets_end(struct catena_context *cx)
{
    context = cx;
    in_batch = next_one = 0;
    over = true;
    program_resume();
    free(filter.bf_insns);
}

const char *packets_unsent(void)
{
    if (!packets_beside[0] && !packets_beside[1]) return NULL;
    snprintf(unsent, sizeof unsent,
             "the program sent %llu packets beside the one at hand and %llu when it had none: a chain can only let each packet "
             "go on or not",
             (unsigned long long)packets_beside[0], (unsigned long long)packets_beside[1]);
    return unsent;
}
