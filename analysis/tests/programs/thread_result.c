/* A thread per packet returns what it found by its result; who joins it adds it up.
 *
 * The result is a pointer to a block that leads to `found`; pthread_join hands it out.
 *
 * expect found: updateable logs
 * expect sum: updateable logs -
 */
#include "packets.h"
#include <pthread.h>
struct answer { int bytes, *counter; };
int found, sum;

static void *inspect(void *given) {
    char *packet = given;
    struct answer *answer = malloc(sizeof *answer);
    answer->bytes = IP(packet)->tot_len;
    answer->counter = &found;
    return answer;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, inspect, packet);
        pthread_join(thread, &result);
        struct answer *answer = result;
        ++*answer->counter;
        sum += answer->bytes;
        printf("%d %d\n", found, sum);
    }
}
