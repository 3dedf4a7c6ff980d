/* Takes the state of a copy over that was reduced from the same program for another configuration.
 *
 * State is what packets may write: parts of globals, parts of what initialization allocated, and all that was allocated
 * since. Both copies are in one process, so the last stays where it is and only belongs to the new copy from now on; what it
 * and the rest point to in the old copy is looked up in the new one: globals and functions by name, blocks of the
 * initialization by the call that allocated them and by what no packet writes in them, as an entry of the configuration is
 * the same if it says the same. First everything is planned, then it is done. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two blocks that are the same entry in both copies. */
struct pair {
    struct object *from, *to;
};

/* A place in the blocks of a call that leads to others of the same: what follows in a list, or a tree's branches. Which one it
 * leads to says nothing of the entry itself. */
struct link {
    uint64_t site, offset;
};

/* Something to be written: `size` bytes of the old copy's, or a word. */
struct edit {
    char *to;
    const char *from;
    uint64_t size, word;
};

struct list {
    void *items;
    size_t count, capacity;
};

/* Where the linker has put the library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

struct moving moving;

static const struct moving *old;
static struct list pairs, edits, waiting, late, links;
static char problem[200];

static void *more(struct list *list, size_t size)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 64;
        void *items = realloc(list->items, capacity * size);
        if (!items) return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    return (char *)list->items + size * list->count++;
}

static bool fail(const char *what, const char *where)
{
    if (!problem[0]) snprintf(problem, sizeof problem, "%s (%s)", what, where);
    return false;
}

static bool no_memory(void) { return fail("there is no memory for it", "plan"); }

static const struct written *written_in(const struct moving *side, const struct object *object)
{
    return object->kind == OBJECT_HEAP ? &side->sites[object->site] : &side->objects[object->index];
}

/* ---- Entries of the configuration */

static bool is_written(const struct written *written, uint64_t begin, uint64_t end)
{
    for (uint64_t i = 0; i < written->count; i++) {
        const struct range *range = &written->ranges[i];
        if (end <= range->begin) continue;
        /* Of all that begin before `end`, the last one ends last. */
        uint64_t behind = range->period ? (end - 1 - range->begin) / range->period * range->period : 0;
        if (begin <= behind || begin - behind < range->end) return true;
    }
    return false;
}

static uint64_t mix(uint64_t digest, uint64_t value) { return (digest ^ value) * UINT64_C(0x100000001b3); }

static uint64_t text_digest(const char *text)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    while (*text) digest = mix(digest, (unsigned char)*text++);
    return digest;
}

static bool is_link(const struct object *object, uint64_t offset)
{
    const struct link *all = links.items;
    for (size_t i = 0; i < links.count; i++)
        if (all[i].site == object->site && all[i].offset == offset) return true;
    return false;
}

/* Note the links of an entry. */
static bool find_links(const struct moving *side, const struct object *object)
{
    for (uint64_t at = 0; at + 8 <= object->size; at += 8) {
        void *word;
        memcpy(&word, object->base + at, 8);
        const struct object *target = word ? side->object_at(word) : NULL;
        if (!target || target->kind != OBJECT_HEAP || target->site != object->site || is_link(object, at)) continue;
        struct link *link = more(&links, sizeof *link);
        if (!link) return no_memory();
        *link = (struct link){object->site, at};
    }
    return true;
}

