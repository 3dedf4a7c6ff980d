/* SPDX-License-Identifier: Apache-2.0
 *
 * nf.h: network functions for Catena, written in C. ABI version 1.
 *
 * A function is a shared object with one exported table, which CATENA_NF defines. This is a whole one; it
 * drops packets that are longer than the chain file says:
 *
 *     #include <catena/nf.h>
 *     #include <stdlib.h>
 *
 *     struct longest { uint64_t bytes; };
 *     enum { TOO_LONG };
 *     static const char *const reasons[] = { "longer than allowed", NULL };
 *
 *     static int init(struct catena_context *cx, void **self)
 *     {
 *         struct longest *own = malloc(sizeof *own);
 *         if (own == NULL || catena_arg_u64(cx, "bytes", 1514, 60, 65535, &own->bytes) != 0) {
 *             free(own);
 *             return -1;
 *         }
 *         *self = own;
 *         return 0;
 *     }
 *
 *     static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets,
 *                         uint32_t count)
 *     {
 *         const struct longest *own = self;
 *         (void)cx;
 *         for (uint32_t i = 0; i < count; i++)
 *             if (packets[i]->len > own->bytes)
 *                 catena_drop(packets[i], TOO_LONG);
 *     }
 *
 *     CATENA_NF(catena_nf, .name = "longest", .summary = "drops packets that are too long",
 *               .reasons = reasons, .init = init, .process = process, .release = free);
 *
 * It is built and used so:
 *
 *     cc -O2 -shared -fPIC -Iinclude -o longest.so longest.c
 *     chain c { in -> Native(lib = "longest.so", args = {bytes: 1000}) -> out }
 *
 * RULES
 *
 * - Instances. Each worker has its own instance, with its own `self`; `catena check` and `catena run` make
 *   another one on trial and release it, without a packet. Calls of one instance never overlap, but may come from different threads one after the other;
 *   calls of different instances may run at the same time. So all that changes stands in `*self` or in state
 *   objects, never in globals; and nothing in this header may be called from a thread of your own.
 * - process() runs for every batch of packets. It must not allocate, lock, sleep, or call the system.
 * - Time comes from `now_ns` and `arrival_ns`, randomness from catena_random, never from elsewhere: else a
 *   replay of recorded traffic, or of the packets before a failure, takes other decisions than the first run.
 * - `cx`, `packets` and what they point at are valid until the call returns.
 * - The function runs inside Catena's process. Nothing protects Catena from a wild pointer in it. Do not let C++
 *   exceptions or longjmp() leave it.
 * - Catena checks the verdict, the length and the address of every packet when process() returns. A packet with
 *   a verdict that does not exist is dropped as "function gave a bad verdict", one whose `data` or `len` was
 *   changed otherwise than by catena_grow_... and catena_shrink_... as "function gave a wrong length".
 *
 * COMPATIBILITY
 *
 * The table says for which ABI version, and with which sizes of the structures below, a function was built. A
 * later Catena may add members at the ends of structures, and still loads what was built with this header. It
 * refuses what was built with a later header than its own, and says so.
 *
 * This header is C11. It is C++ too; CATENA_NF then needs C++20, and all members in their order.
 */
#ifndef CATENA_NF_H
#define CATENA_NF_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CATENA_ABI 1u
#define CATENA_MAGIC UINT64_C(0x464e2d616e657461) /* what tells a table from other things */

#if defined(__GNUC__)
#define CATENA_VISIBLE __attribute__((visibility("default")))
#define CATENA_PRINTF(at) __attribute__((format(printf, at, at + 1)))
#else
#define CATENA_VISIBLE
#define CATENA_PRINTF(at)
#endif

/* ---- Packets ------------------------------------------------------------------------------------------- */

/* `net`: the network layer. */
enum { CATENA_OTHER = 0, CATENA_ARP = 1, CATENA_IPV4 = 4, CATENA_IPV6 = 6 };

