/* One object is one record: its reference, its size, its pointers as references, and its bytes with the pointers
 * blanked. Every object is walked to once, so sharing and cycles are kept. */
#include "walk.h"

static uint64_t next_stream_id = 1, rounds;
static uint64_t *released;
static size_t released_count, released_capacity;

void walk_begin(struct walk *walk, bool deep) {
    walk->fresh.length = walk->contents.length = 0;
    walk->fresh.failed = walk->contents.failed = false;
    walk->fresh_count = walk->contents_count = 0;
    walk->deep = deep;
    walk->by_flow = false;
    walk->waiting = 0;
    walk->round = ++rounds;
}

void walk_release(uint64_t stream_id) {
    if (released_count == released_capacity) {
        size_t capacity = released_capacity * 2 + 64;
        uint64_t *more = realloc(released, capacity * sizeof *more);
        /* Without memory the number is not used again, and that is all. */
        if (!more) return;
        released = more;
        released_capacity = capacity;
    }
    released[released_count++] = stream_id;
}

void walk_to(struct walk *walk, struct object *object) {
    if (object->walked == walk->round || object->treatment == CATENA_CONSTANT || !object->base) return;
    object->walked = walk->round;
    if (walk->waiting == walk->capacity) {
        size_t capacity = walk->capacity * 2 + 256;
        struct object **stack = realloc(walk->stack, capacity * sizeof *stack);
        if (!stack) {
            walk->contents.failed = true;
            return;
        }
        walk->stack = stack;
        walk->capacity = capacity;
    }
    walk->stack[walk->waiting++] = object;
}

/* Write which object is meant. */
static void refer(struct walk *walk, struct buffer *to, struct object *object) {
    if (object->kind != OBJECT_HEAP) {
        buffer_number(to, (uint64_t)object->index << 2 | object->kind);
    } else if (walk->by_origin) {
        buffer_number(to, (uint64_t)object->site << 2 | OBJECT_HEAP);
        buffer_number(to, object->ordinal);
    } else {
        if (!object->stream_id) {
            object->stream_id = released_count ? released[--released_count] : next_stream_id++;
            buffer_number(&walk->fresh, object->stream_id);
            buffer_number(&walk->fresh, object->site);
            buffer_number(&walk->fresh, (uint64_t)object->ordinal << 1 | object->early);
            buffer_number(&walk->fresh, object->size);
            walk->fresh_count++;
        }
        buffer_number(to, object->stream_id << 2 | OBJECT_HEAP);
    }
}

/* Write a pointer's place and where it leads; return whether there is one. */
static bool pointer_at(struct walk *walk, struct object *object, uint64_t offset, uint32_t kind, const char *member) {
    const void *value;
    if (offset + sizeof value <= walk->begin || offset >= walk->end) return false;
    memcpy(&value, object->base + offset, sizeof value);
    if (!value) return false;
    struct object *target = object_at(value);
    int64_t function = target ? -1 : function_number(value);
    if (!target && function < 0 && kind == CATENA_UNSURE) return false;
    if (offset < walk->begin || offset + sizeof value > walk->end) {
        walk->cut = true;
        return true;
    }
    buffer_number(&walk->pointers, offset - walk->last_offset);
    walk->last_offset = offset;
    walk->pointer_count++;
    memset(walk->content.bytes + (offset - walk->begin), 0, sizeof value);
    if (target) {
        bool unknown = target->kind == OBJECT_HEAP && !target->stream_id;
        refer(walk, &walk->pointers, target);
        buffer_number(&walk->pointers, (uint64_t)((const char *)value - target->base));
        bool own_entry = target->kind != OBJECT_HEAP && target->is_variable;
        bool deep = walk->deep && !(walk->by_flow && (object->keyed || target->keyed));
        if (!own_entry && (deep || unknown)) walk_to(walk, target);
    } else if (function >= 0) {
        buffer_number(&walk->pointers, (uint64_t)(function + 1) << 2 | OBJECT_FUNCTION);
    } else {
        buffer_number(&walk->pointers, WALK_OWN);
        /* What was made before the first packet the standby has made as well, with its own pointer. */
        if (object->early) return true;
        if (kind == CATENA_LIBRARY) {
            walk->refused_member = member;
            walk->refused_object = object->name;
        } else if (!walk->unknown++) {
            walk->unknown_member = member;
        }
    }
    return true;
}

