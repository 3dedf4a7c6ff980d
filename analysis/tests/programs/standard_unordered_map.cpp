/* std::unordered_map by a struct of two addresses, with a hash of the program's own.
 *
 * expect flows: updateable logs dst_ip src_ip
 */
#include "packets.h"
#include <unordered_map>
struct Key {
    unsigned src, dst;
    bool operator==(const Key &) const = default;
};
struct Hash {
    size_t operator()(const Key &key) const { return key.src * 31 ^ key.dst; }
};
std::unordered_map<Key, long, Hash> flows;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        Key key{IP(packet)->saddr, IP(packet)->daddr};
        printf("%ld\n", ++flows[key]);
    }
}