/* `flags`: what was found before and in the upper layer. */
enum {
    CATENA_PORTS = 1,         /* the whole upper-layer header is there and begins with two ports (TCP, UDP, SCTP) */
    CATENA_FRAGMENT = 2,      /* a part of a datagram, first or later */
    CATENA_LATER = 4,         /* a fragment that is not the first: no upper-layer header in it */
    CATENA_VLAN = 8,          /* VLAN tags stand before the network header */
    CATENA_OPTIONS = 16,      /* IPv4 options or IPv6 extension headers stand before the upper layer */
    CATENA_AUTHENTICATED = 32 /* an authentication header: whoever changes the packet breaks it */
};

/* One packet: an Ethernet frame whose headers Catena has checked. Malformed ones never get here.
 *
 * Read anything. Change the bytes `data[0]` to `data[len - 1]`, `mark` and `verdict`; nothing else. */
struct catena_packet {
    unsigned char *data;  /* the first byte of the Ethernet header */
    uint32_t len;         /* bytes */
    uint32_t tail_room;   /* bytes that catena_grow_back can give */
    uint16_t head_room;   /* bytes that catena_grow_front can give: 128 in a fresh packet */
    uint16_t in_port;     /* the port that the packet came in by, from 0 */
    uint32_t mark;        /* in and out: a mark of functions for functions, 0 in a fresh packet */
    uint64_t arrival_ns;  /* when it arrived, ns since 1970. Can step back from one packet to the next */
    uint8_t l3;           /* offset of the network header, from `data` */
    uint8_t net;          /* CATENA_IPV4, ... */
    uint8_t protocol;     /* upper-layer protocol (IANA number), after extension headers; 0 without IP */
    uint8_t flags;        /* CATENA_PORTS, ... */
    uint16_t l4;          /* offset of the upper-layer header; of the data in a later fragment; l3 without IP */
    uint16_t payload;     /* offset of what follows it: for TCP and UDP their data; l4 for unknown protocols */
    uint32_t verdict;     /* out: catena_pass, catena_way, catena_drop. On entry: pass */
    uint32_t reserved;
    uint64_t clock;       /* the packet's logical clock, rising; 0 where packets get none */
    uint64_t reserved2;
};

/* ---- The context --------------------------------------------------------------------------------------- */

struct catena_host;

/* What a function sees of the world; the first argument of everything below. */
struct catena_context {
    uint32_t size;                  /* of this structure, in the Catena that runs */
    uint32_t gate;                  /* in process: the direction, 0 on the way out, 1 on the way back */
    uint64_t now_ns;                /* ns since 1970, of recorded packets or of the wall; never goes back; 0 in init */
    uint32_t instance;              /* this instance, from 0, and how many share the work: packets of a */
    uint32_t instances;             /* connection always meet the same one */
    const struct catena_host *host; /* Catena's side of the functions below: call those */
    void *replaces;                 /* in init: *self of the instance of an earlier build that this one will replace;
                                       it goes on processing meanwhile, on another thread. NULL if there is none */
};

/* State objects, by number; 0 is none. */
typedef struct { uint32_t id; } catena_map;
typedef struct { uint32_t id; } catena_counters;

/* Called for an entry of a map: returns whether it goes (not 0) or stays (0). May not use that map meanwhile. */
typedef int (*catena_visitor)(void *argument, const void *key, const void *value);

/* Catena's side. Members are called through the functions below. */
struct catena_host {
    uint32_t size;
    uint32_t abi;
    const char *(*arg)(struct catena_context *, const char *name);
    void (*fail)(struct catena_context *, const char *text);
    int (*log_wanted)(struct catena_context *, uint32_t level);
    void (*log)(struct catena_context *, uint32_t level, const char *text);
    uint64_t (*random)(struct catena_context *);
    unsigned char *(*resize)(struct catena_context *, struct catena_packet *, int front, int64_t bytes);
    catena_map (*map)(struct catena_context *, const char *name, uint32_t scope, uint32_t access, uint32_t key_size,
                      uint32_t value_size, uint64_t capacity);
    void (*expect)(struct catena_context *, catena_map, const void *key, size_t key_size);
    int (*get)(struct catena_context *, catena_map, const void *key, size_t key_size, void *value, size_t value_size);
    int (*put)(struct catena_context *, catena_map, const void *key, size_t key_size, const void *value,
               size_t value_size);
    int (*remove)(struct catena_context *, catena_map, const void *key, size_t key_size);
    uint64_t (*sweep)(struct catena_context *, catena_map, uint64_t count, catena_visitor, void *argument);
    uint64_t (*entries)(struct catena_context *, catena_map);
    catena_counters (*counters)(struct catena_context *, const char *name, uint32_t scope, uint32_t access,
                                uint32_t count);
    void (*add)(struct catena_context *, catena_counters, uint32_t index, int64_t n);
    int64_t (*read)(struct catena_context *, catena_counters, uint32_t index);
};

