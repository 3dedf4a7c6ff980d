/* What happens where a packet ends. The environment says which part the program plays:
 *
 *   CATENA_PRIMARY=file:PATH | tcp:HOST:PORT   ships its state there after every packet
 *   CATENA_STANDBY=file:PATH | tcp:HOST:PORT   before its first packet restores what comes from there, up to its end
 *   CATENA_STATE=persistent | updateable | flow | flow-updated | updated | written
 *                                              what is shipped; `written` if not said
 *   CATENA_PACKETS=N                           ends after N packets, as a primary that fails does
 *   CATENA_STATE_STATISTICS=PATH               writes figures there when it ends, as JSON
 *   CATENA_STATE_CHECK=1                       checks after every packet that what changed was noted */
#include "standby.h"

#include "channel.h"
#include "check.h"
#include "notes.h"
#include "restore.h"
#include "updated.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(void *) == 8, "the tables and the walk are made for pointers of 8 bytes");

/* What is shipped after a packet. Khalid's dissertation, §4.6.2: "(i) the primary instance sends a copy of all the
 * updateable states to the hot standby, (ii) the primary instance only sends the state which applies to the flowspace
 * of the last processed packet, and (iii) in addition to considering the flowspace, we also consider which top level
 * variables are marked as updated for the last processed packet." They are `updateable`, `flow` and `flow-updated`. */
static const struct model {
    const char *name;
    /* Variables that are not updateable too. */
    bool all;
    /* Of keyed variables only the entries that the packet looked up or wrote. */
    bool by_flow;
    /* Only variables whose updated bits are set. */
    bool by_bits;
    /* Only objects that the packet wrote. */
    bool by_object;
} models[] = {
    {.name = "persistent", .all = true},  {.name = "updateable"},
    {.name = "flow", .by_flow = true},    {.name = "flow-updated", .by_flow = true, .by_bits = true},
    {.name = "updated", .by_bits = true}, {.name = "written", .by_object = true},
};
enum { MODELS = sizeof models / sizeof models[0] };

static struct {
    bool begun, check;
    /* A packet may have been received since the last end of one. */
    bool receives;
    const struct model *model;
    int channel;
    uint64_t packets, end_after;
    const char *statistics;
    uint64_t first_bytes, bytes, wrong;
    double seconds;
} state = {.channel = -1, .model = &models[MODELS - 1]};

static struct walk walk;
static struct buffer freed, message;
static uint64_t freed_count;
static int active = -1;

bool standby_active(void) {
    if (active < 0) {
        active = getenv("CATENA_PRIMARY") || getenv("CATENA_STANDBY") || getenv("CATENA_STATE_CHECK") ||
                 getenv("CATENA_PACKETS");
        if (active) objects_begin();
    }
    return active;
}

void standby_forget(const void *memory) {
    uint64_t stream_id = 0;
    if (!heap_remove(memory, &stream_id) || !stream_id || state.channel < 0) return;
    buffer_number(&freed, stream_id);
    freed_count++;
}

static void fail(const char *what) {
    fprintf(stderr, "catena: %s\n", what);
    exit(1);
}

static void stop_shipping(const char *why) {
    fprintf(stderr, "catena: no state is shipped any more: %s\n", why);
    close(state.channel);
    state.channel = -1;
}

static struct object *object_of_variable(const struct catena_variable *variable) {
    bool cell = catena_program.objects[variable->object].is_cell;
    return object_of(cell ? OBJECT_CELL : OBJECT_GLOBAL, variable->object);
}

static void walk_to_variables(bool first, const char *updated) {
    const struct model *model = state.model;
    for (uint32_t i = 0; i < catena_program.variable_count; i++) {
        const struct catena_variable *variable = &catena_program.variables[i];
        bool wanted = variable->bit < 0 ? model->all : !model->by_bits || updated[variable->bit];
        /* At first all: what initialization made once, and maybe by chance (the seed of a hash), never comes again. */
        if (first || (wanted && !(walk.by_flow && variable->keyed))) walk_to(&walk, object_of_variable(variable));
    }
}

/* Of a large object only the parts that were written are shipped: a bucket of a table, not the table. */
enum { LARGE = 512, PART = 64, MOST_PARTS = 256 };

static struct {
    const struct object *object;
    uint64_t begin;
} parts[MOST_PARTS];

