/* What packets do to objects: accesses are kept until it is known that they were part of processing a packet, which is
 * when the next one is asked for; what a program does after its last packet does not count. */
#include "lock.h"
#include "objects.h"
#include "reach.h"
#include "trace.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ = 1, WRITTEN = 2, LEADS = 4 };

static const struct catena_variable *variables;
static uint32_t variable_count;
/* What is certain of each variable, and what is if the packet in work counts. */
static uint8_t *certain, *pending;
static uint32_t *pending_variables, *pending_objects;
static uint32_t pending_variable_count, pending_object_count;
enum { MOST_PENDING = 1 << 26 };

static uint64_t packets, next_boundary;
/* The program ends when it gets one more. */
static uint64_t most_packets = UINT64_MAX;
/* How often a packet was asked for or came: what happens over such a moment cannot be said to be of one packet. */
static uint64_t moments;
static bool processing;
/* Whether something changed since the last boundary that no packet did. */
static bool other_changes = true;

/* The thread that receives; others may do things at any time that no packet causes. */
static _Thread_local char self;
static char *receiver;
static bool threads;

static atomic_flag locked = ATOMIC_FLAG_INIT;
static _Thread_local bool inside;

bool catena_lock(void) {
    if (inside) return false;
    inside = true;
    while (atomic_flag_test_and_set_explicit(&locked, memory_order_acquire)) continue;
    return true;
}

void catena_unlock(bool mine) {
    if (!mine) return;
    atomic_flag_clear_explicit(&locked, memory_order_release);
    inside = false;
}

static void note(uint32_t number, uint8_t what) {
    uint32_t variable = catena_objects[number].variable;
    if (variable != NO_VARIABLE && !(pending[variable] & what)) {
        if (!pending[variable]) pending_variables[pending_variable_count++] = variable;
        pending[variable] |= what;
    }
    if (what == WRITTEN && !catena_objects[number].pending && pending_object_count < MOST_PENDING) {
        catena_objects[number].pending = 1;
        pending_objects[pending_object_count++] = number;
    }
}

static void touch(uintptr_t begin, uint64_t size, uint8_t what) {
    if (!variables || !size) return;
    bool mine = catena_lock();
    if (!mine) return;
    if (!processing || receiver != &self) {
        if (what == WRITTEN) other_changes = true;
    } else {
        uint32_t number = catena_object_at(begin), last = size > 1 ? catena_object_at(begin + size - 1) : number;
        if (number) note(number, what);
        if (last && last != number) note(last, what);
    }
    catena_unlock(mine);
}

void catena_trace_read(const void *address, uint64_t size) { touch((uintptr_t)address, size, READ); }
void catena_trace_write(const void *address, uint64_t size) { touch((uintptr_t)address, size, WRITTEN); }

static void note_read(uint32_t number) { note(number, READ); }

void catena_trace_read_deep(const void *address) {
    if (!variables || !catena_lock()) return;
    if (processing && receiver == &self) catena_for_reachable((uintptr_t)address, note_read);
    catena_unlock(true);
}

/* --- library calls */

struct lent {
    uint32_t number;
    uintptr_t begin;
    uint64_t hash, moment;
};
enum { MOST_LENT = 4096 };
static _Thread_local struct lent lent[MOST_LENT];
static _Thread_local uint64_t lent_count;

uint64_t catena_trace_lend(void) { return lent_count; }

void catena_trace_lend_object(const void *address) {
    if (!variables || lent_count == MOST_LENT || !catena_lock()) return;
    uint32_t number = processing && receiver == &self ? catena_object_at((uintptr_t)address) : 0;
    if (number)
        lent[lent_count++] = (struct lent){number, catena_objects[number].begin, catena_object_hash(number), moments};
    catena_unlock(true);
}

void catena_trace_take_back(uint64_t mark) {
    if (!variables || mark == lent_count || !catena_lock()) return;
    while (lent_count > mark) {
        struct lent *one = &lent[--lent_count];
        struct object *object = &catena_objects[one->number];
        if (object->alive && object->begin == one->begin && one->moment == moments &&
            catena_object_hash(one->number) != one->hash)
            note(one->number, WRITTEN);
    }
    catena_unlock(true);
}

/* --- packets */

static void lead(uint32_t number) {
    if (catena_objects[number].variable != NO_VARIABLE) certain[catena_objects[number].variable] |= LEADS;
}

static void changed(uint32_t number) {
    catena_objects[number].written = 1;
    if (catena_objects[number].variable != NO_VARIABLE) certain[catena_objects[number].variable] |= WRITTEN;
}

/* What is pending was done for a packet; at times, look at all memory. */
static void boundary(void) {
    for (uint32_t i = 0; i < pending_variable_count; ++i) {
        uint32_t variable = pending_variables[i];
        certain[variable] |= pending[variable];
        pending[variable] = 0;
    }
    for (uint32_t i = 0; i < pending_object_count; ++i) {
        struct object *object = &catena_objects[pending_objects[i]];
        if (object->alive && object->pending) object->written = 1;
        object->pending = 0;
    }
    pending_variable_count = pending_object_count = 0;
    if (packets < next_boundary) return;
    size_t bytes = catena_look(other_changes || threads ? NULL : changed, lead);
    other_changes = false;
    /* Small programs are looked at after every packet; what is large more and more rarely. */
    next_boundary = packets + 1 + (bytes > 65536 ? packets / 16 : 0);
}

