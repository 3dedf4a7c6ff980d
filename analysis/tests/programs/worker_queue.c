/* One thread receives, others work: packets go through a queue under a lock.
 *
 * first and last are changed on both sides. The workers' table is keyed by the destination address, which is read from
 * the copy in the queue. lock is written by the library's functions in packet code.
 *
 * expect first: updateable packets
 * expect last: updateable packets
 * expect lock: updateable
 * expect table: updateable packets
 * expect threads: persistent
 */
#include "packets.h"
#include <pthread.h>
struct job { struct job *next; char packet[1500]; };
struct job *first, *last;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
int table[4096];
int threads = 2;

static void *work(void *unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first) pthread_cond_wait(&filled, &lock);
        struct job *job = first;
        first = job->next;
        pthread_mutex_unlock(&lock);
        if (table[IP(job->packet)->daddr % 4096]++ < 1000) send(device, job->packet, 100, 0);
        free(job);
    }
}

int main(void) {
    for (int at = 0; at < threads; at++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
    }
    for (;;) {
        struct job *job = calloc(1, sizeof *job);
        if (recv(device, job->packet, sizeof job->packet, 0) <= 0) return 0;
        pthread_mutex_lock(&lock);
        if (first) last->next = job; else first = job;
        last = job;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
}
