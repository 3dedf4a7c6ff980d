/* Orders by name: a table of strings and procedures is searched with strcmp.
 *
 * Table and names are constant and lead to procedures only: no state. reset and show run after packets. The counter is
 * reset by the one and logged by the other.
 *
 * expect counter: updateable logs -
 * expect shown: updateable silent -
 * absent commands
 */
#include "packets.h"
int counter, shown;

static void reset(void) { counter = 0; }
static void show(void) {
    shown++;
    printf("%d\n", counter);
}

struct command { const char *name; void (*run)(void); };
static const struct command commands[] = {{"reset", reset}, {"show", show}};

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        counter++;
        for (unsigned at = 0; at < 2; at++)
            if (!strcmp(packet, commands[at].name)) commands[at].run();
    }
}