static void forget(void) {
    for (uint32_t i = 0; i < pending_variable_count; ++i) pending[pending_variables[i]] = 0;
    for (uint32_t i = 0; i < pending_object_count; ++i) catena_objects[pending_objects[i]].pending = 0;
    pending_variable_count = pending_object_count = 0;
}

uint64_t catena_trace_receiving(void) {
    if (!variables || !catena_lock()) return 0;
    uint64_t before = packets;
    if (processing && receiver == &self) boundary();
    if (receiver && receiver != &self) threads = true;
    ++moments;
    catena_unlock(true);
    return before;
}

void catena_trace_received(int64_t answer, uint64_t asked) {
    if (!variables || !catena_lock()) return;
    bool end = false;
    ++moments;
    if (answer > 0) {
        if (processing && receiver == &self) boundary();
        receiver = &self;
        processing = true;
        end = packets++ == most_packets;
    } else {
        /* A function that gives packets to callbacks was done with them when it returned. */
        if (processing && packets > asked)
            boundary();
        else
            forget();
        processing = false;
        other_changes = true;
    }
    catena_unlock(true);
    if (end) exit(0);
}

enum { MOST_CALLBACKS = 64 };
static const void *callbacks[MOST_CALLBACKS];
static unsigned callback_count;
static const void *running;

void catena_trace_calls_back(const void *function) {
    if (!catena_lock()) return;
    other_changes = true;
    bool there = false;
    for (unsigned i = 0; i < callback_count; ++i) there |= callbacks[i] == function;
    if (!there && callback_count < MOST_CALLBACKS) callbacks[callback_count++] = function;
    catena_unlock(true);
}

void catena_trace_called(const void *function) {
    if (!callback_count || running) return;
    for (unsigned i = 0; i < callback_count; ++i)
        if (callbacks[i] == function) running = function;
    if (running) catena_trace_received(1, packets);
}

void catena_trace_returned(const void *function) {
    if (running != function || !running) return;
    running = NULL;
    catena_trace_receiving();
    if (!catena_lock()) return;
    processing = false;
    catena_unlock(true);
}

/* --- the program */

static _Thread_local uint32_t *frames;
static _Thread_local uint64_t frame_count;
enum { MOST_FRAMES = 1 << 22 };
static char *first_thread;

uint64_t catena_trace_enter(void) { return frame_count; }

void catena_trace_local(void *address, uint64_t size, uint32_t variable) {
    /* Stacks of other threads go away without notice. */
    if (!variables || first_thread != &self || frame_count == MOST_FRAMES || !catena_lock()) return;
    if (!frames) frames = catena_reserve(sizeof *frames * MOST_FRAMES);
    memset(address, 0, size);
    uint32_t number = catena_object_new((uintptr_t)address, size, variable);
    if (number) frames[frame_count++] = number;
    catena_unlock(true);
}

void catena_trace_leave(uint64_t mark) {
    if (frame_count <= mark || !catena_lock()) return;
    while (frame_count > mark) catena_object_gone(frames[--frame_count]);
    catena_unlock(true);
}

static void report_at_end(void) {
    const char *name = getenv("CATENA_TRACE");
    if (!name) name = "trace.tsv";
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        perror(name);
        return;
    }
    catena_trace_report(file);
    close(file);
}

void catena_trace_program(const struct catena_variable *table, uint32_t count, const struct catena_global *globals,
                          uint32_t global_count) {
    if (variables || !catena_lock()) return;
    first_thread = &self;
    variables = table;
    variable_count = count;
    certain = catena_reserve(count + 1);
    pending = catena_reserve(count + 1);
    pending_variables = catena_reserve(sizeof *pending_variables * (count + 1));
    pending_objects = catena_reserve(sizeof *pending_objects * MOST_PENDING);
    for (uint32_t i = 0; i < global_count; ++i)
        catena_object_new((uintptr_t)globals[i].address, globals[i].size, (uint32_t)globals[i].variable);
    catena_unlock(true);
    const char *most = getenv("CATENA_TRACE_PACKETS");
    if (most) most_packets = strtoull(most, NULL, 10);
    /* Whoever asks for the report himself sets an empty name. */
    const char *name = getenv("CATENA_TRACE");
    if (!name || *name) atexit(report_at_end);
}

void catena_trace_report(int file) {
    static const char *const kinds[] = {"global", "static", "local", "parameter"};
    dprintf(file, "packets %llu\n", (unsigned long long)packets);
    for (uint32_t i = 0; i < variable_count; ++i) {
        const struct catena_variable *one = &variables[i];
        dprintf(file, "%s\t%u\t%s\t%s\t%s\t%s%s%s\n", kinds[one->kind], one->line, one->file, one->function, one->name,
                certain[i] & READ ? "read " : "", certain[i] & WRITTEN ? "written " : "",
                certain[i] & LEADS ? "leads" : "");
    }
}
