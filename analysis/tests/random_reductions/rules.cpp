// What the templates of all parts share. Values are few, so that packets and configurations meet.
#include "parts.h"

namespace catena::random {

std::map<std::string, std::string> rules() {
    return {
        {"field",
         "(?<<N>>protocol?|<<N>>protocol?|<<N>>source_port?|<<N>>destination_port?|<<N>>destination_port?|<<N>>"
         "ttl?|<<N>>flags?|<<N>>length?|(<<N>>source & 0xff)?|(<<N>>destination >> 8 & 3)?|<<N>>payload?)"},
        {"value", "(?6?|17?|1?|22?|53?|80?|443?|64?|2?|18?|#(0-300)?)"},
        {"compare", "(?==?|==?|>=?|<=?|!=?|>?)"},
        {"cond", "(?<<field>> == <<value>>?|<<field>> > <<value>>?|(<<field>> & <<value>>)?|<<N>>is_ip?|<<N>>good?|"
                 "!(<<cond>>)?|(<<cond>>) && (<<cond>>)?|((<<cond>>) || (<<cond>>))?|counters.matched % 3 == 1?|"
                 "length > <<value>>?)"},
        {"action", "(?counters.matched++?|counters.bytes += <<field>>?|counters.last = <<field>>?|"
                   "counters.kinds[<<field>> & 3]++?|if (<<cond>>) <<action>>?|<<N>>mark ^= <<field>>?|"
                   "fprintf(log_file, \"@ %u\\n\", (unsigned)<<field>>)?|counters.bytes += <<N>>mark?|"
                   "counters.last ^= sum(packet, length)?|if (length > 22) sent[22]-- ?|"
                   "sent[<<value>>] = (u_char)<<field>>?)"},
        {"verdict", "(?return 1?|return 2?|return 2?|<<action>>?|{ <<action>>; return (?0?|1?|2?); }?)"},
        {"check", "static int @check(const u_char *packet, unsigned length)"},
        {"configure", "static void @configure(const unsigned *number, char **word)"},
        {"number", "(?unsigned?|uint16_t?|uint32_t?|unsigned long?|int?|uint8_t?)"},
        // Whether packets change what looks like configuration: seldom.
        {"change", "if (<<cond>>)"},
        // Settled once for a program: how decoded fields are reached, and how memory is got.
        {"N", "(?net.?|net->?)"},
        {"take", "(?malloc?|malloc?|malloc?|own_malloc?|own_checked?)"},
    };
}

} // namespace catena::random
