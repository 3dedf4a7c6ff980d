// Structs point to each other at will, but contain only those with a greater number.
#include "types.h"

namespace catena::random {

uint64_t Random::next() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

Types::Types(Random &random, std::string prefix) : prefix(std::move(prefix)) {
    unsigned structs = 2 + random.below(3);
    members.resize(structs);
    for (unsigned i = 0; i < structs; ++i) {
        auto &own = members[i];
        auto add = [&](const Type *type) { own.push_back({"m" + std::to_string(own.size()), type}); };
        auto other = [&] { return structure(random.below(structs)); };
        // Every struct can be linked into lists of its own kind, and counts something.
        if (random.chance(50)) add(integer());
        add(pointer(structure(i)));
        add(integer());
        for (unsigned more = 1 + random.below(5); more; --more) switch (random.below(12)) {
            case 0:
                add(integer());
                break;
            case 1:
                add(basic(Type::Bits));
                break;
            case 2:
            case 3:
                add(pointer(other()));
                break;
            case 4:
                add(pointer(pointer(other())));
                break;
            case 5:
                add(pointer(integer()));
                break;
            case 6:
                add(derived(Type::Array, random.chance(50) ? pointer(other()) : integer()));
                break;
            case 7:
                add(derived(Type::Integer, other()));
                break;
            case 8:
                add(derived(Type::Anything, other()));
                break;
            case 9:
                add(derived(Type::Union, other()));
                break;
            case 10:
                add(function(random.below(structs)));
                break;
            case 11:
                if (i + 1 < structs) {
                    const Type *inner = structure(i + 1 + random.below(structs - i - 1));
                    add(random.chance(30) ? derived(Type::Array, inner) : inner);
                }
                break;
            }
    }
}

const Type *Types::basic(Type::Kind kind, unsigned index) const {
    auto &there = known[{kind, nullptr, index}];
    if (!there) there = std::make_unique<Type>(Type{kind, nullptr, index});
    return there.get();
}

const Type *Types::structure(unsigned index) const { return basic(Type::Struct, index); }
const Type *Types::function(unsigned index) const { return basic(Type::Function, index); }

const Type *Types::derived(Type::Kind kind, const Type *to) const {
    auto &there = known[{kind, to, 0}];
    if (!there) there = std::make_unique<Type>(Type{kind, to, 0});
    return there.get();
}

std::string Types::declare(const Type *type, const std::string &name) const {
    switch (type->kind) {
    case Type::Int:
        return "int " + name;
    case Type::Bits:
        return "unsigned " + name + " : 5";
    case Type::Struct:
        return "struct " + structName(type->index) + " " + name;
    case Type::Pointer:
        return declare(type->to, "*" + name);
    case Type::Array:
        return declare(type->to, name + "[4]");
    case Type::Integer:
        return "long " + name;
    case Type::Anything:
        return "void *" + name;
    case Type::Union:
        return "union { " + declare(pointer(type->to), "p") + "; long l; } " + name;
    case Type::Function:
        return "void (*" + name + ")(struct " + structName(type->index) + " *, int)";
    }
    return "";
}

std::string Types::definitions() const {
    std::string text;
    for (unsigned i = 0; i < count(); ++i) text += "struct " + structName(i) + ";\n";
    for (unsigned i = count(); i--;) {
        text += "struct " + structName(i) + " {\n";
        for (const Member &member : members[i]) text += "    " + declare(member.type, member.name) + ";\n";
        text += "};\n";
    }
    return text;
}

const Type *Types::any(Random &random) const {
    const Type *one = structure(random.below(count()));
    switch (random.below(12)) {
    case 0:
    case 1:
        return integer();
    case 2:
    case 3:
        return one;
    case 4:
    case 5:
    case 6:
        return pointer(one);
    case 7:
        return derived(Type::Array, random.chance(50) ? pointer(one) : one);
    case 8:
        return pointer(pointer(one));
    case 9:
        return derived(random.chance(50) ? Type::Integer : Type::Anything, one);
    case 10:
        return pointer(integer());
    default:
        return random.chance(60) ? function(one->index) : derived(Type::Array, function(one->index));
    }
}

std::optional<Place> Types::step(Random &random, Place place, const std::string &index) const {
    const Type *type = place.type;
    switch (type->kind) {
    case Type::Struct: {
        const Member &member = members[type->index][random.below(static_cast<unsigned>(members[type->index].size()))];
        place.text += "." + member.name;
        place.type = member.type;
        return place;
    }
    case Type::Array:
        place.text += "[" + (random.chance(50) ? std::to_string(random.below(4)) : "(" + index + ") & 3") + "]";
        place.type = type->to;
        return place;
    case Type::Pointer:
    case Type::Integer:
    case Type::Anything:
        place.pointers.push_back(place.text);
        if (type->kind == Type::Pointer)
            place.text = "(*" + place.text + ")";
        else
            place.text = "(*(" + name(pointer(type->to)) + ")" + place.text + ")";
        place.type = type->to;
        // Pointers are never made to lead into a frame that ends.
        place.lasting = true;
        return place;
    case Type::Union:
        if (random.chance(50)) {
            place.text += ".p";
            place.type = pointer(type->to);
        } else {
            place.text += ".l";
            place.type = derived(Type::Integer, type->to);
        }
        return place;
    default:
        return {};
    }
}

std::optional<Place> Types::find(Random &random, const Scope &scope, const Type *type, const std::string &index,
                                 bool lasting) const {
    for (unsigned tries = 0; tries < 40; ++tries) {
        const Scoped &from = scope[random.below(static_cast<unsigned>(scope.size()))];
        std::optional<Place> place = Place{from.name, {}, from.type, from.lasting};
        for (unsigned steps = 0; place && steps < 7; ++steps) {
            if (place->type == type && (place->lasting || !lasting) && random.chance(70)) return place;
            place = step(random, std::move(*place), index);
        }
    }
    return {};
}

} // namespace catena::random
