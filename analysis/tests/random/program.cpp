// A random program: types, variables, procedures in layers so that calls end, patterns that network functions are made
// of, and one of several forms of the packet loop around them.
#include "program.h"

#include "patterns.h"
#include "statements.h"

namespace catena::random {

namespace {

class Program {
public:
    Program(uint64_t seed, const std::string &prefix)
        : random(seed), prefix(prefix), types(random, prefix), mix(random) {}

    std::string text() {
        std::string all = types.definitions() + filled(patterns()) + variables();
        for (unsigned i = 1 + random.below(3); i; --i) all += leaf();
        for (unsigned i = 1 + random.below(2); i; --i) all += procedure("low", {});
        std::vector<Procedure> low = procedures;
        for (unsigned i = 1 + random.below(2); i; --i) all += procedure("high", low);
        return all + mainLoop();
    }

private:
    Random random;
    std::string prefix;
    Types types;
    Mix mix;
    /// What all procedures may name; and what only initialization does, so that packets get at it by pointers alone.
    Scope globals, hidden;
    std::vector<Procedure> procedures;
    std::map<unsigned, std::vector<std::string>> leaves;
    unsigned names = 0;

    std::string filled(const char *pattern) const {
        std::string counter, next, text;
        for (const Member &member : types.membersOf(0)) {
            if (member.type->kind == Type::Int) counter = member.name;
            if (member.type == types.pointer(types.structure(0))) next = member.name;
        }
        for (const char *c = pattern; *c; ++c)
            if (*c == '@')
                text += prefix;
            else if (*c == '$')
                text += counter;
            else if (*c == '%' && c[-1] == '>')
                text += next;
            else
                text += *c;
        return text;
    }

    const Type *anyPointer() { return types.pointer(types.structure(random.below(types.count()))); }

    std::string variables() {
        std::string text;
        globals.push_back({prefix + "number", types.integer(), true});
        globals.push_back({prefix + "sorted", types.derived(Type::Array, types.pointer(types.structure(0))), true});
        for (unsigned i = 7 + random.below(9); i; --i) {
            const Type *type = types.any(random);
            std::string name = prefix + "g" + std::to_string(names++), initial;
            // Some begin as pointers to others.
            if (type->kind == Type::Pointer && random.chance(40))
                for (const Scoped &other : random.chance(50) ? hidden : globals)
                    if (other.type == type->to && random.chance(50)) initial = " = &" + other.name;
            text += types.declare(type, name) + initial + ";\n";
            bool data = type->kind == Type::Struct || type->kind == Type::Int || type->kind == Type::Pointer;
            (data && random.chance(40) ? hidden : globals).push_back({name, type, true});
        }
        return text;
    }

    /// Declare locals and add them to a scope.
    std::string locals(Scope &scope, bool lasting) {
        std::string text;
        for (unsigned i = 1 + random.below(3); i; --i) {
            const Type *type = types.any(random);
            bool isStatic = random.chance(20);
            std::string name = "v" + std::to_string(names++);
            bool aggregate = type->kind == Type::Struct || type->kind == Type::Array;
            text += "    " + std::string(isStatic ? "static " : "") + types.declare(type, name) +
                    (isStatic    ? ";\n"
                     : aggregate ? " = {0};\n"
                                 : " = 0;\n");
            scope.push_back({name, type, lasting || isStatic});
        }
        return text;
    }

    Statements statements(const Scope &scope, const std::vector<Procedure> &callable, bool packet,
                          bool pointers = true) {
        Statements all(random, types, prefix, scope, callable, packet, mix);
        if (pointers) all.leaves = leaves;
        return all;
    }

    std::string leaf() {
        unsigned index = random.below(types.count());
        std::string name = prefix + "leaf" + std::to_string(names++);
        Scope scope = globals;
        scope.push_back({"given", types.pointer(types.structure(index)), false});
        scope.push_back({"value", types.integer(), false});
        std::string text = "void " + name + "(struct " + types.structName(index) + " *given, int value) {\n";
        text += locals(scope, false) + statements(scope, {}, false, false).some(2 + random.below(3)) + "}\n";
        leaves[index].push_back(name);
        return text;
    }

    std::string procedure(const char *stem, const std::vector<Procedure> &callable) {
        Procedure own{prefix + stem + std::to_string(names++), anyPointer(), random.chance(60), nullptr};
        if (random.chance(25)) own.parameter = own.parameter->to;
        if (random.chance(50)) own.result = anyPointer();
        Scope scope = globals;
        scope.push_back({"given", own.parameter, false});
        std::string head = own.name + "(" + types.declare(own.parameter, "given") +
                           (own.packet ? ", const unsigned char *packet)" : ")");
        std::string text =
            (own.result ? types.declare(own.result, head) : "void " + head) + " {\n" + locals(scope, false);
        Statements body = statements(scope, callable, own.packet);
        text += body.some(3 + random.below(4));
        if (own.result) {
            std::vector<std::string> guards;
            std::string result = body.pointerTo(own.result->to, guards), condition;
            for (const std::string &guard : guards) condition += guard + " && ";
            text += "    return " + condition + "1 ? " + result + " : 0;\n";
        }
        procedures.push_back(own);
        return text + "}\n";
    }

