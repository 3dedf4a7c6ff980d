/* Virtual functions that are called without the word: through pointers to methods, and out of the table by hand.
 *
 * expect packets: updateable
 * expect others: updateable
 * expect shared: updateable
 */
#include "packets.h"
long packets, others;
struct Base {
    long shared = 0;
    virtual void share(long size) { shared += size; }
};
struct Step : virtual Base {
    virtual void idle() {}
    virtual void packet(long size) = 0;
    virtual void other(long size) = 0;
};
struct Counter : Step {
    void packet(long size) override { packets += size; }
    void other(long size) override { others += size; }
};
Counter counter;
Step *chosen = &counter;
Base *shared = &counter;
void (Step::*method)(long) = &Step::packet;

int main() {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        (chosen->*method)(size);
        void (*second)(Step *, long) = (*reinterpret_cast<void (***)(Step *, long)>(chosen))[2];
        second(chosen, size);
        shared->share(size);
        send(device, packet, packets + others + shared->shared > 10 ? size : 20, 0);
    }
}