/* ---- The table ----------------------------------------------------------------------------------------- */

/* `flags`: the function never changes an EtherType, a length, an offset or a protocol in a header, so that the next
 * one need not look for the headers again. (What catena_grow_... and catena_shrink_... do is known anyway.) */
enum { CATENA_KEEPS_LAYERS = 1 };

/* Another one: the function knows CATENA_NOT_YET. */
enum { CATENA_PATIENT = 2 };

/* What a function is. Made by CATENA_NF, which fills the first members in; `name`, `summary` and `process` must
 * be there, the others may be NULL. */
struct catena_function {
    uint64_t magic;
    uint32_t abi;
    uint32_t size, context_size, packet_size, host_size; /* of the structures, as the function was built */

    uint32_t flags;             /* CATENA_KEEPS_LAYERS or 0 */
    const char *name;           /* in messages; at most 63 bytes */
    const char *summary;        /* what it does, in one line of at most 199 bytes */
    const char *const *reasons; /* names of the drop reasons, at most 100, then NULL */

    /* Make an instance: read arguments, declare state objects, set *self, return 0. Else catena_fail (or a message
     * of a refused argument or object) says why, and what was allocated is freed before returning.
     * It may be called several times and without a run: `catena check` makes an instance to see whether it can be
     * made, `catena run` makes one on trial first, even if it then refuses to start. So it may read files, but
     * must not create, empty or write one, nor send anything: that is for tick and finish. */
    int (*init)(struct catena_context *cx, void **self);
    /* Work on `count` packets (1 to 32), in order: set verdicts. */
    void (*process)(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count);
    /* Called about every millisecond of `now_ns` while packets flow: expire, sweep, log. */
    void (*tick)(void *self, struct catena_context *cx);
    /* Called once after the last packet, for writing out; not called where an instance was only tried. Returns 0,
     * else catena_fail says why. */
    int (*finish)(void *self, struct catena_context *cx);
    /* Free *self; the last call. Nothing in this header may be called in it. */
    void (*release)(void *self);
    /* Go on with what `*self` of another instance holds, which an earlier build of this function made (look at
     * nothing in it before knowing that) and which will only be released after this. State objects are taken over by
     * their names afterwards, in any case. Called between two batches. Returns 0, else catena_fail says why not, and both are
     * as they were. */
    int (*take_over)(void *self, struct catena_context *cx, void *old);
    /* Look at `count` packets, and call catena_expect for each key that process will use for them: see "State that is
     * elsewhere". Changes nothing, neither packets nor *self nor state, and may be called more than once for a packet. */
    void (*prepare)(const void *self, struct catena_context *cx, const struct catena_packet *const *packets,
                    uint32_t count);
};

/* Define the exported table `symbol` (usually `catena_nf`; a library of several functions has one symbol each, and
 * chain files choose by Native's argument `name`). The rest is designated initialisers for the members above. */
#define CATENA_NF(symbol, ...)                                                                                     \
    CATENA_EXTERN CATENA_VISIBLE const struct catena_function symbol;                                              \
    const struct catena_function symbol = { .magic = CATENA_MAGIC,                                                 \
                                            .abi = CATENA_ABI,                                                     \
                                            .size = sizeof(struct catena_function),                                \
                                            .context_size = sizeof(struct catena_context),                         \
                                            .packet_size = sizeof(struct catena_packet),                           \
                                            .host_size = sizeof(struct catena_host),                               \
                                            __VA_ARGS__ }
