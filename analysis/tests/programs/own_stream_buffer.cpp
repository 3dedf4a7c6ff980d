/* A stream writes through the methods of its buffer, which are the program's own: the library calls them.
 *
 * meter is the buffer: what is written to the stream is counted in it. most is what its method compares with.
 *
 * expect meter: updateable logs
 * expect most: top-level
 * expect out: updateable *
 */
#include "packets.h"
#include <ostream>
#include <streambuf>
class Meter : public std::streambuf {
public:
    long written = 0, longest = 0;

protected:
    int overflow(int letter) override {
        ++written;
        return letter;
    }
    std::streamsize xsputn(const char *text, std::streamsize length) override;
};
long most = 1400;
std::streamsize Meter::xsputn(const char *text, std::streamsize length) {
    if (length > longest && length < most) longest = length;
    return length;
}
Meter meter;
std::ostream out(&meter);

int main() {
    char packet[2048];
    long size;
    while ((size = recv(device, packet, sizeof packet, 0)) > 0) {
        out << packet << '\n';
        printf("%ld %ld\n", meter.written, meter.longest);
    }
}