/* Ship the parts of an object that a note is of; those that another note has shipped already are not again. */
static void walk_to_note(struct object *object, const struct note *note, unsigned *count) {
    uint64_t offset = (uint64_t)((const char *)note->address - object->base), size = note->size;
    if (object->size < LARGE || !size || offset + size > object->size) return walk_to(&walk, object);
    for (uint64_t begin = offset / PART * PART; begin < offset + size; begin += PART) {
        unsigned i = 0;
        while (i < *count && (parts[i].object != object || parts[i].begin != begin)) i++;
        if (i < *count) continue;
        if (*count == MOST_PARTS) return walk_to(&walk, object);
        parts[*count].object = object;
        parts[(*count)++].begin = begin;
        walk_to_part(&walk, object, begin, begin + PART < object->size ? begin + PART : object->size);
    }
}

/* The standby knows it, or will look for it among its own. */
static bool is_known(const struct object *object) { return object->kind != OBJECT_HEAP || object->stream_id; }

/* Note in the objects that they were written, and ship those that the standby knows. */
static void mark_written(bool ships, unsigned *parts_count) {
    const struct notes *written = notes_written();
    for (uint32_t i = 0; i < written->count; i++) {
        struct object *object = object_at(written->list[i].address);
        if (!object) continue;
        object->written = state.packets;
        if (ships && is_known(object)) walk_to_note(object, &written->list[i], parts_count);
    }
}

/* Return whether an updated bit is set of a variable that an object belongs to, as far as that is known. */
static bool may_be_updated(const struct object *object, const char *updated) {
    if (object->kind != OBJECT_HEAP) {
        for (uint32_t i = 0; i < catena_program.variable_count; i++)
            if (catena_program.variables[i].object == object->index)
                return catena_program.variables[i].bit < 0 || updated[catena_program.variables[i].bit];
        return true;
    }
    const struct catena_site *site = &catena_program.sites[object->site];
    for (uint32_t i = 0; i < site->entry_of_count; i++)
        if (updated[site->entry_of[i]]) return true;
    return !site->entry_of_count;
}

/* Ship the entries that the packet looked up. */
static void walk_to_read(const char *updated, unsigned *parts_count) {
    const struct notes *read = notes_read();
    for (uint32_t i = 0; i < read->count; i++) {
        struct object *object = object_at(read->list[i].address);
        if (object && is_known(object) && (!state.model->by_bits || may_be_updated(object, updated)))
            walk_to_note(object, &read->list[i], parts_count);
    }
}

/* Put together what goes to the standby. */
static void collect(bool first, const char *updated) {
    unsigned parts_count = 0;
    bool exact = !first && !notes_written()->anywhere;
    bool by_object = state.model->by_object && exact;
    walk_begin(&walk, !by_object);
    walk.by_flow = state.model->by_flow && exact && !notes_read()->anywhere;
    if (!by_object) walk_to_variables(first, updated);
    if (walk.by_flow) walk_to_read(updated, &parts_count);
    if (by_object || walk.by_flow) mark_written(true, &parts_count);
    walk_on(&walk);
}

static void refuse(void) {
    char why[512];
    snprintf(why, sizeof why, "%s, in what was allocated at %s, points to something that belongs to a library",
             walk.refused_member, walk.refused_object);
    message.length = 0;
    buffer_number(&message, MESSAGE_REFUSAL);
    buffer_bytes(&message, why, strlen(why));
    uint32_t length = (uint32_t)message.length;
    unsigned char head[4] = {length & 255, length >> 8 & 255, length >> 16 & 255, length >> 24};
    channel_write(state.channel, head, sizeof head);
    channel_write(state.channel, message.bytes, message.length);
    stop_shipping(why);
}

static void ship(uint32_t reception, bool first, const char *updated) {
    collect(first, updated);
    message.length = 0;
    buffer_grow(&message, 4);
    buffer_number(&message, MESSAGE_STATE);
    buffer_number(&message, state.packets);
    buffer_number(&message, reception);
    buffer_number(&message, freed_count);
    size_t before = message.length;
    buffer_append(&message, &freed);
    for (struct reader ids = {freed.bytes, freed.bytes + freed.length, false}; ids.at < ids.end;)
        walk_release(reader_number(&ids));
    freed.length = freed_count = 0;
    buffer_number(&message, walk.fresh_count);
    buffer_append(&message, &walk.fresh);
    buffer_number(&message, walk.contents_count);
    buffer_append(&message, &walk.contents);
    if (walk.unknown_member && walk.unknown == 1)
        fprintf(stderr, "catena: %s points to memory that the program has not allocated: the standby has null there\n",
                walk.unknown_member);
    if (walk.refused_member) return refuse();
    if (message.failed || message.length - 4 > UINT32_MAX) return stop_shipping("out of memory");
    /* What would tell nothing is not told: neither bit nor write, nothing freed. */
    (first ? &state.first_bytes : &state.bytes)[0] += message.length - before;
    uint32_t length = (uint32_t)(message.length - 4);
    message.bytes[0] = length & 255, message.bytes[1] = length >> 8 & 255;
    message.bytes[2] = length >> 16 & 255, message.bytes[3] = length >> 24;
    if (!channel_write(state.channel, message.bytes, message.length)) stop_shipping("the standby is gone");
}