#ifdef __cplusplus
#define CATENA_EXTERN extern "C"
#else
#define CATENA_EXTERN extern
#endif

/* ---- Verdicts (in process) ----------------------------------------------------------------------------- */

/* A verdict is the number of an output gate, or CATENA_DROP plus the index of a drop reason. Output gate
 * 2w + direction is way w; the chain file leads it on by `fw[w] -> ...`. Way 0 is the normal way (`fw -> ...`), ways
 * 1 to 7 are the function's; a way that no edge of the chain takes is way 0. */
#define CATENA_DROP UINT32_C(0x80000000)
#define CATENA_AGAIN UINT32_C(0x40000000)
#define CATENA_WAYS 8u

/* Let the packet go on the normal way, in its direction. It does so when nothing is said. */
static inline void catena_pass(const struct catena_context *cx, struct catena_packet *packet)
{
    packet->verdict = cx->gate;
}

/* Let the packet leave by way 0 to 7, in its direction. */
static inline void catena_way(const struct catena_context *cx, struct catena_packet *packet, uint32_t way)
{
    packet->verdict = 2u * way + cx->gate;
}

/* Drop the packet, counted under reasons[reason]. */
static inline void catena_drop(struct catena_packet *packet, uint32_t reason)
{
    packet->verdict = CATENA_DROP | reason;
}

/* Begin with the packet once more when all is there that was CATENA_NOT_YET in this call. For functions with the flag
 * CATENA_PATIENT. */
static inline void catena_again(struct catena_packet *packet)
{
    packet->verdict = CATENA_AGAIN;
}

/* ---- Length (in process) ------------------------------------------------------------------------------- */

/* Add `bytes` zeros before the first byte, or after the last, or take bytes off there. They return the new `data`
 * and update `data`, `len`, `head_room` and `tail_room`; or NULL, with the packet as it was, when there is no such
 * room or there are not so many bytes. After a change the offsets, `net`, `protocol` and `flags` are 0: keep what you
 * still need. Lengths and checksums in headers are the function's to mend; Catena checks the headers again before
 * the next function. */
static inline unsigned char *catena_grow_front(struct catena_context *cx, struct catena_packet *packet, uint32_t bytes)
{
    return cx->host->resize(cx, packet, 1, (int64_t)bytes);
}

static inline unsigned char *catena_grow_back(struct catena_context *cx, struct catena_packet *packet, uint32_t bytes)
{
    return cx->host->resize(cx, packet, 0, (int64_t)bytes);
}

static inline unsigned char *catena_shrink_front(struct catena_context *cx, struct catena_packet *packet,
                                                 uint32_t bytes)
{
    return cx->host->resize(cx, packet, 1, -(int64_t)bytes);
}

static inline unsigned char *catena_shrink_back(struct catena_context *cx, struct catena_packet *packet, uint32_t bytes)
{
    return cx->host->resize(cx, packet, 0, -(int64_t)bytes);
}

/* ---- Arguments (in init) ------------------------------------------------------------------------------- */

/* Say why init or finish fails, in words for the user and printf's notation; the first message counts. */
CATENA_PRINTF(2)
static inline void catena_fail(struct catena_context *cx, const char *format, ...)
{
    char text[240];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cx->host->fail(cx, text);
}

/* Return an argument of the chain file, `args = {name: value}`, as text, or NULL when it is not given. Valid until
 * init returns. Times are in ns, rates in bits or packets a second, sizes in bytes, percentages a fraction of 1;
 * a prefix is `10.0.0.0/8`, a range `1024-65535`, a list has commas between, `file("x")` is what stands in x. An
 * argument that init never asked for is an error: the user's spelling was wrong. */
static inline const char *catena_arg(struct catena_context *cx, const char *name)
{
    return cx->host->arg(cx, name);
}

