/* Files and TCP connections. */
#define _GNU_SOURCE
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static bool split(const char *name, char *host, size_t size, const char **port) {
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || (size_t)(colon - name) >= size || !colon[1]) return false;
    memcpy(host, name, (size_t)(colon - name));
    host[colon - name] = 0;
    *port = colon + 1;
    return true;
}

/* Connect to an address, or listen on it; -1 with errno. */
static int open_address(const struct addrinfo *address, bool listens) {
    int one = 1, channel = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (channel < 0) return -1;
    if (listens) {
        setsockopt(channel, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (!bind(channel, address->ai_addr, address->ai_addrlen) && !listen(channel, 1)) return channel;
    } else {
        setsockopt(channel, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!connect(channel, address->ai_addr, address->ai_addrlen)) return channel;
    }
    int reason = errno;
    close(channel);
    errno = reason;
    return -1;
}

static int open_tcp(const char *name, bool listens, char *error, size_t size) {
    char host[256];
    const char *port;
    if (!split(name, host, sizeof host, &port)) {
        snprintf(error, size, "tcp:%s: expected tcp:HOST:PORT", name);
        return -1;
    }
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found;
    if (listens) wanted.ai_flags = AI_PASSIVE;
    int unknown = getaddrinfo(host, port, &wanted, &found);
    if (unknown) {
        snprintf(error, size, "tcp:%s: %s", name, gai_strerror(unknown));
        return -1;
    }
    int channel = -1;
    /* The standby may still be starting. */
    for (int tries = listens ? 1 : 100; tries > 0 && channel < 0; tries--) {
        for (const struct addrinfo *at = found; at && channel < 0; at = at->ai_next)
            channel = open_address(at, listens);
        if (channel < 0 && tries > 1) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    freeaddrinfo(found);
    if (channel >= 0 && listens) {
        int listening = channel;
        do channel = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        while (channel < 0 && errno == EINTR);
        close(listening);
    }
    if (channel < 0) snprintf(error, size, "tcp:%s: %s", name, strerror(errno));
    return channel;
}

static int open_channel(const char *name, bool reads, char *error, size_t size) {
    if (!strncmp(name, "tcp:", 4)) return open_tcp(name + 4, reads, error, size);
    if (strncmp(name, "file:", 5) || !name[5]) {
        snprintf(error, size, "%s: expected file:PATH or tcp:HOST:PORT", name);
        return -1;
    }
    int flags = reads ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
    int channel = open(name + 5, flags | O_CLOEXEC, 0600);
    if (channel < 0) snprintf(error, size, "%s: %s", name + 5, strerror(errno));
    return channel;
}

int channel_to(const char *name, char *error, size_t size) { return open_channel(name, false, error, size); }

int channel_from(const char *name, char *error, size_t size) { return open_channel(name, true, error, size); }

bool channel_write(int channel, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count) {
        /* A standby that is gone must not end its primary by SIGPIPE. */
        ssize_t written = send(channel, at, count, MSG_NOSIGNAL);
        if (written < 0 && errno == ENOTSOCK) written = write(channel, at, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        count -= (size_t)written;
    }
    return true;
}

size_t channel_read(int channel, void *bytes, size_t count) {
    size_t all = 0;
    while (all < count) {
        ssize_t now = read(channel, (char *)bytes + all, count - all);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) break;
        all += (size_t)now;
    }
    return all;
}