/* Return a digest of what packets never write in an object: of its numbers, and of the texts and numbers that it points to. */
static uint64_t digest(const struct moving *side, const struct object *object, unsigned depth)
{
    const struct written *written = written_in(side, object);
    uint64_t sum = UINT64_C(0xcbf29ce484222325), at = 0;
    while (at < object->size) {
        uint64_t size = object->size - at < 8 ? object->size - at : 8, word = 0;
        if (object->kind == OBJECT_HEAP && is_link(object, at)) {
            sum = mix(sum, 1);
        } else if (!is_written(written, at, at + size)) {
            memcpy(&word, object->base + at, size);
            struct object *target = size == 8 && word ? side->object_at((void *)word) : NULL;
            int64_t function = target || size < 8 ? -1 : side->function_number((void *)word);
            if (function >= 0)
                sum = mix(sum, text_digest(side->function_names[function]));
            else if (target && depth)
                sum = mix(sum, 1);
            else if (target)
                sum = mix(sum, digest(side, target, depth + 1));
            else
                sum = mix(sum, word);
        } else {
            for (uint64_t byte = at; byte < at + size; byte++)
                if (!is_written(written, byte, byte + 1)) sum = mix(sum, (unsigned char)object->base[byte]);
        }
        at += size;
    }
    return sum;
}

struct listing {
    const struct moving *side;
    struct list *to;
    bool failed;
};

static void list_early(struct object *object, void *context)
{
    struct listing *listing = context;
    if (!object->early) return;
    struct object **place = more(listing->to, sizeof *place);
    if (!place) {
        listing->failed = true;
        return;
    }
    *place = object;
}

static int order(const struct object *left, const struct object *right)
{
    if (left->site != right->site) return left->site < right->site ? -1 : 1;
    if (left->size != right->size) return left->size < right->size ? -1 : 1;
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct object *left = *(struct object *const *)a, *right = *(struct object *const *)b;
    int by_kind = order(left, right);
    if (by_kind) return by_kind;
    if (left->digest != right->digest) return left->digest < right->digest ? -1 : 1;
    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct object *left = ((const struct pair *)a)->from, *right = ((const struct pair *)b)->from;
    return (left > right) - (left < right);
}

/* Return how many objects from one on were allocated by the same call in the same size. */
static size_t alike(struct object **objects, size_t count)
{
    size_t same = 0;
    while (same < count && order(objects[0], objects[same]) == 0) same++;
    return same;
}

/* Whether nothing of an object is configuration. */
static bool is_all_state(const struct moving *side, const struct object *object)
{
    const struct written *written = &side->sites[object->site];
    uint64_t at = 0;
    for (uint64_t before = 1; before != at && at < object->size;) {
        before = at;
        for (uint64_t i = 0; i < written->count; i++) {
            const struct range *range = &written->ranges[i];
            if (at < range->begin) continue;
            uint64_t within = range->period ? (at - range->begin) % range->period : at - range->begin;
            uint64_t length = range->end - range->begin;
            if (within < length) at = length - within < object->size - at ? at + length - within : object->size;
        }
    }
    return at >= object->size;
}

static bool add_pair(struct object *from, struct object *to)
{
    struct pair *pair = more(&pairs, sizeof *pair);
    if (!pair) return no_memory();
    *pair = (struct pair){from, to};
    return true;
}

/* Find which blocks of both initializations are the same. */
static bool pair_entries(uint64_t *left)
{
    struct list ours = {0}, theirs = {0};
    struct listing here = {&moving, &ours, false}, there = {old, &theirs, false};
    moving.heap_each(list_early, &here);
    old->heap_each(list_early, &there);
    bool good = (!here.failed && !there.failed) || no_memory();
    struct object **mine = ours.items, **other = theirs.items;
    for (size_t i = 0; good && i < ours.count; i++) good = find_links(&moving, mine[i]);
    for (size_t i = 0; good && i < theirs.count; i++) good = find_links(old, other[i]);
    for (size_t i = 0; good && i < ours.count; i++) mine[i]->digest = digest(&moving, mine[i], 0);
    for (size_t i = 0; good && i < theirs.count; i++) other[i]->digest = digest(old, other[i], 0);
    if (ours.count) qsort(mine, ours.count, sizeof *mine, compare_entries);
    if (theirs.count) qsort(other, theirs.count, sizeof *other, compare_entries);
    for (size_t m = 0, o = 0; good && o < theirs.count;) {
        while (m < ours.count && order(mine[m], other[o]) < 0) m++;
        size_t some = m < ours.count ? alike(mine + m, ours.count - m) : 0, others = alike(other + o, theirs.count - o);
        if (some && order(mine[m], other[o]) != 0) some = 0;
        bool only = some == 1 && others == 1;
        for (size_t i = 0, k = 0; good && k < others; k++) {
            while (i < some && !only && mine[m + i]->digest < other[o + k]->digest) i++;
            if (i < some && (only || mine[m + i]->digest == other[o + k]->digest))
                good = add_pair(other[o + k], mine[m + i++]);
            else if (is_all_state(old, other[o + k]))
                good = fail("a table has another size in this configuration", other[o + k]->name);
            else if (old->sites[other[o + k]->site].count)
                ++*left;
        }
        m += some, o += others;
    }
    free(ours.items);
    free(theirs.items);
    if (pairs.count) qsort(pairs.items, pairs.count, sizeof(struct pair), compare_pairs);
    return good;
}