/* Read a whole number from `least` to `most`; `otherwise` when it is not given. Returns 0, or -1 after catena_fail. */
static inline int catena_arg_u64(struct catena_context *cx, const char *name, uint64_t otherwise, uint64_t least,
                                 uint64_t most, uint64_t *number)
{
    const char *text = catena_arg(cx, name);
    char *end = NULL;
    unsigned long long value;
    *number = otherwise;
    if (text == NULL)
        return 0;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < least || value > most) {
        catena_fail(cx, "argument `%.40s`: expected a whole number from %llu to %llu, found `%.40s`", name,
                    (unsigned long long)least, (unsigned long long)most, text);
        return -1;
    }
    *number = value;
    return 0;
}

/* ---- Log and randomness -------------------------------------------------------------------------------- */

enum { CATENA_ERROR = 0, CATENA_WARNING = 1, CATENA_INFO = 2, CATENA_DEBUG = 3 };

/* Say something to the operator, on Catena's standard error; printf's notation, at most 239 bytes. In process too:
 * lines are kept in memory until the next tick. Beyond 32 lines, or 20 a second of `now_ns`, lines are counted
 * instead (and cost nearly nothing). What came from a packet may be printed: control characters are shown as such. */
CATENA_PRINTF(3)
static inline void catena_log(struct catena_context *cx, uint32_t level, const char *format, ...)
{
    char text[240];
    va_list list;
    if (!cx->host->log_wanted(cx, level))
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cx->host->log(cx, level, text);
}

/* Return 64 random bits, the same again in a repeated run; not for secrets. */
static inline uint64_t catena_random(struct catena_context *cx)
{
    return cx->host->random(cx);
}

/* ---- State objects ------------------------------------------------------------------------------------- */

/* State that stands here, not in `*self`, is seen by Catena: in tables, and for moving flows between instances. The
 * scope says which header fields the key is made of, the access pattern how often it is used; they do not change
 * what the operations do. */
enum catena_scope {
    CATENA_CONNECTION = 0,      /* both directions of a connection: the five-tuple */
    CATENA_SOURCE_ENDPOINT = 1, /* source address, source port, protocol */
    CATENA_SOURCE = 2,          /* source address */
    CATENA_DESTINATION = 3,     /* destination address */
    CATENA_CONFIGURED = 4,      /* what the configuration names: servers, classes */
    CATENA_GLOBAL = 5,          /* one for all packets */
    CATENA_WORKER = 6           /* of no packets: each worker has its own, and that will do (a cache) */
};
enum catena_access {
    CATENA_WRITE_MOSTLY = 0, /* written mostly, read rarely */
    CATENA_READ_MOSTLY = 1,  /* written rarely, read mostly */
    CATENA_READ_WRITE = 2    /* both often */
};

/* What operations return. */
enum {
    CATENA_NO = 0,      /* get, remove: no such entry. put: the map is full */
    CATENA_YES = 1,     /* done */
    CATENA_NOT_YET = 2, /* not done: the entry is elsewhere, and will be there when the function begins with the packet
                           once more (catena_again). Only functions with the flag CATENA_PATIENT ever see it */
    CATENA_WRONG = -1   /* not done: a map that does not exist or is being swept, or a key or value of a size other
                           than declared. It is counted and logged */
};

/* Declare, in init, a map from keys of `key_size` bytes (1 to 40) to values of `value_size` bytes (1 to 256), for at
 * most `capacity` entries (up to 2^28). The name, at most 63 bytes, is unique within the function. All memory is
 * reserved here and used as entries come. A refusal makes init fail, with a message. With several workers, all packets of
 * a source meet one of them. Capacity is the total of all where the scope is a connection, a source endpoint or a source: each
 * worker has an equal part of it; of a CATENA_WORKER map each has as much as is said here. A map of another scope is
 * refused then: packets of one entry would meet several workers, and find an entry in each. */
static inline catena_map catena_new_map(struct catena_context *cx, const char *name, enum catena_scope scope,
                                        enum catena_access access, uint32_t key_size, uint32_t value_size,
                                        uint64_t capacity)
{
    return cx->host->map(cx, name, (uint32_t)scope, (uint32_t)access, key_size, value_size, capacity);
}

