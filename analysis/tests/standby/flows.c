/* Hosts by their address, which packets add to or ask for, and totals that belong to no host: what a question about one
 * host makes a primary ship depends on the model. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct request {
    unsigned char kind, address;
};

struct host {
    unsigned char address;
    char name[283];
    unsigned added;
    struct host *next;
};

struct totals {
    unsigned long added;
    char last[992];
};

static struct host *hosts[64];
static struct totals totals;
static unsigned asked;

static struct host *find(unsigned char address) {
    struct host *host = hosts[address % 64];
    while (host && host->address != address) host = host->next;
    return host;
}

static void add(unsigned char address) {
    struct host *host = find(address);
    if (!host) {
        host = calloc(1, sizeof *host);
        if (!host) abort();
        host->address = address;
        snprintf(host->name, sizeof host->name, "host %u", address);
        host->next = hosts[address % 64];
        hosts[address % 64] = host;
    }
    host->added++;
    totals.added++;
    snprintf(totals.last, sizeof totals.last, "%s", host->name);
    printf("%s: %u of %lu\n", totals.last, host->added, totals.added);
}

static void ask(unsigned char address) {
    const struct host *host = find(address);
    asked++;
    printf("question %u: %s\n", asked, host ? host->name : "nobody");
}

int main(void) {
    struct request request;
    while (recv(0, &request, sizeof request, 0) > 0) {
        if (request.kind == 1)
            add(request.address);
        else
            ask(request.address);
    }
    return 0;
}
