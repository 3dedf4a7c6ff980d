/* An object of a class holds the state; its procedures get at it by `this`.
 *
 * meter is changed by a procedure of its own; limits is read by one. A static member is a global variable.
 *
 * expect meter: updateable packets
 * expect limits: top-level
 * expect objects: persistent
 */
#include "packets.h"
class Meter {
public:
    Meter() { ++objects; }
    void count(long size) { bytes += size; }
    bool over(long most) const { return bytes > most; }
    static int objects;
private:
    long bytes = 0;
};
class Limits {
public:
    long most() const { return limit; }
private:
    long limit = 1000000;
};
int Meter::objects;
Meter meter;
Limits limits;

int main() {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        meter.count(size);
        if (!meter.over(limits.most())) send(device, packet, size, 0);
    }
}
