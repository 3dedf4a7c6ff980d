/* std::map by source address.
 *
 * The tree's nodes are compared with the key inside the library's templates, whose code is in the program. Counts are
 * changed; what is sent depends on them.
 *
 * expect hosts: updateable packets src_ip
 * expect most: top-level -
 */
#include "packets.h"
#include <map>
std::map<unsigned, int> hosts;
int most = 100;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        int &count = hosts[IP(packet)->saddr];
        if (++count < most) send(device, packet, 100, 0);
    }
}
