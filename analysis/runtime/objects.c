/* Finding objects by address: globals in a sorted list, the heap in a treap (Aragon and Seidel, Randomized Search
 * Trees), because programs point into the middle of what they allocate. */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

static struct object *fixed;   /* globals and cells, in the order of the tables */
static struct object **sorted; /* the globals, by address */
static uint32_t sorted_count;
static uint32_t *by_address; /* the functions, by address */
static uint32_t *ordinals;   /* how often each site has allocated */
static struct object *heap;
static bool initialized;

/* Addresses between which all of a kind are: most values are in none, and are not looked up. */
struct span {
    uintptr_t begin, end;
};
static struct span fixed_span = {UINTPTR_MAX, 0}, heap_span = {UINTPTR_MAX, 0}, function_span = {UINTPTR_MAX, 0},
                   cell_span;

static void widen(struct span *span, const void *begin, uint64_t size) {
    if ((uintptr_t)begin < span->begin) span->begin = (uintptr_t)begin;
    if ((uintptr_t)begin + size > span->end) span->end = (uintptr_t)begin + size;
}

static bool within(const struct span *span, const void *address) {
    return (uintptr_t)address >= span->begin && (uintptr_t)address <= span->end;
}

static int compare_objects(const void *a, const void *b) {
    const struct object *left = *(struct object *const *)a, *right = *(struct object *const *)b;
    return (left->base > right->base) - (left->base < right->base);
}

static int compare_functions(const void *a, const void *b) {
    uintptr_t left = (uintptr_t)catena_program.functions[*(const uint32_t *)a];
    uintptr_t right = (uintptr_t)catena_program.functions[*(const uint32_t *)b];
    return (left > right) - (left < right);
}

void objects_begin(void) {
    uint32_t count = catena_program.object_count, functions = catena_program.function_count;
    fixed = calloc(count + 1, sizeof *fixed);
    sorted = calloc(count + 1, sizeof *sorted);
    by_address = calloc(functions + 1, sizeof *by_address);
    ordinals = calloc(catena_program.site_count + 1, sizeof *ordinals);
    if (!fixed || !sorted || !by_address || !ordinals) abort();
    for (uint32_t i = 0; i < count; i++) {
        const struct catena_object *from = &catena_program.objects[i];
        struct object *object = &fixed[i];
        object->name = from->name;
        object->size = from->size;
        object->type = from->type;
        object->treatment = from->treatment;
        object->index = i;
        object->kind = from->is_cell ? OBJECT_CELL : OBJECT_GLOBAL;
        object->early = true;
        if (from->is_cell) continue;
        object->base = from->address;
        widen(&fixed_span, object->base, object->size);
        sorted[sorted_count++] = object;
    }
    for (uint32_t i = 0; i < catena_program.variable_count; i++) {
        struct object *object = &fixed[catena_program.variables[i].object];
        object->is_variable = true;
        object->keyed = catena_program.variables[i].keyed;
    }
    qsort(sorted, sorted_count, sizeof *sorted, compare_objects);
    for (uint32_t i = 0; i < functions; i++) {
        by_address[i] = i;
        widen(&function_span, catena_program.functions[i], 0);
    }
    qsort(by_address, functions, sizeof *by_address, compare_functions);
}

void objects_find_cells(void) {
    cell_span.begin = UINTPTR_MAX;
    cell_span.end = 0;
    /* They stand behind the globals. */
    for (uint32_t i = catena_program.object_count; i > 0 && fixed[i - 1].kind == OBJECT_CELL; i--) {
        fixed[i - 1].base = *(char **)catena_program.objects[i - 1].address;
        if (fixed[i - 1].base) widen(&cell_span, fixed[i - 1].base, fixed[i - 1].size);
    }
}

