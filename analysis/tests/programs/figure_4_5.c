/* The running example of Khalid's dissertation, Figure 4.5: blocks outside hosts that open too many connections.
 *
 * Packets pass through a ring from the thread that captures to the thread that counts. What §4.3 says of it: lines 7 to 11
 * are persistent and curr is not; intPcap and extPcap are not top-level; head, tail, hosts and queue are updateable (tail
 * only through a pointer), threshold is not; hosts is keyed by the source address.
 *
 * expect intPcap: persistent
 * expect extPcap: persistent
 * expect threshold: top-level
 * expect head: updateable
 * expect tail: updateable
 * expect queue: updateable *
 * expect hosts: updateable src_ip
 * absent curr
 */
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pcap.h>
#include <pthread.h>
#include <stdlib.h>

struct host {
    unsigned ip;
    int count;
    struct host *next;
};

pcap_t *intPcap, *extPcap;
int threshold;
const unsigned char *queue[100];
int head = 0, tail = 0;
struct host *hosts = NULL;
char errors[PCAP_ERRBUF_SIZE];

void waitWhileFull(void) {
    while ((head + 1) % 100 == tail)
        ;
}

void waitWhileEmpty(void) {
    while (head == tail)
        ;
}

struct host *lookup(unsigned ip) {
    struct host *curr = hosts;
    while (curr != NULL) {
        if (curr->ip == ip) return curr;
        curr = curr->next;
    }
    return NULL;
}

void enqueue(const unsigned char *pkt) {
    head = (head + 1) % 100;
    queue[head] = pkt;
}

const unsigned char *dequeue(void) {
    int *index = &tail;
    *index = (*index + 1) % 100;
    return queue[*index];
}

void *processPacket(void *unused) {
    (void)unused;
    while (1) {
        waitWhileEmpty();
        const unsigned char *pkt = dequeue();
        const struct ether_header *ethHdr = (const struct ether_header *)pkt;
        const struct iphdr *ipHdr = (const struct iphdr *)(ethHdr + 1);
        const struct tcphdr *tcpHdr = (const struct tcphdr *)(ipHdr + 1);
        struct host *entry = lookup(ipHdr->saddr);
        if (NULL == entry) {
            entry = malloc(sizeof(struct host));
            entry->ip = ipHdr->saddr;
            entry->count = 0;
            entry->next = hosts;
            hosts = entry;
        }
        if (tcpHdr->syn && !tcpHdr->ack) entry->count++;
    }
    return NULL;
}

int loopProcedure(void) {
    while (1) {
        struct pcap_pkthdr pcapHdr;
        const unsigned char *pkt = pcap_next(extPcap, &pcapHdr);
        waitWhileFull();
        enqueue(pkt);
        const struct iphdr *ipHdr = (const struct iphdr *)(pkt + sizeof(struct ether_header));
        struct host *entry = lookup(ipHdr->saddr);
        if (!entry || entry->count < threshold) pcap_inject(intPcap, pkt, pcapHdr.caplen);
    }
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 4) return 1;
    intPcap = pcap_create(argv[1], errors);
    extPcap = pcap_create(argv[2], errors);
    threshold = atoi(argv[3]);
    pthread_create(&thread, NULL, processPacket, NULL);
    return loopProcedure();
}
