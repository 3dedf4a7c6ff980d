/* Lists of fixed length. Loops come to the same places again and again: a small table by address leaves out what has
 * just been noted. */
#include "notes.h"

#include <string.h>

enum { MOST_NOTES = 1 << 14, LATELY = 256 };

struct list {
    struct notes notes;
    struct note room[MOST_NOTES], lately[LATELY];
    bool wanted;
};

static struct list writes, reads;

void notes_begin(bool of_reads) {
    writes.notes.list = writes.room;
    reads.notes.list = reads.room;
    writes.wanted = true;
    reads.wanted = of_reads;
}

struct notes *notes_written(void) { return &writes.notes; }

struct notes *notes_read(void) { return &reads.notes; }

static void clear(struct list *list) {
    if (list->notes.count) memset(list->lately, 0, sizeof list->lately);
    list->notes.count = 0;
    list->notes.anywhere = false;
}

void notes_clear(void) {
    clear(&writes);
    clear(&reads);
}

static void note(struct list *list, const void *address, uint32_t size) {
    struct note *late = &list->lately[((uintptr_t)address >> 2) % LATELY];
    if (late->address == address && late->size == size) return;
    late->address = address;
    late->size = size;
    if (list->notes.count == MOST_NOTES)
        list->notes.anywhere = true;
    else
        list->notes.list[list->notes.count++] = *late;
}

void catena_wrote(const void *address, uint32_t size) {
    if (writes.wanted) note(&writes, address, size);
}

void catena_wrote_deep(void) { writes.notes.anywhere = true; }

void catena_read(const void *address, uint32_t size) {
    if (reads.wanted) note(&reads, address, size);
}
