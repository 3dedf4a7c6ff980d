/* Two packet loops, one after the other: the first learns which addresses are good, the second one only lets these pass.
 *
 * known is changed in the first loop and read in the second one; passed is changed in the second. learned is changed in
 * the first loop, and nothing but the first loop's end depends on it: after that loop packets are sent.
 *
 * expect known: updateable packets src_ip
 * expect learned: updateable -
 * expect passed: updateable silent -
 */
#include "packets.h"
char known[65536];
int learned;
long passed;

static void learn(void) {
    char packet[2048];
    while (learned < 100 && recv(device, packet, sizeof packet, 0) > 0) {
        char *mark = &known[IP(packet)->saddr & 0xffff];
        learned += !*mark;
        *mark = 1;
    }
}

static void filter(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (known[IP(packet)->saddr & 0xffff]) {
            passed++;
            send(device, packet, 100, 0);
        }
}

int main(void) {
    learn();
    filter();
}
