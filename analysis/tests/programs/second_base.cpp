/* A class with two bases: called by its second one, the procedure gets an address within the object and goes back.
 *
 * The counter lies before the second base, so it is reached only by a step backwards from what the list holds.
 *
 * expect listeners: updateable
 * expect both: updateable logs
 */
#include "packets.h"
struct Named {
    virtual const char *name() { return "named"; }
    long calls = 0;
};
struct Listener {
    virtual void on(const char *packet) = 0;
    Listener *next = nullptr;
};
struct Both : Named, Listener {
    void on(const char *packet) override { calls += packet[0]; }
};
Both both;
Listener *listeners = &both;

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        for (Listener *at = listeners; at; at = at->next) at->on(packet);
        printf("%ld\n", both.calls);
    }
}
