// Scalars, structs, arrays, strings, flags: what lies in variables. Some let packets change it, in ways that look like
// reading.
#include "parts.h"

namespace catena::random {

std::vector<Part> flatParts() {
    return {
        // A scalar.
        {R"(static <<number>> @value = <<value>>;
(?static <<number>> @other = <<value>>; static void @begin(void) { }?|
static <<number>> @other; static void @begin(void) { @other = <<value>>; }?)
<<configure>> { @value = number[0]; (?@other = number[1];?|?) (void)word; }
<<check>>
{
    (?<<action>>;?|if (<<cond>>) <<action>>;?|?)
    (?if (<<field>> <<compare>> @value) <<verdict>>;?|
    for (unsigned i = 0; i < (unsigned)@value && i < 40 && i < length; i++) if (packet[i] == @other) <<action>>;?|
    if (<<field>> <<compare>> (unsigned)@value || (unsigned)@other == <<field>>) <<verdict>>;?)
    (??|?|?|?|<<change>> @value = (?0?|<<field>>?);?|<<change>> memset(&@value, 0, 1);?|
    <<change>> { unsigned char *at = (unsigned char *)&@other; at[0] ^= 1; }?)
    return 0;
}
static void @end(void) { printf("@ %lu %lu\n", (unsigned long)@value, (unsigned long)@other); }
)",
         "<<value>> <<value>>", 2},

        // A struct with arrays and how many of their entries are in use.
        {R"(static struct @limits {
    uint16_t low[6], high[6];
    (?unsigned count; struct { int kind; char name[7]; unsigned more; } how[6];?|
    struct { unsigned more; char name[8]; uint8_t kind; } how[6]; uint8_t count;?)
} (?@space, *@limits = &@space; static void @begin(void) { }?|*@limits;
static void @begin(void) { @limits = calloc(1, sizeof *@limits); }?)
<<configure>>
{
    unsigned i = @limits->count;
    if (i == 6) return;
    @limits->low[i] = number[0], @limits->high[i] = number[1], @limits->how[i].kind = number[2];
    snprintf(@limits->how[i].name, 6, "%s", word[3]);
    @limits->count++;
}
<<check>>
{
    unsigned key = <<field>>;
    for (unsigned i = 0; i < @limits->count; i++) {
        if (key < @limits->low[i] || key > @limits->high[i]) continue;
        (?@limits->how[i].more++;?|?|?)
        switch (@limits->how[i].kind) {
        case 0: <<verdict>>; break;
        case 1: <<action>>; (?break;?|?)
        case 2: fprintf(log_file, "%s %u\n", @limits->how[i].name, key); (?return 1;?|break;?)
        default: <<verdict>>;
        }
    }
    (??|?|?|?|<<change>> @limits->count = (?0?|1?);?|<<change>> @limits->how[<<field>> & 3].kind = 1;?|
    <<change>> @limits->low[<<field>> % 6] = <<field>>;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void)
{
    for (unsigned i = 0; i < @limits->count; i++)
        printf("@ %u %s %d\n", @limits->how[i].more, @limits->how[i].name, @limits->how[i].kind);
}
)",
         "#(0-100) #(0-500) #(0-3) (?web?|dns?|x?)", 7},