static struct object *last_global_up_to(const char *address) {
    uint32_t low = 0, high = sorted_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (sorted[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? sorted[low - 1] : NULL;
}

static struct object *last_of_heap_up_to(const char *address) {
    struct object *found = NULL;
    for (struct object *at = heap; at;) {
        if (at->base <= address) {
            found = at;
            at = at->right;
        } else {
            at = at->left;
        }
    }
    return found;
}

static struct object *cell_at(const char *address) {
    if (!within(&cell_span, address)) return NULL;
    for (uint32_t i = catena_program.object_count; i > 0 && fixed[i - 1].kind == OBJECT_CELL; i--) {
        struct object *cell = &fixed[i - 1];
        if (cell->base && address >= cell->base && address < cell->base + cell->size) return cell;
    }
    return NULL;
}

struct object *object_at(const void *pointer) {
    const char *address = pointer;
    struct object *global = within(&fixed_span, address) ? last_global_up_to(address) : NULL;
    struct object *block = within(&heap_span, address) ? last_of_heap_up_to(address) : NULL;
    if (global && address < global->base + global->size) return global;
    if (block && address < block->base + block->size) return block;
    struct object *cell = cell_at(address);
    if (cell) return cell;
    /* The end of an array is a pointer that programs keep; nothing else begins there, or it was found. */
    if (global && global->size && address == global->base + global->size) return global;
    if (block && address == block->base + block->size) return block;
    return NULL;
}

struct object *object_of(enum object_kind kind, uint64_t index) {
    if (index >= catena_program.object_count || fixed[index].kind != kind) return NULL;
    return &fixed[index];
}

int64_t function_number(const void *address) {
    uint32_t low = 0, high = within(&function_span, address) ? catena_program.function_count : 0;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        uintptr_t here = (uintptr_t)catena_program.functions[by_address[middle]];
        if (here == (uintptr_t)address) return by_address[middle];
        if (here < (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* Part the tree into what lies before an address, and the rest. */
static void part(struct object *tree, const char *address, struct object **before, struct object **rest) {
    if (!tree) {
        *before = *rest = NULL;
    } else if (tree->base < address) {
        part(tree->right, address, &tree->right, rest);
        *before = tree;
    } else {
        part(tree->left, address, before, &tree->left);
        *rest = tree;
    }
}

static struct object *join(struct object *before, struct object *rest) {
    if (!before) return rest;
    if (!rest) return before;
    if (before->priority > rest->priority) {
        before->right = join(before->right, rest);
        return before;
    }
    rest->left = join(before, rest->left);
    return rest;
}

bool heap_remove(const void *base, uint64_t *stream_id) {
    struct object *before, *rest, *found;
    const char *address = base;
    part(heap, address, &before, &rest);
    part(rest, address + 1, &found, &rest);
    heap = join(before, rest);
    if (!found) return false;
    *stream_id = found->stream_id;
    free(found);
    return true;
}

struct object *heap_add(void *base, uint64_t size, uint32_t site) {
    static uint32_t random = 2463534242;
    struct object *object = calloc(1, sizeof *object);
    if (!object) return NULL;
    if (site >= catena_program.site_count) site = 0;
    /* xorshift (Marsaglia): depth by chance, the same in every run. */
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    object->priority = random;
    object->base = base;
    object->size = size;
    widen(&heap_span, base, size);
    object->kind = OBJECT_HEAP;
    object->name = catena_program.sites[site].place;
    object->type = catena_program.sites[site].type;
    object->treatment = catena_program.sites[site].treatment;
    object->site = site;
    object->ordinal = ordinals[site]++;
    object->early = !initialized;
    object->keyed = catena_program.sites[site].entry_of_count > 0;
    struct object *before, *rest;
    part(heap, object->base, &before, &rest);
    heap = join(join(before, object), rest);
    return object;
}

static void each(struct object *tree, void (*visit)(struct object *, void *), void *context) {
    if (!tree) return;
    each(tree->left, visit, context);
    visit(tree, context);
    each(tree->right, visit, context);
}

void heap_each(void (*visit)(struct object *, void *), void *context) { each(heap, visit, context); }

void heap_initialized(void) { initialized = true; }