/* The operations on maps take pointers to the key and the value themselves, so that their sizes are known (and held
 * against the declaration). Values are copied. Keys are compared byte by byte: clear a structure's padding.
 *
 *     catena_get(cx, map, &key, &value)    copy the entry to `value`
 *     catena_put(cx, map, &key, &value)    put an entry in, or in place of the one there is
 *     catena_remove(cx, map, &key)         take the entry out
 *     catena_expect(cx, map, &key)         say that the key will be used soon: called for all packets of a batch first
 *                                          (best in prepare), it lets their cache misses overlap
 *
 * State that is elsewhere. Maps are in Catena's own memory, and each operation is done at once. Where an instance shares
 * its state with others, maps may be in another place, and an entry takes a while to come. A function runs there as
 * well, if it keeps to these rules:
 *
 * - prepare() calls catena_expect for the keys that process() will use with get, put or remove: up to 8 for a packet.
 *   It changes nothing: catena_add and catena_sweep are a mistake in it.
 *   Catena lets the packet wait until the entries are there. Meanwhile packets of other flows go on, but none of the same
 *   connection, and none that expects the same key.
 * - A key that was not expected (its value may depend on another entry) is CATENA_NOT_YET. The function says catena_again
 *   for the packet, and is called for it once more, from the start, when the entry is there, and so are all that the packet
 *   has used before. Until then it has changed nothing: no byte, no entry, no counter, nothing in *self. After 8 calls the
 *   packet is dropped as "function gave a bad verdict".
 * - Without the flag CATENA_PATIENT such a key is a mistake: CATENA_WRONG. So is any key in init, tick and finish.
 * - Both functions get one packet at a time there; and packets of different flows may come to process() in another order
 *   than to prepare().
 *
 * A function with maps, without `prepare` and without the flag is refused there. (In this version of Catena state is always
 * local, but for tests.) */
#define catena_get(cx, map, key, value) ((cx)->host->get((cx), (map), (key), sizeof *(key), (value), sizeof *(value)))
#define catena_put(cx, map, key, value) ((cx)->host->put((cx), (map), (key), sizeof *(key), (value), sizeof *(value)))
#define catena_remove(cx, map, key) ((cx)->host->remove((cx), (map), (key), sizeof *(key)))
#define catena_expect(cx, map, key) ((cx)->host->expect((cx), (map), (key), sizeof *(key)))

/* Look at the next `count` places for entries, each once a round, and take out those for which `visitor` returns not
 * 0. A few places every tick keep a map free of what has expired. Returns the number of places looked at, less than
 * `count` when the map is smaller. */
static inline uint64_t catena_sweep(struct catena_context *cx, catena_map map, uint64_t count, catena_visitor visitor,
                                    void *argument)
{
    return cx->host->sweep(cx, map, count, visitor, argument);
}

/* Return the number of entries. */
static inline uint64_t catena_entries(struct catena_context *cx, catena_map map)
{
    return cx->host->entries(cx, map);
}

/* Declare, in init, `count` counters (1 to 65,536), all 0. A single one, and each of at most 16, stands in Catena's
 * tables by its name. */
static inline catena_counters catena_new_counters(struct catena_context *cx, const char *name, enum catena_scope scope,
                                                  enum catena_access access, uint32_t count)
{
    return cx->host->counters(cx, name, (uint32_t)scope, (uint32_t)access, count);
}

/* Add to a counter. */
static inline void catena_add(struct catena_context *cx, catena_counters counters, uint32_t index, int64_t n)
{
    cx->host->add(cx, counters, index, n);
}

/* Return what is known of a counter: for logs and exports, not for the fate of packets. Where state is elsewhere it may be old. */
static inline int64_t catena_read(struct catena_context *cx, catena_counters counters, uint32_t index)
{
    return cx->host->read(cx, counters, index);
}

#ifdef __cplusplus
}
#endif

#endif