    std::string mainLoop() {
        std::string text, receive = "recv(" + prefix + "device, packet, 64, 0)";
        const std::string start = "int " + prefix + "main(void) {\n",
                          end = "    " + prefix + "number = 0;\n    return 0;\n}\n";
        auto body = [&](const Scope &scope, bool packet, unsigned least) {
            return statements(scope, procedures, packet).some(least + random.below(5));
        };
        auto initialization = [&](Scope scope) {
            scope.insert(scope.end(), hidden.begin(), hidden.end());
            scope.insert(scope.end(), hidden.begin(), hidden.end());
            return body(scope, false, 3);
        };
        Scope scope = globals;
        switch (random.below(6)) {
        case 0:
            text = start + "    unsigned char packet[64];\n" + locals(scope, true) + initialization(scope);
            return text + "    while (" + receive + " > 0) {\n" + body(scope, true, 4) + "    }\n" + end;
        case 1: {
            const Type *given = types.structure(random.below(types.count()));
            bool copy = random.chance(30);
            const Type *context = copy ? given : types.pointer(given);
            scope.push_back({"context", context, copy});
            text = "void " + prefix + "run(" + types.declare(context, "context") +
                   ") {\n    unsigned char packet[64];\n" + locals(scope, true);
            text += "    while (" + receive + " > 0) {\n" + body(scope, true, 4) + "    }\n}\n";
            Scope outer = globals;
            text += start + "    " + types.declare(given, "context") + " = {0};\n" + locals(outer, true);
            outer.push_back({"context", given, true});
            return text + initialization(outer) + "    " + prefix + (copy ? "run(context);\n" : "run(&context);\n") +
                   end;
        }
        case 2: {
            scope.push_back({"context", types.pointer(types.structure(0)), false});
            text = "void " + prefix +
                   "on_packet(unsigned char *user, const struct pcap_pkthdr *header, const unsigned char "
                   "*packet) {\n    " +
                   types.declare(types.pointer(types.structure(0)), "context") + " = (void *)user;\n" +
                   locals(scope, false);
            text += body(scope, true, 4) + "}\n";
            Scope outer = globals;
            text += start + "    " + types.declare(types.structure(0), "context") + " = {0};\n" + locals(outer, true);
            outer.push_back({"context", types.structure(0), true});
            return text + initialization(outer) + "    pcap_loop((void *)(long)" + prefix + "device, -1, " + prefix +
                   "on_packet, (unsigned char *)&context);\n" + end;
        }
        case 3:
            text = "unsigned char " + prefix + "packet[64];\nint " + prefix + "received;\nint " + prefix +
                   "receive(void) {\n    " + prefix + "received++;\n    return recv(" + prefix + "device, " + prefix +
                   "packet, 64, 0);\n}\nvoid " + prefix +
                   "handle(void) {\n    const unsigned char *packet = " + prefix + "packet;\n" + locals(scope, false) +
                   body(scope, true, 4) + "}\n";
            return text + start + initialization(globals) + "    for (;;) {\n        if (" + prefix +
                   "receive() <= 0) break;\n        " + prefix + "handle();\n    }\n" + end;
        case 4: {
            text = "int " + prefix + "batch(void) {\n    unsigned char packet[64];\n" + locals(scope, false);
            text += "    for (int i = 0; i < 3; i++) {\n        if (" + receive + " <= 0) return 0;\n" +
                    body(scope, true, 4) + "    }\n    return 1;\n}\n";
            Scope outer = globals;
            text += start + locals(outer, true) + initialization(outer);
            return text + "    while (" + prefix + "batch()) {\n" + body(outer, false, 2) + "    }\n" + end;
        }
        default:
            text = start + "    struct pcap_pkthdr header;\n    const unsigned char *packet;\n" + locals(scope, true) +
                   initialization(scope);
            return text + "    while ((packet = pcap_next((void *)(long)" + prefix + "device, &header))) {\n" +
                   body(scope, true, 4) + "    }\n" + end;
        }
    }
};

} // namespace

std::string program(uint64_t seed, const std::string &prefix) { return Program(seed, prefix).text(); }

std::string preamble() {
    return "#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
           "#include <string.h>\nlong recv(int, void *, unsigned long, int);\n"
           "long send(int, const void *, unsigned long, int);\nstruct pcap_pkthdr { long seconds, micros; unsigned "
           "caplen, "
           "len; };\nconst unsigned char *pcap_next(void *, struct pcap_pkthdr *);\n"
           "int pcap_loop(void *, int, void (*)(unsigned char *, const struct pcap_pkthdr *, const unsigned char *), "
           "unsigned char *);\n";
}

} // namespace catena::random
