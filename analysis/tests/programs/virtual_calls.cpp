/* A chain of filters behind a base class; which ones run is decided when the program starts.
 *
 * Both filters that are made change their own counters, and the objects on the heap lead to `hits`. Never is not made by
 * anybody, so nothing calls its procedure.
 *
 * expect chain: updateable packets
 * expect hits: updateable
 * expect unmade: persistent
 */
#include "packets.h"
int hits, unmade;
struct Filter {
    virtual ~Filter() = default;
    virtual bool accept(const char *packet) = 0;
    Filter *next = nullptr;
};
struct Port : Filter {
    explicit Port(int *counter) : counter(counter) {}
    bool accept(const char *packet) override { return UDP(packet)->dest != 53 || ++*counter < 100; }
    int *counter;
};
struct Size : Filter {
    bool accept(const char *packet) override { return (bytes += IP(packet)->tot_len) < 1000000; }
    long bytes = 0;
};
struct Never : Filter {
    bool accept(const char *) override { return ++unmade; }
};
Filter *chain;

int main() {
    char packet[2048];
    chain = new Port(&hits);
    chain->next = new Size;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        bool good = true;
        for (Filter *at = chain; at; at = at->next) good &= at->accept(packet);
        if (good) send(device, packet, 100, 0);
    }
}
