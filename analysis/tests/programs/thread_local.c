/* A variable that each thread has for itself: it outlives packets like any global one.
 *
 * expect mine: updateable packets -
 * expect table: updateable dst_port
 * expect started: persistent
 */
#include "packets.h"
#include <pthread.h>
static _Thread_local int mine;
static _Thread_local int table[65536];
int started;

static void *work(void *unused) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        table[UDP(packet)->dest]++;
        if (++mine % 2) send(device, packet, 100, 0);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    started = 1;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
}
