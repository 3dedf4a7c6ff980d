/* One thread receives, another one reads what the first left behind.
 *
 * expect mailbox: updateable
 * expect full: updateable
 * expect handled: updateable
 * expect workers: persistent
 */
#include "packets.h"
#include <pthread.h>
char mailbox[2048];
volatile int full;
int handled, workers;

static void *work(void *unused) {
    for (;;)
        if (full) {
            handled += mailbox[0];
            full = 0;
        }
    return unused;
}

int main(void) {
    pthread_t thread;
    char packet[2048];
    workers = 1;
    pthread_create(&thread, NULL, work, NULL);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        memcpy(mailbox, packet, sizeof mailbox);
        full = 1;
    }
}