/* Look for pointers at every `step` bytes; not within one that was found. */
static void words(struct walk *walk, struct object *object, uint64_t begin, uint64_t end, unsigned step) {
    /* From the first place that reaches into the part that is written down. */
    if (walk->begin > 7 && begin < walk->begin - 7) begin += (walk->begin - 7 - begin) / step * step;
    for (uint64_t offset = begin; offset + 8 <= end && offset < walk->end;)
        offset += pointer_at(walk, object, offset, CATENA_UNSURE, "") ? 8 : step;
}

static void typed(struct walk *walk, struct object *object, const struct catena_type *type, uint64_t base) {
    if (base >= walk->end || base + type->size <= walk->begin) return;
    for (uint32_t i = 0; i < type->slot_count; i++) {
        const struct catena_slot *slot = &type->slots[i];
        uint64_t offset = base + slot->offset;
        if (slot->kind == CATENA_UNSURE)
            words(walk, object, offset, offset + slot->count, 8);
        else if (slot->kind == CATENA_STRUCTS)
            for (uint32_t n = 0; n < slot->count; n++)
                typed(walk, object, slot->element, offset + n * slot->element->size);
        else
            for (uint32_t n = 0; n < slot->count; n++)
                pointer_at(walk, object, offset + 8 * n, slot->kind, slot->member);
    }
}

static void pointers_of(struct walk *walk, struct object *object) {
    const struct catena_type *type = object->type;
    if (object->treatment == CATENA_WORDS) {
        /* Allocators with headers of their own may put pointers at odd places. */
        words(walk, object, 0, object->size, 1);
    } else if (object->treatment == CATENA_TYPED) {
        uint64_t count = type->size ? object->size / type->size : 0, rest = count * type->size;
        if (object->kind != OBJECT_HEAP || type->open) count = count > 0, rest = count * type->size;
        /* What does not come out even is something else. */
        if (object->kind == OBJECT_HEAP && !type->open && rest != object->size) count = rest = 0;
        for (uint64_t n = 0; n < count; n++) typed(walk, object, type, n * type->size);
        words(walk, object, rest, object->size, 1);
    }
}

/* Write a part of an object down; return false if it cuts a pointer in two. */
static bool write_down(struct walk *walk, struct object *object, uint64_t begin, uint64_t end) {
    walk->pointers.length = walk->content.length = walk->pointer_count = 0;
    walk->begin = walk->last_offset = begin;
    walk->end = end;
    walk->cut = false;
    buffer_bytes(&walk->content, object->base + begin, end - begin);
    if (walk->content.failed) {
        walk->contents.failed = true;
        return true;
    }
    pointers_of(walk, object);
    if (walk->cut) return false;
    refer(walk, &walk->contents, object);
    buffer_number(&walk->contents, begin);
    buffer_number(&walk->contents, end - begin);
    buffer_number(&walk->contents, walk->pointer_count);
    buffer_append(&walk->contents, &walk->pointers);
    buffer_append(&walk->contents, &walk->content);
    walk->contents_count++;
    if (walk->visited) walk->visited(object);
    return true;
}

void walk_to_part(struct walk *walk, struct object *object, uint64_t begin, uint64_t end) {
    if (object->walked == walk->round || object->treatment == CATENA_CONSTANT || !object->base) return;
    if (!write_down(walk, object, begin, end)) walk_to(walk, object);
}

void walk_on(struct walk *walk) {
    while (walk->waiting) {
        struct object *object = walk->stack[--walk->waiting];
        write_down(walk, object, 0, object->size);
    }
}
