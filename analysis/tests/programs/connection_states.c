/* A machine of states per connection: the next state is read from a constant table by state and flags.
 *
 * Connections are found by the five fields of a packet in either direction, smaller address first: both addresses and both
 * ports key the table. refused is sent about, established only logged.
 *
 * expect connections: updateable packets logs dst_ip dst_port src_ip src_port
 * expect established: updateable logs -
 * absent next_state
 */
#include "packets.h"
enum state { CLOSED, OPENING, OPEN, CLOSING };
struct connection { unsigned low, high; unsigned short low_port, high_port; enum state state; };
struct connection connections[8192];
int established;
static const enum state next_state[4][4] = {
    {CLOSED, OPENING, CLOSED, CLOSED}, {OPENING, OPENING, OPEN, CLOSED}, {OPEN, OPEN, OPEN, CLOSING}, {CLOSING}};

static struct connection *find(char *packet) {
    unsigned low = IP(packet)->saddr, high = IP(packet)->daddr;
    unsigned short low_port = TCP(packet)->source, high_port = TCP(packet)->dest;
    if (low > high) {
        low = IP(packet)->daddr, high = IP(packet)->saddr;
        low_port = TCP(packet)->dest, high_port = TCP(packet)->source;
    }
    for (int at = 0; at < 8192; at++) {
        struct connection *connection = &connections[at];
        if (!connection->low) {
            connection->low = low, connection->high = high;
            connection->low_port = low_port, connection->high_port = high_port;
            return connection;
        }
        if (connection->low == low && connection->high == high && connection->low_port == low_port &&
            connection->high_port == high_port)
            return connection;
    }
    return NULL;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct connection *connection = find(packet);
        if (!connection) continue;
        int event = TCP(packet)->fin ? 3 : TCP(packet)->syn ? 1 : TCP(packet)->ack ? 2 : 0;
        enum state before = connection->state;
        connection->state = next_state[before][event];
        if (before != OPEN && connection->state == OPEN) printf("%d\n", ++established);
        if (connection->state != CLOSED) send(device, packet, 100, 0);
    }
}
