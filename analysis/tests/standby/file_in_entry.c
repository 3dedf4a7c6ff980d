/* Entries made for packets that hold files: what a library owns cannot be carried over, and the primary says so. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct entry {
    int key;
    FILE *log;
    struct entry *next;
};

static struct entry *entries;

int main(void) {
    unsigned char packet[64];
    while (recv(0, packet, sizeof packet, 0) > 0) {
        struct entry *entry = malloc(sizeof *entry);
        if (!entry) return 1;
        entry->key = packet[0];
        entry->log = fopen("/dev/null", "w");
        entry->next = entries;
        entries = entry;
        printf("%d\n", entries->key);
    }
    return 0;
}
