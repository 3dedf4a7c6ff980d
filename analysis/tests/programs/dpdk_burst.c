/* Packets come and go in bursts of DPDK's buffers, which belong to the driver.
 *
 * What is used of DPDK is declared here. sent is an array of pointers to packets that is filled per burst; flows is
 * indexed by a hash of both addresses; dropped depends on how many the device took and is never read again.
 *
 * expect flows: updateable packets dst_ip src_ip
 * expect dropped: updateable silent -
 * expect port: persistent
 * expect pool: persistent
 */
#include "packets.h"
#include <stdint.h>
struct rte_mbuf { void *buf_addr; uint16_t data_off, data_len; uint32_t pkt_len; };
struct rte_mempool;
uint16_t rte_eth_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);
uint16_t rte_eth_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);
void rte_pktmbuf_free(struct rte_mbuf *packet);
struct rte_mempool *rte_pktmbuf_pool_create(const char *, unsigned, unsigned, uint16_t, uint16_t, int);

struct flow { uint32_t packets, limit; };
struct flow flows[4096];
long dropped;
uint16_t port;
struct rte_mempool *pool;

int main(void) {
    struct rte_mbuf *in[32], *out[32];
    pool = rte_pktmbuf_pool_create("packets", 8191, 250, 0, 2048, 0);
    for (int at = 0; at < 4096; at++) flows[at].limit = 1000;
    for (;;) {
        uint16_t count = rte_eth_rx_burst(port, 0, in, 32), kept = 0;
        for (uint16_t i = 0; i < count; i++) {
            char *packet = (char *)in[i]->buf_addr + in[i]->data_off;
            struct flow *flow = &flows[(IP(packet)->saddr ^ IP(packet)->daddr) % 4096];
            if (++flow->packets < flow->limit) out[kept++] = in[i]; else rte_pktmbuf_free(in[i]);
        }
        uint16_t done = rte_eth_tx_burst(port, 0, out, kept);
        dropped += kept - done;
    }
}