static void write_statistics(void) {
    FILE *file = state.statistics ? fopen(state.statistics, "w") : NULL;
    if (!file) return;
    fprintf(file,
            "{\"model\": \"%s\", \"packets\": %llu, \"first_bytes\": %llu, \"bytes\": %llu, \"seconds\": %.6f, "
            "\"wrong\": %llu}\n",
            state.model->name, (unsigned long long)state.packets, (unsigned long long)state.first_bytes,
            (unsigned long long)state.bytes, state.seconds, (unsigned long long)state.wrong);
    fclose(file);
}

static uint64_t number_in(const char *name) {
    const char *text = getenv(name);
    if (!text || !*text) return 0;
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    if (*end || *text == '-') {
        fprintf(stderr, "catena: %s=%s: expected a number\n", name, text);
        exit(1);
    }
    return number;
}

static void read_model(void) {
    const char *wanted = getenv("CATENA_STATE");
    if (!wanted) return;
    for (unsigned i = 0; i < MODELS; i++)
        if (!strcmp(wanted, models[i].name)) {
            state.model = &models[i];
            return;
        }
    fail("CATENA_STATE: expected persistent, updateable, flow, flow-updated, updated or written");
}

static void take_over(const char *from, uint32_t reception) {
    char error[512], text[640];
    struct restored restored = {0};
    int channel = channel_from(from, error, sizeof error);
    if (channel < 0 || !restore_stream(channel, &restored, error, sizeof error)) {
        snprintf(text, sizeof text, "the state cannot be taken over: %s", error);
        fail(text);
    }
    close(channel);
    if (restored.reception != reception) {
        const struct catena_boundary *places = catena_program.boundaries;
        bool known = restored.reception < catena_program.boundary_count;
        snprintf(text, sizeof text,
                 "the state cannot be taken over: the primary came to the reception at %s, and this is "
                 "that at %s",
                 known ? places[restored.reception].place : "?", places[reception].place);
        fail(text);
    }
    fprintf(stderr, "catena: takes over after %llu packets\n", (unsigned long long)restored.packets);
}

static void begin(uint32_t reception) {
    char error[512];
    state.begun = true;
    state.check = getenv("CATENA_STATE_CHECK") != NULL;
    state.end_after = number_in("CATENA_PACKETS");
    state.statistics = getenv("CATENA_STATE_STATISTICS");
    if (state.statistics) {
        // Before the work, and without memory of the program's.
        int file = open(state.statistics, O_WRONLY | O_CREAT, 0666);
        snprintf(error, sizeof error, "CATENA_STATE_STATISTICS=%s: %s", state.statistics, strerror(errno));
        if (file < 0) fail(error);
        close(file);
    }
    read_model();
    atexit(write_statistics);
    heap_initialized();
    notes_begin(getenv("CATENA_PRIMARY") && state.model->by_flow);
    const char *from = getenv("CATENA_STANDBY"), *to = getenv("CATENA_PRIMARY");
    if (from) take_over(from, reception);
    if (!to) return;
    state.channel = channel_to(to, error, sizeof error);
    if (state.channel < 0) fail(error);
    if (!channel_write(state.channel, STREAM_MAGIC, sizeof STREAM_MAGIC - 1) ||
        !channel_write(state.channel, catena_program.fingerprint, sizeof catena_program.fingerprint))
        stop_shipping("the standby is gone");
}

void catena_packet_end(uint32_t reception, uint32_t receives) {
    if (!standby_active()) return;
    if (state.begun && !state.receives) {
        state.receives = receives;
        return;
    }
    bool first = !state.begun;
    objects_find_cells();
    if (first)
        begin(reception);
    else
        state.packets++;
    state.receives = receives;
    /* Bits are taken back before what they stand for is read: a signal that comes between sets them again. */
    static char *updated;
    if (!updated) updated = malloc(catena_updated_count + 1);
    if (!updated) fail("out of memory");
    memset(updated, 0, catena_updated_count + 1);
    catena_take_updated(updated);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (state.channel >= 0) ship(reception, first, updated);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    state.seconds += (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    if (state.check) {
        mark_written(false, NULL);
        state.wrong += check_packet(state.packets, updated, notes_written()->anywhere);
    }
    notes_clear();
    if (state.end_after && state.packets >= state.end_after) {
        /* What was logged before the end has been logged; nothing else is done. */
        fflush(NULL);
        write_statistics();
        _exit(0);
    }
}
