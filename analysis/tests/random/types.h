// The types of a random program, and random ways through them: from a variable over members, elements and pointers to
// something of a type that is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::random {

/// Numbers from a seed (Vigna's splitmix64), the same on every machine.
class Random {
public:
    explicit Random(uint64_t seed) : state(seed) {}
    /// Return a number from 0 to below `limit`.
    unsigned below(unsigned limit) { return static_cast<unsigned>(next() % limit); }
    bool chance(unsigned percent) { return below(100) < percent; }

private:
    uint64_t next();
    uint64_t state;
};

struct Type {
    enum Kind {
        Int,      // int
        Bits,     // unsigned, five bits wide, in a struct
        Struct,   // struct number `index`
        Pointer,  // to `to`
        Array,    // of four `to`
        Integer,  // a long that holds a pointer to `to`, or 0
        Anything, // a void pointer that holds a pointer to `to`, or none
        Union,    // of a pointer to `to` and such a long
        Function, // a pointer to void(struct *, int) of struct number `index`
    } kind;
    const Type *to = nullptr;
    unsigned index = 0;
};

struct Member {
    std::string name;
    const Type *type;
};

/// Something a program can read and write: its text, and the pointers on the way to it, which must not be null.
struct Place {
    std::string text;
    std::vector<std::string> pointers;
    const Type *type;
    /// Whether its address may be kept: it is not in the frame of a procedure that returns.
    bool lasting;
};

struct Scoped {
    std::string name;
    const Type *type;
    bool lasting;
};
using Scope = std::vector<Scoped>;

/// The structs of one program.
class Types {
public:
    Types(Random &random, std::string prefix);

    const Type *integer() const { return basic(Type::Int); }
    const Type *structure(unsigned index) const;
    const Type *pointer(const Type *to) const { return derived(Type::Pointer, to); }
    const Type *derived(Type::Kind kind, const Type *to) const;
    const Type *function(unsigned index) const;
    unsigned count() const { return static_cast<unsigned>(members.size()); }
    const std::vector<Member> &membersOf(unsigned index) const { return members[index]; }

    /// Return a declaration such as `struct s0 *name[4]`.
    std::string declare(const Type *type, const std::string &name) const;
    /// Return the type's own name, as in a cast.
    std::string name(const Type *type) const { return declare(type, ""); }
    /// Return the definitions of all structs.
    std::string definitions() const;
    /// Return a type that a variable may have.
    const Type *any(Random &random) const;

    /// Find a place of a type from the variables in scope, or nothing. With `lasting`, its address may be kept.
    std::optional<Place> find(Random &random, const Scope &scope, const Type *type, const std::string &index,
                              bool lasting = false) const;
    std::string structName(unsigned index) const { return prefix + "s" + std::to_string(index); }

private:
    const Type *basic(Type::Kind kind, unsigned index = 0) const;
    std::optional<Place> step(Random &random, Place place, const std::string &index) const;

    std::string prefix;
    std::vector<std::vector<Member>> members;
    mutable std::map<std::tuple<int, const Type *, unsigned>, std::unique_ptr<Type>> known;
};

} // namespace catena::random
