/* Packets by libraries that call back or hand out buffers: libnetfilter_queue, libevent and DPDK, as far as the
 * programs use them. Handles are never looked into. */
#include "packet_source.h"
#include <stdint.h>
#include <stdlib.h>

/* --- libnetfilter_queue */

typedef int verdict(void *queue, void *message, void *data, void *user);
static verdict *on_queue;
static void *queue_user;
static int handle;

void *nfq_open(void) { return &handle; }

void *nfq_create_queue(void *library, uint16_t number, verdict *call, void *user) {
    (void)library, (void)number;
    on_queue = call, queue_user = user;
    return &handle;
}

int nfq_fd(void *library) {
    (void)library;
    return 3;
}

int nfq_handle_packet(void *library, char *buffer, int size) {
    (void)library, (void)buffer, (void)size;
    on_queue(&handle, NULL, &handle, queue_user);
    return 0;
}

void *nfq_get_msg_packet_hdr(void *data) {
    static uint32_t header[2];
    (void)data;
    header[0]++;
    return header;
}

int nfq_get_payload(void *data, unsigned char **packet) {
    (void)data;
    *packet = next_packet(0);
    return PACKET;
}

int nfq_set_verdict(void *queue, uint32_t number, uint32_t verdict, uint32_t size, const unsigned char *packet) {
    (void)queue, (void)number, (void)verdict, (void)size, (void)packet;
    return 0;
}

/* --- libevent */

typedef void ready(int socket, short what, void *given);
struct event {
    ready *call;
    int socket;
    void *given;
};
static struct event event;

void *event_base_new(void) { return &handle; }

struct event *event_new(void *base, int socket, short what, ready *call, void *given) {
    (void)base, (void)what;
    event = (struct event){call, socket, given};
    return &event;
}

int event_add(struct event *one, const void *wait) {
    (void)one, (void)wait;
    return 0;
}

int event_base_dispatch(void *base) {
    (void)base;
    for (;;) event.call(event.socket, 2, event.given);
}

/* --- DPDK */

struct rte_mbuf {
    void *buf_addr;
    uint16_t data_off, data_len;
    uint32_t pkt_len;
};

void *rte_pktmbuf_pool_create(const char *name, unsigned count, unsigned cache, uint16_t own, uint16_t room,
                              int socket) {
    (void)name, (void)count, (void)cache, (void)own, (void)room, (void)socket;
    return &handle;
}

uint16_t rte_eth_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count) {
    (void)port, (void)queue;
    for (uint16_t i = 0; i < count && i < 4; ++i) {
        packets[i] = calloc(1, sizeof **packets);
        *packets[i] = (struct rte_mbuf){.buf_addr = next_packet(0), .data_len = PACKET, .pkt_len = PACKET};
    }
    return count < 4 ? count : 4;
}

uint16_t rte_eth_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count) {
    (void)port, (void)queue, (void)packets;
    return count;
}

void rte_pktmbuf_free(struct rte_mbuf *packet) { free(packet); }
