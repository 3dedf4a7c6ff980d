/* The example of Khalid's dissertation, Figure 4.12: where updated bits are set, and which setting is pruned.
 *
 * `sets` stands in the lines before which a bit is set, `pruned` where the figure finds it set already. In hdl the flags
 * are updated on every way to acknum, and both are values of one variable.
 *
 * expect tbl: updateable
 * expect count: updateable
 * expect tcpcnt: updateable
 */
#include "packets.h"

struct conn {
    unsigned flags, acknum;
};

struct conn tbl[1000];
int count;
int tcpcnt;

unsigned hash(const char *pkt) { return IP(pkt)->saddr % 1000; }

void hdl(int *c, struct conn *s, const struct tcphdr *t) {
    *c = *c + 1;                       // sets: tcpcnt
    s->flags = s->flags | t->th_flags; // sets: tbl
    if (t->th_flags & TH_ACK) {
        s->acknum = t->th_ack; // pruned: tbl
    }
}

int main(void) {
    char pkt[2048];
    while (recv(device, pkt, sizeof pkt, 0) > 0) {
        count = count + 1; // sets: count
        if (IP(pkt)->protocol == IPPROTO_TCP) {
            hdl(&tcpcnt, &tbl[hash(pkt)], TCP(pkt));
        }
    }
    return 0;
}
