/* Pointers that go through the kernel: one thread writes a job's address into a pipe, the other one reads it.
 *
 * A limit that the book names: the analysis does not see pointers that pass through files. The job's counter, reached only
 * that way, is missed; the precise answer would be `updateable`. jobs, which is named, is not missed.
 *
 * expect hidden: persistent
 * expect jobs: updateable
 */
#include "packets.h"
#include <pthread.h>
#include <unistd.h>
struct job { int *counter; };
int ends[2], hidden, jobs;

static void *work(void *unused) {
    struct job *job;
    for (;;)
        if (read(ends[0], &job, sizeof job) == sizeof job) ++*job->counter;
}

int main(void) {
    char packet[2048];
    pthread_t thread;
    pipe(ends);
    pthread_create(&thread, NULL, work, NULL);
    struct job *job = malloc(sizeof *job);
    job->counter = &hidden;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        jobs++;
        write(ends[1], &job, sizeof job);
    }
}
