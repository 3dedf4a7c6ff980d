/* Packets come from the kernel by a callback of libnetfilter_queue; the verdict is what is sent.
 *
 * The library's header is not everywhere, so what is used of it is declared here. blocked is searched and extended by
 * packet code and steers the verdict; reads only counts the loop's rounds, which is silent.
 *
 * expect blocked: updateable packets src_ip
 * expect used: updateable packets -
 * expect reads: updateable silent -
 * expect queue: persistent
 */
#include "packets.h"
struct nfq_handle; struct nfq_q_handle; struct nfq_data; struct nfgenmsg;
struct nfqnl_msg_packet_hdr { unsigned packet_id; unsigned short protocol; unsigned char hook; };
typedef int nfq_callback(struct nfq_q_handle *, struct nfgenmsg *, struct nfq_data *, void *);
struct nfq_handle *nfq_open(void);
struct nfq_q_handle *nfq_create_queue(struct nfq_handle *, unsigned short, nfq_callback *, void *);
int nfq_fd(struct nfq_handle *);
int nfq_handle_packet(struct nfq_handle *, char *, int);
struct nfqnl_msg_packet_hdr *nfq_get_msg_packet_hdr(struct nfq_data *);
int nfq_get_payload(struct nfq_data *, unsigned char **);
int nfq_set_verdict(struct nfq_q_handle *, unsigned, unsigned, unsigned, const unsigned char *);

unsigned blocked[1024];
int used;
long reads;
struct nfq_q_handle *queue;

static int on_packet(struct nfq_q_handle *queue, struct nfgenmsg *message, struct nfq_data *data, void *user) {
    unsigned char *packet;
    int length = nfq_get_payload(data, &packet), verdict = 1;
    unsigned id = nfq_get_msg_packet_hdr(data)->packet_id;
    for (int at = 0; at < used; at++)
        if (blocked[at] == IP(packet)->saddr) verdict = 0;
    if (verdict && length > 40 && TCP(packet)->dest == 23 && used < 1024) blocked[used++] = IP(packet)->saddr;
    return nfq_set_verdict(queue, id, verdict, 0, NULL);
}

int main(void) {
    char buffer[4096];
    struct nfq_handle *handle = nfq_open();
    queue = nfq_create_queue(handle, 0, on_packet, NULL);
    for (;;) {
        int size = recv(nfq_fd(handle), buffer, sizeof buffer, 0);
        if (size <= 0) break;
        reads++;
        nfq_handle_packet(handle, buffer, size);
    }
}
