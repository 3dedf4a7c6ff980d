/* State of every shape, for export and import: whatever a datagram changes, all of it is printed after each.
 *
 * Arrays of structs, a tree with parents, a circular list, a table that grows, pointers into the middle of objects and
 * to other pointers, one string shared by two owners, functions, a tagged union, a tagged pointer, an array of any
 * length, a pointer to a local of the packet loop, a static local, unnamed memory, and a file that each instance has of
 * its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct node {
    int key, count;
    struct node *left, *right, *parent;
    char *label;
};

struct ring {
    struct ring *next, *before;
    int value;
};

struct owner {
    char name[8];
    char *shared;
    struct ring links[2];
};

struct packed {
    char tag;
    struct node *node;
} __attribute__((packed));

struct vector {
    unsigned length;
    int values[];
};

struct value {
    enum { NUMBER, TEXT, NODE } kind;
    union {
        unsigned long number;
        char *text;
        struct node *node;
    } as;
};

typedef int operation(int);
static int twice(int n) { return n * 2; }
static int negate(int n) { return -n; }

static struct node *root, *last_node;
static struct ring ring = {&ring, &ring, -1};
static struct owner owners[3];
static struct ring *middle;
static char **strings;
static unsigned string_count, string_room;
static char ***strings_again = &strings;
static operation *current = twice;
static operation *operations[] = {twice, negate};
static struct value values[4];
static uintptr_t tagged;
static struct packed packed;
static struct vector *vector;
static int *cursor, *local_in_global;
static unsigned *unnamed = (unsigned[]){1, 2, 3};
static FILE *out;

static char *copy(const char *text) {
    char *made = strdup(text);
    if (!made) abort();
    return made;
}

static struct node *insert(int key) {
    struct node **at = &root, *parent = NULL;
    while (*at && (*at)->key != key) {
        parent = *at;
        at = key < parent->key ? &parent->left : &parent->right;
    }
    if (!*at) {
        char text[16];
        *at = calloc(1, sizeof **at);
        if (!*at) abort();
        (*at)->key = key;
        (*at)->parent = parent;
        snprintf(text, sizeof text, "node%d", key);
        (*at)->label = copy(text);
    }
    (*at)->count++;
    return *at;
}

static void link_in(int value) {
    struct ring *link = malloc(sizeof *link);
    if (!link) abort();
    *link = (struct ring){&ring, ring.before, value};
    ring.before->next = link;
    ring.before = link;
    /* Not more than five: the first is freed. */
    int count = 0;
    for (struct ring *at = ring.next; at != &ring; at = at->next) count++;
    if (count > 5) {
        struct ring *first = ring.next;
        ring.next = first->next;
        ring.next->before = &ring;
        free(first);
    }
}

static void add_string(const char *text) {
    if (string_count == string_room) {
        string_room = string_room * 2 + 2;
        strings = realloc(strings, string_room * sizeof *strings);
        if (!strings) abort();
    }
    strings[string_count++] = copy(text);
}

static void grow_vector(int value) {
    unsigned length = vector ? vector->length : 0;
    unsigned at = vector && cursor ? (unsigned)(cursor - vector->values) : 0;
    vector = realloc(vector, sizeof *vector + (length + 1) * sizeof vector->values[0]);
    if (!vector) abort();
    vector->values[length] = value;
    vector->length = length + 1;
    cursor = &vector->values[(at + 1) % vector->length];
}

static int calls(void) {
    static int count;
    return ++count;
}

static void update(const unsigned char *packet, int length) {
    int key = packet[0], other = length > 1 ? packet[1] : 0;
    last_node = insert(key);
    link_in(current(key));
    current = operations[other % 2];
    struct owner *owner = &owners[key % 3];
    if (key % 5 == 0) owner->shared = owners[(key + 1) % 3].shared;
    if (key % 5 == 1 || !owner->shared) owner->shared = copy(last_node->label);
    snprintf(owner->name, sizeof owner->name, "o%d", other);
    owner->links[1].next = &owners[other % 3].links[key % 2];
    owner->links[1].value += key;
    middle = &owner->links[1];
    if (key % 4 == 0) add_string(last_node->label);
    grow_vector(key);
    struct value *value = &values[other % 4];
    value->kind = key % 3;
    if (value->kind == NUMBER) value->as.number = 0x100000000UL + key;
    if (value->kind == TEXT) value->as.text = owner->shared;
    if (value->kind == NODE) value->as.node = last_node;
    tagged = (uintptr_t)last_node | (key & 1);
    packed.node = last_node->parent ? last_node->parent : last_node;
    packed.tag = (char)('a' + key % 26);
    unnamed[other % 3] += key;
    *local_in_global += key;
}

static void print_tree(const struct node *node) {
    if (!node) return;
    print_tree(node->left);
    fprintf(out, " %d*%d%s^%d", node->key, node->count, node->label, node->parent ? node->parent->key : -1);
    print_tree(node->right);
}

static void print(int sum) {
    fprintf(out, "%d:", calls());
    print_tree(root);
    fprintf(out, " | ring");
    for (const struct ring *at = ring.next; at != &ring; at = at->next)
        fprintf(out, " %d<%d", at->value, at->before->value);
    fprintf(out, " | owners");
    for (int i = 0; i < 3; i++)
        fprintf(out, " %s,%s,%d,%d", owners[i].name, owners[i].shared ? owners[i].shared : "-",
                owners[i].links[1].value,
                owners[i].links[1].next ? (int)(owners[i].links[1].next - &owners[0].links[0]) : -1);
    fprintf(out, " shares %d%d", owners[0].shared == owners[1].shared, owners[1].shared == owners[2].shared);
    fprintf(out, " | middle %d | strings", middle->value);
    for (unsigned i = 0; i < string_count; i++) fprintf(out, " %s", (*strings_again)[i]);
    fprintf(out, " | values");
    for (int i = 0; i < 4; i++)
        if (values[i].kind == NUMBER)
            fprintf(out, " %lx", values[i].as.number);
        else
            fprintf(out, " %s", values[i].kind == TEXT ? values[i].as.text : values[i].as.node->label);
    fprintf(out, " | tagged %d%s | packed %c%s", (int)(tagged & 1), ((struct node *)(tagged & ~(uintptr_t)1))->label,
            packed.tag, packed.node->label);
    fprintf(out, " | vector %u at %d is %d | unnamed %u %u %u | sum %d\n", vector->length,
            (int)(cursor - vector->values), *cursor, unnamed[0], unnamed[1], unnamed[2], sum);
}

int main(void) {
    unsigned char packet[64];
    int sum = 0;
    struct node *before = NULL;
    out = fdopen(1, "w");
    if (!out) return 1;
    local_in_global = &sum;
    for (int count = 0;; count++) {
        long length = recv(0, packet, sizeof packet, 0);
        if (length <= 0) break;
        update(packet, (int)length);
        print(sum);
        fprintf(out, "%d %s\n", count, before ? before->label : "first");
        before = last_node;
    }
    fclose(out);
    return 0;
}
