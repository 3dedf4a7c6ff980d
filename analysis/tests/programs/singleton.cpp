/* An object that is made when it is first asked for: a static variable of a procedure, guarded by the compiler.
 *
 * expect instance/registry: updateable logs
 */
#include "packets.h"
class Registry {
public:
    static Registry &instance() {
        static Registry registry;
        return registry;
    }
    int next() { return ++last; }
private:
    Registry() : last(device) {}
    int last;
};

int main() {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) printf("%d\n", Registry::instance().next());
}
