// One function for every kind of statement.
#include "statements.h"

namespace catena::random {

Mix::Mix(Random &random) {
    // Numbers are always counted, and some pointers always set.
    static constexpr unsigned usual[statements] = {24, 20, 6, 3, 6, 8, 3, 5, 9, 6, 4, 8};
    for (unsigned i = 0; i < statements; ++i)
        statement[i] = i && random.chance(40) ? 0 : usual[i] * (1 + random.below(3));
    for (unsigned &weight : pointer) weight = random.chance(50) ? 0 : 1 + random.below(4);
    pointer[random.below(4)] += 2;
}

unsigned Mix::choose(Random &random, const unsigned *weights, unsigned count) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += weights[i];
    unsigned at = random.below(sum), number = 0;
    while (at >= weights[number]) at -= weights[number++];
    return number;
}

std::string Statements::indexText() {
    return packet ? "packet[" + std::to_string(random.below(32)) + "]" : std::to_string(random.below(4));
}

std::optional<Place> Statements::find(const Type *type, bool lasting) {
    return types.find(random, scope, type, indexText(), lasting);
}

std::string Statements::guarded(const std::vector<std::string> &guards, const std::string &statement) {
    std::string condition;
    for (const std::string &guard : guards) condition += (condition.empty() ? "" : " && ") + guard;
    return condition.empty() ? statement + "\n" : "if (" + condition + ") " + statement + "\n";
}

static void add(std::vector<std::string> &guards, const Place &place) {
    guards.insert(guards.end(), place.pointers.begin(), place.pointers.end());
}

std::string Statements::number(std::vector<std::string> &guards) {
    switch (random.below(4)) {
    case 0:
        return std::to_string(random.below(9));
    case 1:
        return packet ? "packet[" + std::to_string(random.below(32)) + "]" : "7";
    default:
        if (auto place = find(types.integer())) {
            add(guards, *place);
            return place->text;
        }
        return "1";
    }
}

std::string Statements::pointerTo(const Type *type, std::vector<std::string> &guards) {
    unsigned kind = Mix::choose(random, mix.pointer, Mix::pointers);
    bool structure = type->kind == Type::Struct;
    std::string cast = "(" + types.name(types.pointer(type)) + ")";
    if (kind < 3)
        if (auto place = find(type, true)) {
            add(guards, *place);
            return "&" + place->text;
        }
    if (kind == 3 && structure) {
        static const char *const ways[] = {"calloc(1, sizeof(%))", "%alloc(sizeof(%))", "%zalloc(sizeof(%))"};
        std::string way = ways[random.below(3)];
        if (way[0] == '%') way.replace(0, 1, prefix);
        return cast + way.replace(way.find('%'), 1, types.name(type));
    }
    if (kind == 4 && structure)
        if (auto place = find(types.derived(random.chance(50) ? Type::Integer : Type::Anything, type))) {
            add(guards, *place);
            return cast + place->text;
        }
    if (kind == 5 && structure) {
        // From an inner struct to the one around it.
        for (const Member &member : types.membersOf(type->index))
            if (member.type->kind == Type::Int) {
                if (auto place = find(type, true)) {
                    add(guards, *place);
                    return cast + "((char *)&" + place->text + "." + member.name + " - offsetof(" + types.name(type) +
                           ", " + member.name + "))";
                }
            }
    }
    if (kind == 7 && structure && type->index == 0 && random.chance(40)) return cast + prefix + "storage";
    if (kind == 8)
        if (auto place = find(types.pointer(type))) {
            add(guards, *place);
            static const char *const ways[] = {"(((long)# | 1) & ~1L)", "((long)# + 24 - 24)",
                                               "((unsigned long)# ^ 0)"};
            std::string way = ways[random.below(3)];
            return cast + way.replace(way.find('#'), 1, place->text);
        }
    if (kind == 9)
        if (auto array = find(types.derived(Type::Array, type), true)) {
            add(guards, *array);
            std::string by = "((" + number(guards) + ") & 3)";
            if (random.chance(50)) return "(" + array->text + " + " + by + ")";
            return cast + "((char *)" + array->text + " + " + by + " * sizeof(" + types.name(type) + "))";
        }
    if (kind == 6) {
        auto first = find(types.pointer(type)), second = find(types.pointer(type));
        if (first && second) {
            add(guards, *first), add(guards, *second);
            return "(" + number(guards) + " & 1 ? " + first->text + " : " + second->text + ")";
        }
    }
    if (auto place = find(types.pointer(type))) {
        add(guards, *place);
        return place->text;
    }
    return cast + "0";
}

