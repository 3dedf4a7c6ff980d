// Lists, tables of chains, trees and pointers to functions: what has to be followed. Some let packets insert, move and
// free entries beside those that are configured.
#include "parts.h"

namespace catena::random {

std::vector<Part> linkedParts() {
    return {
        // A list of rules, with what they are named and how often they matched.
        {R"(struct @rule {
    (?struct @rule *next; <<number>> key; unsigned hits; char *name;?|<<number>> key; char *name; uint64_t hits; struct @rule *next;?) uint8_t on;
};
static struct @rule *@rules(?, **@tail = &@rules; static void @add(struct @rule *rule) { *@tail = rule; @tail = &rule->next; }?|;
static void @add(struct @rule *rule) { rule->next = @rules; @rules = rule; }?)
static struct @rule *@new(unsigned key, const char *name)
{
    struct @rule *rule = <<take>>(sizeof *rule);
    memset(rule, 0, sizeof *rule);
    rule->key = key, rule->on = 1;
    (?rule->name = strdup(name);?|rule->name = <<take>>(8); snprintf(rule->name, 8, "%s", name);?)
    return rule;
}
static void @begin(void) { (??|@add(@new(<<value>>, "first"));?) }
<<configure>> { @add(@new(number[0], word[1])); }
<<check>>
{
    (?unsigned tries = 0;?|?)
    for (struct @rule *rule = @rules, *before = NULL; rule; before = rule, rule = rule->next) {
        if (!rule->on || <<field>> <<compare>> (unsigned)rule->key) continue;
        (?rule->hits++;?|?)
        (?fprintf(log_file, "%s\n", rule->name);?|?)
        (??|?|?|?|if (rule->hits > 3) rule->on = 0;?|
        if (before && <<cond>>) { before->next = rule->next; rule->next = @rules; @rules = rule; return 1; }?|
        if (before && before != @rules && <<cond>>) { before->next = rule->next; (?free(rule);?|?) return 2; }?)
        <<verdict>>;
        (?break;?|?)
    }
    (??|?|?|?|if (counters.matched < 4 && <<cond>>) { struct @rule *rule = @new(<<field>>, "new"); rule->next = @rules; @rules = rule; }?|
    <<change>> if (@rules) @rules->key = 80;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void)
{
    for (struct @rule *rule = @rules; rule; rule = rule->next) printf("@ %s %lu %d\n", rule->name, (unsigned long)rule->hits, rule->on);
}
)",
         "<<value>> (?web?|dns?|x?)", 5},

        // A table of chains.
        {R"(struct @entry { struct @entry *next; unsigned key; <<number>> kind; unsigned seen; };
static struct @entry *@table[(?16?|64?|256?)];
enum { @SIZE = sizeof @table / sizeof *@table };
static void @begin(void) { }
static struct @entry *@find(unsigned key)
{
    struct @entry *entry = @table[key % @SIZE];
    while (entry && entry->key != key) entry = entry->next;
    return entry;
}
static void @insert(unsigned key, unsigned kind)
{
    struct @entry *entry = <<take>>(sizeof *entry);
    memset(entry, 0, sizeof *entry);
    entry->next = @table[key % @SIZE], entry->key = key, entry->kind = kind;
    @table[key % @SIZE] = entry;
}
<<configure>> { @insert(number[0], number[1]); (void)word; }
<<check>>
{
    struct @entry *entry = @find(<<field>>);
    (??|?|?|if (!entry && counters.matched < 9 && <<cond>>) { @insert(<<field>> , <<value>>); counters.matched++; }?)
    if (!entry) return (?0?|0?|2?);
    (?entry->seen++;?|?|?)
    if (entry->kind > 2) { <<verdict>>; }
    else if (entry->kind == 1) <<action>>;
    (??|?|?|<<change>> entry->kind = 1;?|if (entry->seen == 4) @table[entry->key % @SIZE] = entry->next;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void)
{
    for (unsigned i = 0; i < @SIZE; i++)
        for (struct @entry *entry = @table[i]; entry; entry = entry->next) printf("@ %u %d %u\n", entry->key, (int)entry->kind, entry->seen);
}
)",
         "<<value>> #(0-4)", 5},

        // Functions by their names in the configuration, in a table.
        {R"(typedef int (*@handler)(const u_char *packet, unsigned length);
static unsigned @called;
static int @pass(const u_char *packet, unsigned length) { (void)packet, (void)length; <<verdict>>; return 0; }
static int @count(const u_char *packet, unsigned length) { @called++; (void)packet, (void)length; <<action>>; return 0; }
static int @look(const u_char *packet, unsigned length) { return length > 40 && packet[(?20?|30?|40?)] <<compare>> <<value>> ? (?1?|2?) : 0; }
static const struct { const char *name; @handler call; } @names[] = {{"pass", @pass}, {"count", @count}, {"look", @look}};
static @handler (?@table[4]; static @handler *@at(unsigned i) { return &@table[i & 3]; }
static void @begin(void) { (?@table[0] = @count;?|?) }?|*@table; static @handler *@at(unsigned i) { return @table + i % 4; }
static void @begin(void) { @table = calloc(4, sizeof *@table); }?)
<<configure>>
{
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(word[1], @names[i].name) == 0) *@at(number[0]) = @names[i].call;
}
<<check>>
{
    @handler call = *@at(<<field>>);
    (??|?|?|<<change>> *@at(1) = @pass;?)
    return call ? call(packet, length) : 0;
}
static void @end(void) { printf("@ %u\n", @called); }
)",
         "#(0-3) (?pass?|count?|look?|none?)", 4},

        // Functions that were registered, each with an argument of its own.
        {R"(struct @limit { <<number>> most; unsigned over; };
struct @hook { int (*call)(void *argument, const u_char *packet, unsigned length); void *argument; struct @hook *next; };
static struct @hook *@hooks;
static unsigned @sums[4];
static int @above(void *argument, const u_char *packet, unsigned length)
{
    struct @limit *limit = argument;
    (void)packet;
    if (length <= (unsigned)limit->most) return 0;
    (?limit->over++;?|<<action>>;?)
    <<verdict>>;
    return 0;
}
static int @add(void *argument, const u_char *packet, unsigned length)
{
    unsigned *sum = argument;
    *sum += <<field>>;
    (void)packet, (void)length;
    return *sum % 16 == 0 ? (?0?|1?) : 0;
}
static void @begin(void) { }
<<configure>>
{
    struct @hook *hook = <<take>>(sizeof *hook);
    if (word[0][0] == 'a') {
        struct @limit *limit = <<take>>(sizeof *limit);
        memset(limit, 0, sizeof *limit);
        limit->most = number[1];
        *hook = (struct @hook){@above, limit, @hooks};
    } else {
        *hook = (struct @hook){@add, &@sums[number[1] & 3], @hooks};
    }
    @hooks = hook;
}
<<check>>
{
    for (struct @hook *hook = @hooks; hook; hook = hook->next) {
        int said = hook->call(hook->argument, packet, length);
        if (said) return said;
    }
    (??|?|?|<<change>> if (@hooks) @hooks = @hooks->next;?)
    return 0;
}
static void @end(void) { printf("@ %u %u %u %u\n", @sums[0], @sums[1], @sums[2], @sums[3]); }
)",
         "(?above?|sum?) #(40-90)", 4},

        // Groups, each with an array of members.
        {R"(struct @member { uint32_t net, mask; uint8_t kind; };
struct @group { char name[8]; struct @member *members; unsigned count; (?struct @group *next; } *@groups;
static struct @group *@of(const char *name)
{
    for (struct @group *group = @groups; group; group = group->next) if (!strncmp(group->name, name, 7)) return group;
    struct @group *group = calloc(1, sizeof *group);
    snprintf(group->name, 8, "%s", name);
    group->next = @groups;
    return @groups = group;
}
#define @EACH(group) for (struct @group *group = @groups; group; group = group->next)?|} @groups[3]; static unsigned @used;
static struct @group *@of(const char *name)
{
    for (unsigned i = 0; i < @used; i++) if (!strcmp(@groups[i].name, name)) return &@groups[i];
    if (@used < 3) snprintf(@groups[@used++].name, 8, "%s", name);
    return &@groups[@used - 1];
}
#define @EACH(group) for (struct @group *group = @groups; group < @groups + @used; group++)?)
static struct @group *@last;
static void @begin(void) { }
<<configure>>
{
    struct @group *group = @of(word[0]);
    group->members = realloc(group->members, (group->count + 1) * sizeof *group->members);
    struct @member *member = &group->members[group->count++];
    memset(member, 0, sizeof *member);
    member->net = 10u << 24 | number[1] << 8, member->mask = number[2] ? 0xffffff00u : 0xffff0000u, member->kind = number[3];
    member->net &= member->mask;
}
<<check>>
{
    unsigned found = 0;
    @EACH(group)
        for (unsigned i = 0; i < group->count; i++) {
            const struct @member *member = &group->members[i];
            if ((<<N>>(?source?|destination?) & member->mask) != member->net) continue;
            if (member->kind == 0) <<verdict>>;
            (?@last = group;?|?)
            found += member->kind;
        }
    (??|?|<<change>> if (@last && @last->count) @last->count--;?)
    if (found > (?0?|1?|3?)) <<verdict>>;
    (void)packet, (void)length;
    return 0;
}
static void @end(void) { printf("@ %s\n", @last ? @last->name : "-"); }
)",
         "(?a?|b?|c?) #(0-1) #(0-1) #(0-2)", 5},

        // A tree of prefixes.
        {R"(struct @node { struct @node *child[2]; (?int8_t?|int?|short?) verdict; unsigned hits; };
static struct @node *@root;
static struct @node *@new(void)
{
    struct @node *node = <<take>>(sizeof *node);
    memset(node, 0, sizeof *node);
    node->verdict = -1;
    return node;
}
static void @begin(void) { @root = @new(); }
<<configure>>
{
    struct @node *node = @root;
    uint32_t address = 10u << 24 | number[0] << 8;
    for (unsigned bit = 0; bit < 16 + number[1]; bit++) {
        struct @node **next = &node->child[address >> (31 - bit) & 1];
        if (!*next) *next = @new();
        node = *next;
    }
    node->verdict = number[2];
    (void)word;
}
<<check>>
{
    int verdict = -1;
    struct @node *node = @root;
    for (unsigned bit = 0; node && bit < 32; bit++) {
        if (node->verdict >= 0) verdict = node->verdict;
        (?node->hits++;?|?|?)
        node = node->child[<<N>>destination >> (31 - bit) & 1];
    }
    (??|?|?|<<change>> @root->verdict = 1;?|<<change>> @root->child[1] = NULL;?)
    if (verdict == 1) <<verdict>>;
    if (verdict == 2) <<action>>;
    (void)packet, (void)length;
    return verdict > 2 ? 2 : 0;
}
static void @end(void) { printf("@ %d %u\n", @root->verdict, @root->hits); }
)",
         "#(0-3) #(0-8) #(0-3)", 3},
    };
}

} // namespace catena::random
