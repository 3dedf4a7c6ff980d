/* Statistics that nobody reads: four updateable variables that impact no output (the paper's tos, tstamp, in_pkt, ..).
 *
 * expect tos: updateable silent -
 * expect stamp: updateable silent -
 * expect history: updateable silent *
 * expect at: updateable silent -
 * expect last: updateable packets -
 */
#include "packets.h"
#include <sys/time.h>
unsigned char tos;
struct timeval seen_at;
long stamp;
unsigned history[128], at, last;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        gettimeofday(&seen_at, NULL);
        stamp = seen_at.tv_sec;
        tos = IP(packet)->tos;
        history[at++ % 128] = IP(packet)->id;
        if (IP(packet)->saddr != last) send(device, packet, 20, 0);
        last = IP(packet)->saddr;
    }
}
