/* Where a traced program's packets come from: 200 IPv4 packets of a few flows by every function that receives, as in
 * answer to the sockets and captures that the program believes to open. Then the program ends. */
#include "packet_source.h"
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_PACKETS = 200 };
static unsigned char packets[MOST_PACKETS][PACKET];
static int given;
static uint64_t state = 1;

static unsigned next(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* Threads may ask at once. The first that gets no more ends the program; a second one that did would cut short what the
 * first does at the end, such as writing what was traced. */
static atomic_flag asked = ATOMIC_FLAG_INIT;

unsigned char *next_packet(int ahead) {
    while (atomic_flag_test_and_set_explicit(&asked, memory_order_acquire)) continue;
    if (given >= MOST_PACKETS) {
        int is_first = given++ == MOST_PACKETS;
        atomic_flag_clear_explicit(&asked, memory_order_release);
        if (is_first) exit(0);
        for (;;) pause();
    }
    unsigned char *bytes = packets[given++];
    for (int i = 0; i < PACKET; ++i) bytes[i] = (unsigned char)next(256);
    if (ahead) bytes[12] = 8, bytes[13] = 0;
    struct iphdr *ip = (struct iphdr *)(bytes + ahead);
    ip->version = next(20) ? 4 : 6, ip->ihl = 5;
    ip->protocol = next(3) ? IPPROTO_TCP : IPPROTO_UDP;
    ip->tot_len = htons((uint16_t)(PACKET - ahead));
    ip->saddr = htonl(0x0a000000 + next(6)), ip->daddr = htonl(0x0a000100 + next(6));
    struct tcphdr *tcp = (struct tcphdr *)(ip + 1);
    tcp->source = htons((uint16_t)(1000 + next(4))), tcp->dest = htons((uint16_t)(80 + next(4)));
    tcp->doff = 5, tcp->syn = next(2), tcp->ack = next(2);
    atomic_flag_clear_explicit(&asked, memory_order_release);
    return bytes;
}

static ssize_t fill(void *buffer, size_t size) {
    if (size > PACKET) size = PACKET;
    memcpy(buffer, next_packet(0), size);
    return (ssize_t)size;
}

ssize_t recv(int socket, void *buffer, size_t size, int flags) {
    (void)socket, (void)flags;
    return fill(buffer, size);
}

ssize_t recvfrom(int socket, void *restrict buffer, size_t size, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict length) {
    (void)socket, (void)flags;
    if (from && length && *length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in sender = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000 + next(6))};
        memcpy(from, &sender, sizeof sender);
        *length = sizeof sender;
    }
    return fill(buffer, size);
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    (void)socket, (void)flags;
    return message->msg_iovlen ? fill(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len) : 0;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags, struct timespec *wait) {
    (void)wait;
    for (unsigned i = 0; i < count; ++i) messages[i].msg_len = (unsigned)recvmsg(socket, &messages[i].msg_hdr, flags);
    return (int)count;
}

ssize_t send(int socket, const void *buffer, size_t size, int flags) {
    (void)socket, (void)buffer, (void)flags;
    return (ssize_t)size;
}

ssize_t sendto(int socket, const void *buffer, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    (void)to, (void)length;
    return send(socket, buffer, size, flags);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    (void)socket, (void)message, (void)flags;
    return PACKET;
}

int accept(int socket, struct sockaddr *restrict from, socklen_t *restrict length) {
    (void)socket, (void)from, (void)length;
    return 3 + (int)next(4);
}

int select(int count, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict others,
           struct timeval *restrict wait) {
    (void)reads, (void)writes, (void)others, (void)wait;
    return count;
}

int poll(struct pollfd *sockets, nfds_t count, int wait) {
    (void)wait;
    for (nfds_t i = 0; i < count; ++i) sockets[i].revents = sockets[i].events;
    return (int)count;
}

static struct epoll_event watched[16];
static int watched_count;

int epoll_ctl(int set, int what, int socket, struct epoll_event *event) {
    (void)set, (void)socket;
    if (what == EPOLL_CTL_ADD && watched_count < 16) watched[watched_count++] = *event;
    return 0;
}

int epoll_wait(int set, struct epoll_event *events, int most, int wait) {
    (void)set, (void)wait;
    int count = watched_count < most ? watched_count : most;
    for (int i = 0; i < count; ++i) events[i] = watched[i];
    return count;
}

/* --- libpcap. A handle is never looked into. */

typedef void (*handler)(unsigned char *, const void *, const unsigned char *);
struct header {
    struct timeval time;
    uint32_t caplen, len;
};
static struct header header = {.caplen = PACKET, .len = PACKET};

void *pcap_create(const char *name, char *errors) {
    (void)name, (void)errors;
    return &header;
}

void *pcap_open_offline(const char *name, char *errors) { return pcap_create(name, errors); }

void *pcap_open_live(const char *name, int length, int promiscuous, int wait, char *errors) {
    (void)length, (void)promiscuous, (void)wait;
    return pcap_create(name, errors);
}

const unsigned char *pcap_next(void *capture, struct header *result) {
    (void)capture;
    *result = header;
    return next_packet(14);
}

int pcap_next_ex(void *capture, struct header **result, const unsigned char **data) {
    (void)capture;
    *result = &header;
    *data = next_packet(14);
    return 1;
}

int pcap_dispatch(void *capture, int count, handler call, unsigned char *user) {
    (void)capture, (void)count;
    call(user, &header, next_packet(14));
    return 1;
}

int pcap_loop(void *capture, int count, handler call, unsigned char *user) {
    for (int i = 0; count <= 0 || i < count; ++i) pcap_dispatch(capture, 1, call, user);
    return 0;
}

int pcap_inject(void *capture, const void *data, size_t size) {
    (void)capture, (void)data;
    return (int)size;
}

int pcap_fileno(void *capture) {
    (void)capture;
    return 0;
}

char *pcap_geterr(void *capture) {
    static char none[] = "no error";
    (void)capture;
    return none;
}

void pcap_close(void *capture) { (void)capture; }

int pcap_sendpacket(void *capture, const unsigned char *data, int size) {
    (void)capture, (void)data, (void)size;
    return 0;
}

// A function of some library that no list knows (unread.c).
__attribute__((weak)) void keep(long value) { (void)value; }
