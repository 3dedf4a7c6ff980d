/* A cast to the second base of what a pointer to the first one leads to: it lies behind the first in the object, and only
 * there is the pointer to hits. Plain is no Counts, so no cast leads into it.
 *
 * expect hits: updateable
 * expect plain: top-level
 */
#include "packets.h"
long hits;
struct Named {
    long names = 0;
    virtual bool wants(long size) { return size > names; }
};
struct Counts {
    long *counter = &hits;
    long unread = 0;
    virtual void count(long size) { *counter += size, unread = 1; }
};
struct Both : Named, Counts {};
struct Plain : Named {
    long most = 1400;
    bool wants(long size) override { return size < most; }
};
Both both;
Plain plain;
Named *all[] = {&both, &plain};

int main() {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0)
        for (Named *one : all) {
            if (Counts *counts = dynamic_cast<Counts *>(one)) counts->count(size);
            if (one->wants(size)) send(device, packet, hits > 10 ? size : 20, 0);
        }
}
