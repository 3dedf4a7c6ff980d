/* What is printed by C++ streams is logged.
 *
 * text is printed as a string and seen as a number; hidden is neither. Nothing is sent.
 *
 * expect seen: updateable logs -
 * expect text: updateable logs
 * expect hidden: updateable silent -
 */
#include "packets.h"
#include <iostream>
#include <string>
int seen, hidden;
std::string text;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        text.push_back(packet[0]);
        hidden++;
        std::cout << ++seen << ' ' << text << std::endl;
    }
}