std::string Statements::assignNumber() {
    std::vector<std::string> guards;
    bool bits = random.chance(10);
    auto place = find(bits ? types.derived(Type::Bits, nullptr) : types.integer());
    if (!place) place = find(types.integer());
    if (!place) return ";\n";
    add(guards, *place);
    std::string right = number(guards);
    static const char *const operators[] = {" = ", " += ", " ^= ", " = 1 + "};
    if (!bits && random.chance(10))
        return guarded(guards, "__atomic_fetch_add(&" + place->text + ", " + right + ", 5);");
    return guarded(guards,
                   random.chance(25) ? place->text + "++;" : place->text + operators[random.below(4)] + right + ";");
}

std::string Statements::assignPointer() {
    const Type *to = random.chance(75) ? anyStruct() : random.chance(50) ? types.pointer(anyStruct()) : types.integer();
    auto place = find(types.pointer(to));
    if (!place) return ";\n";
    std::vector<std::string> guards;
    add(guards, *place);
    std::string right = pointerTo(to, guards);
    if (random.chance(5)) right = "0";
    return guarded(guards, place->text + " = " + right + ";");
}

std::string Statements::assignStruct() {
    const Type *type = anyStruct();
    auto left = find(type), right = find(type);
    if (!left || !right) return ";\n";
    std::vector<std::string> guards;
    add(guards, *left), add(guards, *right);
    if (random.chance(30)) return guarded(guards, "memset(&" + left->text + ", 0, sizeof " + left->text + ");");
    return guarded(guards, "memmove(&" + left->text + ", &" + right->text + ", sizeof " + left->text + ");");
}

std::string Statements::copyBytes() {
    const Type *type = random.chance(60) ? types.pointer(anyStruct()) : anyStruct();
    auto left = find(type), right = find(type);
    if (!left || !right) return ";\n";
    std::vector<std::string> guards;
    add(guards, *left), add(guards, *right);
    if (type->kind == Type::Pointer && random.chance(40)) {
        // By way of a buffer of bytes.
        std::string bytes = fresh("bytes");
        return guarded(guards, "{ char " + bytes + "[8]; memcpy(" + bytes + ", &" + right->text + ", 8); memcpy(&" +
                                   left->text + ", " + bytes + ", 8); }");
    }
    if (type->kind == Type::Struct && random.chance(50)) return guarded(guards, left->text + " = " + right->text + ";");
    return guarded(guards, "memmove(&" + left->text + ", &" + right->text + ", sizeof " + left->text + ");");
}

std::string Statements::holdPointer() {
    const Type *type = anyStruct();
    bool integer = random.chance(50);
    auto left = find(types.derived(integer ? Type::Integer : Type::Anything, type));
    if (!left) return ";\n";
    std::vector<std::string> guards;
    add(guards, *left);
    std::string right = pointerTo(type, guards);
    return guarded(guards, left->text + " = " + (integer ? "(long)" : "(void *)") + right + ";");
}

std::string Statements::branch(unsigned depth) {
    std::vector<std::string> guards;
    std::string left = number(guards);
    guards.push_back("(" + left + ") % 3 " + (random.chance(50) ? "==" : "!=") + " 1");
    std::string text = guarded(guards, "{");
    text += some(1 + random.below(3), depth + 1) + "}";
    if (random.chance(40)) text += " else {\n" + some(1 + random.below(2), depth + 1) + "}";
    return text + "\n";
}

std::string Statements::loop(unsigned depth) {
    std::string counter = fresh("i");
    std::string text = "for (int " + counter + " = 0; " + counter + " < 3; " + counter + "++) {\n";
    return text + some(1 + random.below(2), depth + 1) + "}\n";
}

std::string Statements::walk(unsigned depth) {
    const Type *type = anyStruct();
    std::vector<std::string> guards;
    std::string begin = pointerTo(type, guards), walker = fresh("w"), counter = fresh("k"), next;
    for (const Member &member : types.membersOf(type->index))
        if (member.type == types.pointer(type)) next = member.name;
    std::string text = "{ int " + counter + " = 0; for (" + types.declare(types.pointer(type), walker) + " = " + begin +
                       "; " + walker + " && " + counter + " < 5; " + walker + " = " + walker + " ? " + walker + "->" +
                       next + " : 0, " + counter + "++) {\n";
    scope.push_back({walker, types.pointer(type), false});
    text += some(1 + random.below(2), depth + 1);
    scope.pop_back();
    return guarded(guards, text + "} }");
}

std::string Statements::call() {
    if (callable.empty()) return ";\n";
    const Procedure &one = callable[random.below(static_cast<unsigned>(callable.size()))];
    if (one.packet && !packet) return ";\n";
    std::vector<std::string> guards;
    std::string given;
    if (one.parameter->kind == Type::Pointer) {
        given = pointerTo(one.parameter->to, guards);
    } else {
        auto place = find(one.parameter);
        if (!place) return ";\n";
        add(guards, *place);
        given = place->text;
    }
    std::string text = one.name + "(" + given + (one.packet ? ", packet)" : ")");
    if (one.result && random.chance(70))
        if (auto place = find(one.result)) {
            // The call can change what the way to the place goes through.
            std::vector<std::string> then;
            add(then, *place);
            std::string result = fresh("r");
            return guarded(guards, "{ " + types.declare(one.result, result) + " = " + text + "; " +
                                       guarded(then, place->text + " = " + result + ";") + "    }");
        }
    return guarded(guards, text + ";");
}

