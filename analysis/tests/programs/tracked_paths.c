/* Where pruning of updated bits must stop: at a joint that one way reaches without, in a loop's first round, at a
 * reception, and in a procedure that is called from elsewhere too.
 *
 * expect total: updateable
 * expect odd: updateable
 * expect record: updateable
 */
#include "packets.h"

unsigned total, odd;
char record[4096];

void add(unsigned n) {
    total += n; // sets: total
}

int main(void) {
    char pkt[2048], other[2048];
    long length;
    while ((length = recv(device, pkt, sizeof pkt, 0)) > 0) {
        if (length & 1) {
            odd++; // sets: odd
        } else {
            total++; // sets: total
        }
        odd += 2; // sets: odd
        odd += 3; // pruned: odd
        for (int i = 0; i < 3; i++) {
            total += i; // sets: total
        }
        add(1);
        memcpy(record, pkt, 20);       // sets: record
        snprintf(record, 20, "%d", 1); // pruned: record
        if (recv(device, other, sizeof other, 0) < 0) break;
        odd += 4; // sets: odd
    }
    return 0;
}