        // An array on the heap that grows.
        {R"(struct @rule { (?uint8_t on; <<number>> low, high;?|<<number>> high, low; uint8_t on;?) (?unsigned hits;?|uint64_t hits;?) };
static struct @rule *@rules;
static (?size_t?|unsigned?|uint16_t?) @count;
static void @begin(void) { }
<<configure>>
{
    @rules = realloc(@rules, (@count + 1) * sizeof *@rules);
    memset(&@rules[@count], 0, sizeof *@rules);
    @rules[@count].low = number[0], @rules[@count].high = number[1], @rules[@count].on = 1;
    @count++;
    (void)word;
}
<<check>>
{
    (?for (struct @rule *rule = @rules; rule < @rules + @count; rule++) {?|
    for (unsigned i = 0; i < @count; i++) { struct @rule *rule = &@rules[i];?|
    for (unsigned i = @count; i-- > 0;) { struct @rule *rule = @rules + i;?)
        if (!rule->on) continue;
        if ((unsigned)rule->low <= <<field>> && <<field>> <= (unsigned)rule->high) {
            (?rule->hits++;?|?)
            (??|?|?|if (rule->hits > 5) rule->on = 0;?|rule->high--;?)
            <<verdict>>;
        }
    }
    (void)packet, (void)length;
    return 0;
}
static void @end(void)
{
    for (unsigned i = 0; i < @count; i++) printf("@ %lu %u\n", (unsigned long)@rules[i].hits, @rules[i].on);
}
)",
         "#(0-100) #(0-500)", 5},

        // A string that is looked for in packets.
        {R"((?static char @text[16]; static void @set(const char *text) { snprintf(@text, sizeof @text, "%s", text); }?|
static char *@text = "none"; static void @set(const char *text) { @text = strdup(text); }?|
static const char *@text; static void @set(const char *text) { char *copy = <<take>>(strlen(text) + 1); strcpy(copy, text); @text = copy; }?)
static size_t @length;
static int @fold;
static void @begin(void) { @set("abc"); (?@length = 3;?|?) }
<<configure>> { @set(word[0]); @length = strlen(word[0]); @fold = number[1] & 1; }
<<check>>
{
    unsigned from = (?42?|36?|0?|<<field>> & 31?);
    if (from + @length > length) return 0;
    (?if (memcmp(packet + from, @text, @length) == 0) <<verdict>>;?|
    if (@length && packet[from] == (u_char)@text[0] && (!@fold || packet[from + @length - 1] == (u_char)@text[@length - 1])) <<verdict>>;?|
    { size_t i = 0; while (i < @length && (packet[from + i] | (@fold ? 32 : 0)) == @text[i]) i++;
      if (i == @length) { <<verdict>>; } else if (i > 1) <<action>>; }?)
    (?if (<<cond>>) fprintf(log_file, "%s\n", @text);?|?)
    (??|?|?|?|<<change>> @length = 2;?|<<change>> @fold ^= 1;?)
    return 0;
}
static void @end(void) { printf("@ %s %zu\n", @text, @length); }
)",
         "(?ab?|xyz?|a?|get?) #(0-1)", 1},

        // Flags in bits and a mode by its name.
        {R"(static struct { unsigned tcp : 1, udp : 1, icmp : 1, log : 1, depth : 3; } @on;
enum { @STRICT = 1, @LOOSE, @OFF = 7 };
static (?int?|unsigned?|short?) @mode = @LOOSE;
static void @begin(void) { @on.tcp = 1; (?@on.udp = 1;?|?) }
<<configure>>
{
    @on.tcp = number[0], @on.udp = number[0] >> 1, @on.icmp = number[0] >> 2, @on.log = number[0] >> 3, @on.depth = number[1];
    @mode = !strcmp(word[2], "strict") ? @STRICT : !strcmp(word[2], "off") ? @OFF : @LOOSE;
}
<<check>>
{
    if (@mode == @OFF) return 0;
    switch (<<N>>protocol) {
    case 6: if (@on.tcp) <<verdict>>; break;
    case 17: if (@on.udp) { if (@mode == @STRICT) <<verdict>>; <<action>>; } break;
    case 1: if (@on.icmp && @on.depth > (<<N>>ttl & 7)) <<verdict>>; (?break;?|?)
    default: if (@mode != @STRICT) <<verdict>>;
    }
    if (@on.log) <<action>>;
    (??|?|?|<<change>> @mode = @STRICT;?|<<change>> @on.log ^= 1;?|<<change>> @on.depth++;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void) { printf("@ %d %d %d\n", (int)@mode, @on.log, @on.depth); }
)",
         "#(0-15) #(0-7) (?strict?|loose?|off?)", 1},

        // Settings copied as a whole, with defaults to go back to; rates as floating point.
        {R"(struct @settings { unsigned most; (?double?|float?) rate; int16_t offset; char mark; union { uint32_t word; uint8_t byte[4]; } mask; };
static const struct @settings @defaults = { <<value>>, 0.5, -2, 'd', { 0x01020304 } };
static struct @settings @now, @spare;
static void @begin(void) { memset(&@now, 0, sizeof @now); memcpy(&@now, &@defaults, sizeof @now); @spare = @now; }
<<configure>>
{
    @now.most = number[0], @now.rate = number[1] / 8.0, @now.offset = -(int)number[2], @now.mask.word = number[0] * 77;
    @now.mark = word[3][0];
}
<<check>>
{
    double value = (double)<<field>> * @now.rate + @now.offset;
    if (value > @now.most) <<verdict>>;
    if (<<field>> & @now.mask.byte[<<field>> & 3]) <<action>>;
    (?if (@now.mark == 'd') <<action>>;?|?)
    (??|?|?|<<change>> @now = @spare;?|<<change>> memcpy(&@now, &@defaults, sizeof @now);?|<<change>> @now.offset += 3;?)
    (void)packet, (void)length;
    return 0;
}
static void @end(void) { printf("@ %u %d %c\n", @now.most, @now.offset, @now.mark); }
)",
         "#(0-400) #(0-16) #(0-9) (?a?|d?)", 1},
    };
}

} // namespace catena::random
