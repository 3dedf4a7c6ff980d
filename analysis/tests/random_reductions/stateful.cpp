// Flows, buckets, rewriting: state beside configuration, with pointers from one to the other.
#include "parts.h"

namespace catena::random {

std::vector<Part> statefulParts() {
    return {
        // Flows that remember which class they fell into.
        {R"(struct @class { <<number>> port; uint8_t kind; unsigned flows; };
static struct @class @classes[4], *@other = &@classes[(?0?|3?)];
static unsigned @count;
struct @flow { uint32_t source, destination; struct @class *class; unsigned packets; };
static struct @flow (?@flows[32]; static void @begin(void) { (??|@classes[3].kind = 2;?) }?|*@flows;
static void @begin(void) { @flows = calloc(32, sizeof *@flows); (??|@classes[3].kind = 2;?) }?)
<<configure>>
{
    if (@count == 4) return;
    @classes[@count].port = number[0], @classes[@count].kind = number[1];
    (?@other = &@classes[@count];?|?)
    @count++;
    (void)word;
}
<<check>>
{
    struct @flow *flow = &@flows[(<<N>>source * 7 + <<N>>destination) % 32];
    (?if (flow->source != <<N>>source) { memset(flow, 0, sizeof *flow); flow->source = <<N>>source; }?|flow->destination = <<N>>destination;?)
    if (!flow->class) {
        flow->class = @other;
        for (unsigned i = 0; i < @count; i++)
            if ((unsigned)@classes[i].port == <<field>>) { flow->class = &@classes[i]; (?break;?|?) }
        (?flow->class->flows++;?|?)
    }
    (?flow->packets++;?|?)
    (??|?|<<change>> @other = &@classes[1];?|<<change>> flow->class->kind ^= 1;?)
    switch (flow->class->kind) {
    case 0: <<verdict>>; break;
    case 1: if (flow->packets > <<value>>) <<verdict>>; break;
    default: <<action>>;
    }
    (void)packet, (void)length;
    return 0;
}
static void @end(void)
{
    for (unsigned i = 0; i < 4; i++) printf("@ %u %d\n", @classes[i].flows, @classes[i].kind);
    for (unsigned i = 0; i < 32; i++) printf("%d %u\n", (int)(@flows[i].class ? @flows[i].class - @classes : -1), @flows[i].packets);
}
)",
         "<<value>> #(0-2)", 4},

        // A bucket that is filled by the clock of the capture.
        {R"(struct @bucket { unsigned rate, burst, level; long last; };
static struct @bucket (?@space, *@bucket = &@space; static void @begin(void) { @bucket->burst = <<value>>; }?|*@bucket;
static void @begin(void) { @bucket = <<take>>(sizeof *@bucket); memset(@bucket, 0, sizeof *@bucket); }?)
<<configure>> { @bucket->rate = number[0], @bucket->burst = number[1]; (?@bucket->level = number[1];?|?) (void)word; }
<<check>>
{
    if (!@bucket->rate) return 0;
    if (now != @bucket->last) {
        unsigned filled = @bucket->level + @bucket->rate * (unsigned)(now - @bucket->last);
        @bucket->level = filled > @bucket->burst ? @bucket->burst : filled;
        @bucket->last = now;
    }
    unsigned cost = (?1?|<<field>> & 7?|length / 32?);
    if (@bucket->level < cost) { <<verdict>>; }
    else @bucket->level -= cost;
    (??|?|?|<<change>> @bucket->rate = 1;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void) { printf("@ %u %u\n", @bucket->level, @bucket->rate); }
)",
         "#(0-4) #(1-200)", 1},

        // Addresses and ports that are written anew.
        {R"(struct @map { uint32_t from, to; <<number>> used; (?uint16_t port; struct @map *next;?|struct @map *next; uint16_t port;?) };
static struct @map *@maps;
static uint16_t @next = (?1000?|60000?);
static void @begin(void) { }
<<configure>>
{
    struct @map *map = <<take>>(sizeof *map);
    memset(map, 0, sizeof *map);
    map->from = 10u << 24 | number[0] << 8 | number[1], map->to = 192u << 24 | number[2], map->next = @maps;
    @maps = map;
    (void)word;
}
<<check>>
{
    for (struct @map *map = @maps; map; map = map->next)
        if (<<N>>(?source?|destination?) == map->from && length >= 38) {
            for (unsigned i = 0; i < 4; i++) sent[26 + i] = (u_char)(map->to >> (24 - 8 * i));
            (?map->used++;?|?)
            (?if (!map->port) map->port = @next++;
            sent[34] = (u_char)(map->port >> 8), sent[35] = (u_char)map->port;?|<<action>>;?)
            <<verdict>>;
            (?break;?|?)
        }
    (void)packet;
    return 0;
}
static void @end(void)
{
    for (struct @map *map = @maps; map; map = map->next) printf("@ %lu %u\n", (unsigned long)map->used, map->port);
}
)",
         "#(0-1) #(0-3) #(0-255)", 4},

        // Ports that packets teach, beside those that are configured, in one array.
        {R"(static (?uint16_t?|unsigned?) @ports[12];
static unsigned @known(?, @configured;
static void @more(void) { @configured++; }?|; static void @more(void) { }?)
static void @begin(void) { }
static int @has(unsigned port)
{
    for (unsigned i = 0; i < @known; i++) if (@ports[i] == port) return 1;
    return 0;
}
<<configure>> { if (@known < 12) @ports[@known++] = number[0]; @more(); (void)word; }
<<check>>
{
    if (@has(<<field>>)) { <<verdict>>; }
    (?else if (@known < 12 && <<cond>>) @ports[@known++] = <<field>>;?|else <<action>>;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void) { printf("@ %u %u\n", @known, (unsigned)@ports[@known ? @known - 1 : 0]); }
)",
         "<<value>>", 4},
    };
}

} // namespace catena::random