std::string Statements::functionPointer() {
    unsigned index = random.below(types.count());
    auto place = find(types.function(index));
    if (!place) return ";\n";
    std::vector<std::string> guards;
    add(guards, *place);
    auto known = leaves.find(index);
    if (known != leaves.end() && random.chance(50))
        return guarded(guards, place->text + " = " + known->second[random.below(unsigned(known->second.size()))] + ";");
    // A procedure that is called through pointers calls none itself, so that programs end.
    if (leaves.empty()) return ";\n";
    guards.push_back(place->text);
    std::string given = pointerTo(types.structure(index), guards);
    return guarded(guards, place->text + "(" + given + ", " + number(guards) + ");");
}

std::string Statements::library() {
    std::vector<std::string> guards;
    std::string value = number(guards), own = prefix;
    switch (random.below(9)) {
    case 0:
        return guarded(guards, "printf(\"%d\\n\", " + value + ");");
    case 1:
        return packet ? guarded(guards, "send(" + own + "device, packet, 20 + (" + value + " & 7), 0);") : "";
    case 2:
        return guarded(guards, "snprintf(" + own + "text, sizeof " + own + "text, \"a%d b\", " + value + ");");
    case 3:
        return "{ char *at = strchr(" + own + "text, 'b'); if (at) *at = 'c'; }\n";
    case 4:
        return own + "word = strtok(" + own + "text, \" \");\n";
    case 5:
        return "if (" + own + "word) " + own + "word[0]++;\n";
    case 6:
        return "qsort(" + own + "sorted, 4, sizeof " + own + "sorted[0], " + own + "compare);\n";
    case 7:
        return own + "number = (int)strtol(" + own + "text, &" + own + "word, 10);\n";
    default:
        if (auto place = find(types.pointer(types.structure(0)))) {
            add(guards, *place);
            return guarded(guards, own + "several(2, " + place->text + ", " + value + ");");
        }
        return ";\n";
    }
}

std::string Statements::pattern() {
    std::vector<std::string> guards;
    std::string item = pointerTo(types.structure(0), guards), own = prefix;
    std::string value = indexText();
    switch (random.below(14)) {
    case 6:
        return guarded(guards, own + "schedule(" + value + ", " + item + ");");
    case 7:
        return own + "dispatch();\n";
    case 8:
        return guarded(guards, own + "collect(2, " + item + ", " + own + "sorted[1]);");
    case 9:
        return own + "search(" + value + ");\n";
    case 10:
        return own + "advance(" + value + ");\n";
    case 11:
        return guarded(guards, own + "descend(" + item + ", 0);");
    case 12:
        return guarded(guards, own + "keep_pair(" + own + "make_pair(" + item + ", " + own + "sorted[2]));");
    case 13:
        if (auto place = find(types.pointer(types.structure(0)))) {
            add(guards, *place);
            return guarded(guards, place->text + " = __atomic_exchange_n(&" + own + "sorted[0], " + item + ", 5);");
        }
        return ";\n";
    case 0:
        return guarded(guards, own + "push(" + item + ");");
    case 1:
        return own + "pop();\n";
    case 2:
        return guarded(guards, own + "grow(" + item + ");");
    case 3:
        return packet ? own + "count_flow(packet);\n" : "";
    case 4:
        return "if (!setjmp(" + own + "give_up)) " + own + "parse(" + indexText() + ");\n";
    default:
        if (auto place = find(types.pointer(types.structure(0)))) {
            add(guards, *place);
            return guarded(guards, own + "choose(&" + place->text + ", " + item + ");");
        }
        return ";\n";
    }
}

std::string Statements::one(unsigned depth) {
    switch (Mix::choose(random, mix.statement, Mix::statements)) {
    case 0:
        return assignNumber();
    case 1:
        return assignPointer();
    case 2:
        return copyBytes();
    case 3:
        return assignStruct();
    case 4:
        return holdPointer();
    case 5:
        return depth < 3 ? branch(depth) : assignNumber();
    case 6:
        return depth < 2 ? loop(depth) : assignNumber();
    case 7:
        return depth < 2 ? walk(depth) : assignNumber();
    case 8:
        return depth < 1 ? call() : assignNumber();
    case 9:
        return functionPointer();
    case 10:
        return library();
    default:
        return pattern();
    }
}

std::string Statements::some(unsigned count, unsigned depth) {
    std::string text;
    while (count--) text += "    " + one(depth);
    return text;
}

} // namespace catena::random