static struct object *counterpart(struct object *object)
{
    struct pair key = {object, NULL};
    struct pair *found = pairs.count ? bsearch(&key, pairs.items, pairs.count, sizeof key, compare_pairs) : NULL;
    return found ? found->to : NULL;
}

/* ---- Names */

static struct object *global_of(const char *name)
{
    for (uint32_t i = 0; i < moving.program->object_count; i++)
        if (strcmp(moving.program->objects[i].name, name) == 0) return object_of(OBJECT_GLOBAL, i);
    return NULL;
}

static void *function_of(const char *name)
{
    for (uint32_t i = 0; i < moving.program->function_count; i++)
        if (strcmp(moving.function_names[i], name) == 0) return moving.program->functions[i];
    return NULL;
}

/* ---- The plan */

/* Find what a word of the old copy is in the new one. */
static bool translate(uint64_t *word, const char *where)
{
    const char *address = (const char *)*word;
    if (!address) return true;
    if (address >= old->packet && address < old->packet + old->packet_size) {
        *word = (uint64_t)(moving.packet + (address - old->packet));
        return true;
    }
    if (address >= old->header && address < old->header + old->header_size) {
        *word = (uint64_t)(moving.header + (address - old->header));
        return true;
    }
    struct object *object = old->object_at(address), *other = NULL;
    if (object && object->kind == OBJECT_HEAP && !object->early) {
        if (object->walked) return true;
        struct object **place = more(&waiting, sizeof *place);
        if (!place) return no_memory();
        object->walked = 1;
        *place = object;
        return true;
    }
    if (object) {
        other = object->kind == OBJECT_HEAP ? counterpart(object) : global_of(object->name);
        uint64_t offset = (uint64_t)(address - object->base);
        if (!other || offset > other->size)
            return fail("state refers to an entry of the configuration that is gone", where);
        *word = (uint64_t)(other->base + offset);
        return true;
    }
    int64_t function = old->function_number(address);
    if (function >= 0) {
        *word = (uint64_t)function_of(old->function_names[function]);
        return *word != 0 || fail("state refers to a function that is gone", old->function_names[function]);
    }
    if (old->on_stack(address)) return fail("state refers to a local variable of a procedure that still runs", where);
    if (address >= old->begin && address < old->end) return fail("state refers to something without a name", where);
    return true;
}

static bool plan_words(char *to, const struct object *from, uint64_t begin, uint64_t end)
{
    for (uint64_t at = (begin + 7) / 8 * 8; at + 8 <= end; at += 8) {
        uint64_t word, other;
        memcpy(&word, from->base + at, 8);
        other = word;
        if (!translate(&other, from->name)) return false;
        if (other == word) continue;
        struct edit *edit = more(&edits, sizeof *edit);
        if (!edit) return no_memory();
        *edit = (struct edit){to + at, NULL, 0, other};
    }
    return true;
}

static bool plan_bytes(const struct object *from, const struct object *to, uint64_t begin, uint64_t end)
{
    struct edit *edit = more(&edits, sizeof *edit);
    if (!edit) return no_memory();
    *edit = (struct edit){to->base + begin, from->base + begin, end - begin, 0};
    return plan_words(to->base, from, begin, end);
}

