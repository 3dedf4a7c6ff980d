/* State in a parameter of the packet loop's procedure: a struct that is given as a copy. */
#include <stdio.h>
#include <sys/socket.h>

struct counts {
    unsigned all, last;
    unsigned by_kind[8];
};

static void run(struct counts counts) {
    unsigned char packet[64];
    unsigned bytes = 0;
    long length;
    while ((length = recv(0, packet, sizeof packet, 0)) > 0) {
        counts.all++;
        bytes += (unsigned)length;
        counts.by_kind[packet[0] & 7]++;
        printf("%u packets, %u bytes, %u like this, last %u\n", counts.all, bytes, counts.by_kind[packet[0] & 7],
               counts.last);
        counts.last = packet[1];
    }
}

int main(void) {
    struct counts counts = {0};
    counts.last = 99;
    run(counts);
    return 0;
}
