/* std::string as key: hosts are counted by the name that a packet carries.
 *
 * The name is cut out of the packet's bytes, which no struct describes, so no header field is known by name: the key is read
 * from the packet as bytes.
 *
 * expect names: updateable logs
 * expect longest: updateable logs
 */
#include "packets.h"
#include <map>
#include <string>
std::map<std::string, int> names;
std::string longest;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        std::string name(packet + 28, packet[27]);
        if (name.size() > longest.size()) longest = name;
        printf("%s %d\n", longest.c_str(), ++names[name]);
    }
}
