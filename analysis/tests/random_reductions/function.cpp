// A function decodes a packet into one structure, hands it to its parts one after the other, and sends or drops it.
#include "function.h"

#include "grammar.h"
#include "parts.h"
#include <algorithm>

namespace catena::random {

namespace {

const char *const head = R"(#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct net {
    (?uint8_t?|int?) is_ip(?, good?|; unsigned good?);
    (?uint8_t protocol, ttl; uint16_t source_port, destination_port;?|unsigned source_port, destination_port; unsigned char ttl, protocol;?)
    uint32_t source, destination;
    (?uint16_t?|unsigned?) length, payload, flags;
    unsigned mark;
};
(?static struct net <<space>>;?|static struct net <<space>>; static unsigned decoded;?)
<<reach>>
static struct { unsigned long matched, bytes; unsigned last, kinds[4]; unsigned sent, dropped; } counters;
static FILE *log_file;
static u_char sent[2048];
static long now;
static int layer4 = 1, verify;

static void *own_malloc(size_t size) { return malloc(size); }
static void *own_checked(size_t size)
{
    void *block = malloc(size);
    if (!block) { fprintf(stderr, "no memory\n"); exit(1); }
    return block;
}
static unsigned read16(const u_char *at) { return (unsigned)at[0] << 8 | at[1]; }
static unsigned sum(const u_char *at, unsigned length)
{
    unsigned total = 0;
    for (unsigned i = 0; i + 1 < length; i += 2) total += read16(at + i);
    while (total >> 16) total = (total & 0xffff) + (total >> 16);
    return total;
}

static int decode(const u_char *packet, unsigned length)
{
    (?memset(&<<space>>, 0, sizeof <<space>>);?|<<N>>is_ip = 0, <<N>>good = 0, <<N>>protocol = 0, <<N>>ttl = 0, <<N>>source_port = 0;
    <<N>>destination_port = 0, <<N>>source = 0, <<N>>destination = 0, <<N>>payload = 0, <<N>>flags = 0, <<N>>mark = 0;?|
    <<N>>is_ip = 0, <<N>>good = 0;?)
    <<N>>length = (uint16_t)length;
    if (length < 34 || read16(packet + 12) != 0x800) return (?0?|<<cond>>?);
    <<N>>is_ip = 1, <<N>>ttl = packet[22], <<N>>protocol = packet[23];
    (?memcpy(&<<N>>source, packet + 26, 4), <<N>>source = __builtin_bswap32(<<N>>source);?|<<N>>source = read16(packet + 26) << 16 | read16(packet + 28);?)
    <<N>>destination = read16(packet + 30) << 16 | read16(packet + 32);
    (?if (verify)?|?) <<N>>good = sum(packet + 14, 20) == (?0xffff?|0x1234?);
    if (!layer4) return 1;
    switch (<<N>>protocol) {
    case 6:
        if (length < 54) return (?0?|1?);
        <<N>>source_port = read16(packet + 34), <<N>>destination_port = read16(packet + 36), <<N>>flags = packet[47];
        <<N>>payload = (uint16_t)(?(length - 54)?|sum(packet + 54, length - 54)?);
        break;
    case 17:
        if (length < 42) return 1;
        <<N>>source_port = read16(packet + 34), <<N>>destination_port = read16(packet + 36);
        (?<<N>>payload = (uint16_t)(length - 42);?|?)
        break;
    case 1:
        if (length > 35) <<N>>flags = packet[34];
        (?break;?|?)
    default:
        (?<<N>>payload = (uint16_t)(length - 34);?|<<action>>;?)
    }
    return 1;
}

)";

const char *const configuring = R"(
static void configure(const char *name)
{
    char line[256], *word[8];
    unsigned number[8];
    FILE *file = fopen(name, "r");
    if (!file) exit(2);
    while (fgets(line, sizeof line, file)) {
        unsigned words = 0;
        char *part = strtok(line, " \n");
        if (!part) continue;
        for (char *at; words < 8 && (at = strtok(NULL, " \n"));) word[words++] = at;
        for (unsigned i = 0; i < 8; i++) {
            if (i >= words) word[i] = "";
            number[i] = (unsigned)strtoul(word[i], NULL, 10);
        }
        if (!strcmp(part, "layer4")) layer4 = (int)number[0];
        if (!strcmp(part, "verify")) verify = (int)number[0];
)";

const char *const processing = R"(
    }
    fclose(file);
}

static int process(const struct pcap_pkthdr *header, const u_char *packet)
{
    unsigned length = header->caplen > sizeof sent ? sizeof sent : header->caplen;
    int verdict = 0;
    now = header->ts.tv_usec / 16;
    memcpy(sent, packet, length);
    (?decode(packet, length);?|if (!decode(packet, length)) { counters.dropped++; return 0; }?)
)";

const char *const mainLoop = R"(    if (verdict == 2 || (<<cond>> && !verdict)) { counters.dropped++; return 0; }
    (?fprintf(log_file, "%u %u\n", (unsigned)<<field>>, (unsigned)<<field>>);?|?|?)
    counters.sent++;
    return 1;
}

