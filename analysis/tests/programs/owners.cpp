/* A tree that owns its nodes by unique_ptr, moved about as it grows.
 *
 * expect root: updateable dst_ip
 * expect nodes: updateable -
 */
#include "packets.h"
#include <memory>
struct Node {
    explicit Node(unsigned key) : key(key) {}
    unsigned key;
    int hits = 0;
    std::unique_ptr<Node> left, right;
};
std::unique_ptr<Node> root;
int nodes;

static Node &find(unsigned key) {
    std::unique_ptr<Node> *at = &root;
    while (*at) {
        if ((*at)->key == key) return **at;
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    }
    auto made = std::make_unique<Node>(key);
    nodes++;
    *at = std::move(made);
    return **at;
}

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) find(IP(packet)->daddr).hits++;
}
