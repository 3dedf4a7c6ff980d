/* Objects of two classes in one table of pointers without type: a method gets only those of its class. Meter's method
 * writes, Limit's reads. meter is made by placement new in a block of bytes, which the debug information knows nothing
 * of; constant and the one in holder have no constructor that runs.
 *
 * expect block: updateable
 * expect constant: updateable
 * expect holder: updateable
 * expect limit: top-level
 */
#include "packets.h"
#include <new>
struct Meter {
    long bytes = 0;
    constexpr Meter(long bytes) : bytes(bytes) {}
    virtual void count(long size) { bytes += size; }
};
struct Limit {
    long most;
    Limit(long most) : most(most) {}
    virtual bool holds(long size) { return size < most; }
};
alignas(Meter) char block[sizeof(Meter)];
Meter constant(7);
struct Holder {
    long before;
    Meter meter;
};
Holder holder = {1, Meter(7)};
Limit limit(1000);
void *items[4];
void *item(int i) { return items[i]; }

int main() {
    char packet[2048];
    long size;
    items[0] = new (block) Meter(0);
    items[1] = &limit;
    items[2] = &constant;
    items[3] = &holder.meter;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        static_cast<Meter *>(item(0))->count(size);
        Meter *other = static_cast<Meter *>(item(2));
        other->count(size);
        static_cast<Meter *>(item(3))->count(size);
        if (static_cast<Limit *>(item(1))->holds(size)) send(device, packet, other->bytes > 10 ? size : 20, 0);
    }
}
