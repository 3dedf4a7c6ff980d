/* inet_ntoa returns the library's own buffer; it is copied into a table of names.
 *
 * names is written by strcpy and logged. Its index is the last byte of the source address. prefix is only read.
 *
 * expect names: updateable logs src_ip
 * expect prefix: top-level
 */
#include "packets.h"
#include <arpa/inet.h>
char names[256][16], prefix[8] = "host";

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct in_addr address = {IP(packet)->saddr};
        char *name = names[address.s_addr >> 24];
        strcpy(name, inet_ntoa(address));
        printf("%s %s\n", prefix, name);
    }
}
