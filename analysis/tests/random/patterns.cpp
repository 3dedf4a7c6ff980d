// What network functions are made of, written out: queues, tables of flows, events, state machines, growing arrays,
// jumps.
#include "patterns.h"

namespace catena::random {

const char *patterns() {
    return R"(
int @device, @number, @compared, @allocated, @parsed, @even, @chosen;
char @text[32] = "a b", *@word;
struct @s0 *@sorted[4];
jmp_buf @give_up;
void *@alloc(unsigned long size) {
    void *block = malloc(size);
    @allocated++;
    return memset(block, 0, size);
}
void *@zalloc(unsigned long size) { return @alloc(size + 8); }
struct @node { struct @node *next; struct @s0 *item; int number; };
struct @node *@first, *@last;
void @push(struct @s0 *item) {
    struct @node *node = malloc(sizeof *node);
    node->next = 0, node->item = item, node->number = 0;
    if (@last) @last->next = node; else @first = node;
    @last = node;
}
void @pop(void) {
    struct @node *node = @first;
    if (!node) return;
    @first = node->next;
    if (!@first) @last = 0;
    if (node->item) node->item->$++;
    free(node);
}
struct @s0 **@vector;
int @size, @room;
void @grow(struct @s0 *item) {
    if (@size == @room) {
        @room = @room ? 2 * @room : 2;
        @vector = realloc(@vector, @room * sizeof *@vector);
    }
    @vector[@size++] = item;
    if (@size > 20) @size = 0;
    if (@vector[0]) @vector[0]->$ += @size;
}
struct @flow { struct @flow *next; int key, seen; };
struct @flow *@flows[4];
struct @flow *@find_flow(int key) {
    for (struct @flow *flow = @flows[key & 3]; flow; flow = flow->next)
        if (flow->key == key) return flow;
    return 0;
}
void @count_flow(const unsigned char *packet) {
    int key = packet[3];
    struct @flow *flow = @find_flow(key);
    if (!flow) {
        flow = @alloc(sizeof *flow);
        flow->key = key, flow->next = @flows[key & 3];
        @flows[key & 3] = flow;
    }
    flow->seen++;
}
void @parse(int number) {
    @parsed++;
    if (number & 1) longjmp(@give_up, 1);
    @even++;
}
void @choose(struct @s0 **where, struct @s0 *what) {
    if (!*where || @chosen++ & 1) *where = what;
}
void @several(int count, ...) {
    va_list list;
    va_start(list, count);
    struct @s0 *one = va_arg(list, struct @s0 *);
    int more = va_arg(list, int);
    if (one) one->$ += more;
    va_end(list);
}
int @compare(const void *a, const void *b) {
    const struct @s0 *one = *(struct @s0 *const *)a, *other = *(struct @s0 *const *)b;
    @compared++;
    return (one ? one->$ : 0) - (other ? other->$ : 0);
}
struct @event { struct @event *next; void (*run)(struct @s0 *, int); struct @s0 *what; };
struct @event *@events;
int @scheduled, @ran;
void @count_item(struct @s0 *item, int value) {
    if (item) item->$ += value;
    @ran++;
}
void @link_item(struct @s0 *item, int value) {
    if (item) @sorted[value & 3] = item;
}
void (*const @table[2])(struct @s0 *, int) = {@count_item, @link_item};
void @schedule(int which, struct @s0 *what) {
    struct @event *event = malloc(sizeof *event);
    event->run = @table[which & 1], event->what = what, event->next = @events;
    @events = event, @scheduled++;
}
void @dispatch(void) {
    while (@events) {
        struct @event *event = @events;
        @events = event->next;
        event->run(event->what, @scheduled);
        free(event);
    }
}
struct @s0 *@collected[2];
void @collect(int count, ...) {
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count && i < 2; i++) @collected[i] = va_arg(list, struct @s0 *);
    va_end(list);
    if (@collected[0]) @collected[0]->$++;
}
int @keys[4] = {10, 90, 160, 230}, @found;
int @compare_keys(const void *a, const void *b) { return *(const int *)a / 40 - *(const int *)b / 40; }
void @search(int key) {
    int *at = bsearch(&key, @keys, 4, sizeof @keys[0], @compare_keys);
    if (at) @found++;
    if (at && key & 1) *at ^= 1;
}
int @state, @entered, @left;
void @advance(int input) {
    switch (@state) {
    case 0:
        if (input & 1) @state = 1, @entered++;
        break;
    case 1:
        @state = input % 3;
        break;
    default:
        @left++;
        @state = 0;
    }
}
int @depth, @visited;
void @descend(struct @s0 *item, int depth) {
    if (!item || depth > 4) return;
    @visited++;
    if (depth > @depth) @depth = depth;
    item->$ ^= depth;
    @descend(item->%, depth + 1);
}
struct @pair { struct @s0 *one, *other; int sum; };
struct @pair @latest;
struct @pair @make_pair(struct @s0 *one, struct @s0 *other) {
    struct @pair pair = {one, other, 1};
    return pair;
}
void @keep_pair(struct @pair pair) {
    if (pair.one) @latest = pair;
    if (@latest.other) @latest.other->$ += pair.sum;
}
_Alignas(16) char @storage[512];
)";
}

} // namespace catena::random