static void called(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
    if (process(header, packet)) pcap_dump(user, header, sent);
}

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    if (argc < 5) return 1;
    begin();
    configure(argv[1]);
    pcap_t *in = pcap_open_offline(argv[2], error);
    if (!in) return 3;
    pcap_dumper_t *out = pcap_dump_open(in, argv[3]);
    log_file = fopen(argv[4], "w");
    if (!out || !log_file) return 4;
    struct pcap_pkthdr *header, space;
    const u_char *packet;
    (?while (pcap_next_ex(in, &header, &packet) == 1) if (process(header, packet)) pcap_dump((u_char *)out, header, sent);?|
    while ((packet = pcap_next(in, &space))) {
        if (!process(&space, packet)) continue;
        pcap_dump((u_char *)out, &space, sent);
        if (counters.sent == 100000) break;
    }?|pcap_loop(in, -1, called, (u_char *)out);?|pcap_dispatch(in, -1, called, (u_char *)out);?)
    (void)header, (void)space, (void)packet;
    end();
    pcap_dump_close(out);
    fclose(log_file);
    pcap_close(in);
    return counters.sent & 1;
}
)";

} // namespace

NetworkFunction networkFunction(uint64_t seed, unsigned configurations) {
    auto shared = rules();
    shared["space"] = "net";
    shared["reach"] = "";
    Grammar grammar(seed, shared);
    if (grammar.below(2)) {
        shared["space"] = "net_space";
        shared["N"] = "net->";
        shared["reach"] = "static struct net *net = &net_space;";
    } else {
        shared["N"] = "net.";
    }
    grammar = Grammar(seed, shared);
    grammar.settle("take");
    std::vector<Part> all = flatParts(), chosen;
    for (auto &more : {linkedParts(), statefulParts()}) all.insert(all.end(), more.begin(), more.end());
    for (unsigned parts = 1 + grammar.below(4); chosen.size() < parts;)
        chosen.push_back(all[grammar.below(all.size())]);
    std::string text = grammar.expand(head, ""), begin, configure, check, end;
    for (size_t i = 0; i < chosen.size(); ++i) {
        std::string name = "part" + std::to_string(i), prefix = name + "_";
        text += grammar.expand(chosen[i].text, prefix);
        begin += "    " + prefix + "begin();\n";
        configure += "        if (!strcmp(part, \"" + name + "\")) " + prefix + "configure(number, word);\n";
        check += "    if (!verdict) verdict = " + prefix + "check(packet, length);\n";
        if (!grammar.below(4)) check += grammar.expand("    if (<<cond>>) <<action>>;\n", "");
        end += "    " + prefix + "end();\n";
    }
    text += grammar.expand(configuring, "") + configure + grammar.expand(processing, "") + check;
    NetworkFunction made;
    std::string loop = mainLoop;
    size_t at = loop.find("int main");
    loop.insert(at,
                "static void begin(void)\n{\n" + begin + "}\n\nstatic void end(void)\n{\n" + end +
                    "    printf(\"%lu %lu %u %u %u %u %u %u %u\\n\", counters.matched, counters.bytes, counters.last, "
                    "counters.kinds[0],\n           counters.kinds[1], counters.kinds[2], counters.kinds[3], "
                    "counters.sent, counters.dropped);\n}\n\n");
    made.source = text + grammar.expand(loop, "");
    for (unsigned i = 0; i < configurations; ++i) {
        std::vector<std::string> lines;
        for (const char *flag : {"layer4", "verify"})
            if (grammar.below(2)) lines.push_back(flag + std::string(" ") + std::to_string(grammar.below(3) > 0));
        for (size_t part = 0; part < chosen.size(); ++part)
            for (unsigned count = grammar.below(chosen[part].most + 1); count; --count)
                lines.push_back("part" + std::to_string(part) + " " + grammar.expand(chosen[part].line, ""));
        for (size_t left = lines.size(); left > 1; --left) std::swap(lines[left - 1], lines[grammar.below(left)]);
        std::string configuration;
        for (const std::string &line : lines) configuration += line + "\n";
        made.configurations.push_back(configuration);
    }
    return made;
}

std::vector<std::string> randomTraffic(uint64_t seed, unsigned count) {
    Grammar choose(seed, {});
    auto one = [&](std::initializer_list<unsigned> of) {
        return static_cast<char>(of.begin()[choose.below(static_cast<unsigned>(of.size()))]);
    };
    std::vector<std::string> packets;
    for (unsigned i = 0; i < count; ++i) {
        std::string packet(34, '\0');
        packet[12] = 8, packet[13] = one({0, 0, 0, 0, 0, 0, 0, 0, 0, 6});
        packet[14] = 0x45, packet[22] = one({1, 64, 64, 255}), packet[23] = one({6, 6, 17, 17, 1, 47});
        for (unsigned at : {26u, 30u})
            packet[at] = 10, packet[at + 2] = one({0, 1, 2, 3}), packet[at + 3] = one({0, 1, 2, 3});
        if (choose.below(2)) {
            unsigned sum = 0;
            for (unsigned at = 14; at < 34; at += 2)
                sum += static_cast<unsigned char>(packet[at]) * 256u + static_cast<unsigned char>(packet[at + 1]);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
            packet[24] = static_cast<char>(sum >> 8), packet[25] = static_cast<char>(sum);
        }
        for (unsigned port = 0; port < 2; ++port) {
            unsigned value = std::initializer_list<unsigned>{22, 53, 80, 443, 64, 1000}.begin()[choose.below(6)];
            packet += static_cast<char>(value >> 8), packet += static_cast<char>(value);
        }
        packet.resize(54, static_cast<char>(choose.below(20)));
        packet[47] = one({2, 16, 18, 4});
        for (const char *word : {"ab", "xyz", "get", "a"})
            if (choose.below(3) == 0) packet += word;
        packet.resize(packet.size() + choose.below(80), static_cast<char>(choose.below(256)));
        if (choose.below(8) == 0) packet.resize(choose.below(static_cast<unsigned>(packet.size()) + 1));
        packets.push_back(packet);
    }
    return packets;
}

} // namespace catena::random