static bool plan_object(const struct object *from, const struct object *to, const struct written *written)
{
    if (from->size != to->size) return fail("it has another size", from->name);
    for (uint64_t i = 0; i < written->count; i++) {
        struct range range = written->ranges[i];
        uint64_t length = range.end - range.begin;
        for (uint64_t begin = range.begin; begin < from->size; begin += range.period) {
            uint64_t end = length < from->size - begin ? begin + length : from->size;
            if (!plan_bytes(from, to, begin, end)) return false;
            if (!range.period || end == from->size) break;
        }
    }
    return true;
}

static bool plan(uint64_t *left)
{
    if (!pair_entries(left)) return false;
    for (uint32_t i = 0; i < old->program->object_count; i++) {
        if (!old->objects[i].count) continue;
        const struct catena_object *from = &old->program->objects[i];
        struct object *to = global_of(from->name), is = {.name = from->name, .base = from->address, .size = from->size};
        /* What no packet of the new configuration uses is gone from its program. */
        if (to && !plan_object(&is, to, &old->objects[i])) return false;
    }
    for (size_t i = 0; i < pairs.count; i++) {
        const struct pair *pair = (struct pair *)pairs.items + i;
        if (!plan_object(pair->from, pair->to, &old->sites[pair->from->site])) return false;
    }
    while (waiting.count) {
        struct object *object = ((struct object **)waiting.items)[--waiting.count];
        struct object **place = more(&late, sizeof *place);
        if (!place) return no_memory();
        *place = object;
        if (!plan_words(object->base, object, 0, object->size)) return false;
    }
    return true;
}

/* ---- The deed */

static void carry_out(void)
{
    for (unsigned i = 0; i < 2; i++) packets_beside[i] += old->beside[i];
    const struct edit *all = edits.items;
    /* Bytes first: words lie among them. */
    for (size_t i = 0; i < edits.count; i++)
        if (all[i].from) memcpy(all[i].to, all[i].from, all[i].size);
    for (size_t i = 0; i < edits.count; i++)
        if (!all[i].from) memcpy(all[i].to, &all[i].word, 8);
    for (size_t i = 0; i < late.count; i++) {
        struct object *object = ((struct object **)late.items)[i];
        char *base = object->base;
        uint64_t size = object->size, unused;
        uint32_t site = object->site;
        old->heap_remove(base, &unused);
        /* Without memory for the note it stays where it is, and only a later copy does not find it. */
        heap_add(base, size, site);
    }
}

static void unwalk(struct object *object, void *unused)
{
    (void)unused;
    object->walked = 0;
}

static void forget(struct list *list)
{
    free(list->items);
    *list = (struct list){0};
}

void state_begin(void)
{
    moving = (struct moving){&catena_program,
                             catena_written_objects,
                             catena_written_sites,
                             catena_function_names,
                             catena_immovable,
                             object_at,
                             function_number,
                             heap_each,
                             program_has_on_stack,
                             heap_remove,
                             __ehdr_start,
                             _end,
                             (const char *)packet_bytes,
                             (const char *)&packet_header,
                             packet_bytes_size,
                             packet_header_size,
                             packets_beside};
}

const char *state_take(const struct moving *from, uint64_t *left)
{
    old = from;
    *left = 0;
    problem[0] = 0;
    if (memcmp(old->program->fingerprint, moving.program->fingerprint, sizeof moving.program->fingerprint) != 0)
        fail("it was reduced from another program", "bitcode");
    else if (old->immovable[0])
        fail(old->immovable, "state");
    else if (plan(left))
        carry_out();
    else
        old->heap_each(unwalk, NULL);
    forget(&pairs);
    forget(&edits);
    forget(&waiting);
    forget(&late);
    forget(&links);
    return problem[0] ? problem : NULL;
}
