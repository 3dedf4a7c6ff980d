// Random statements, each within guards that keep its pointers from being followed where they are null.
#pragma once

#include "types.h"

namespace catena::random {

/// A procedure that statements may call.
struct Procedure {
    std::string name;
    /// What it is given: a pointer to a struct, or a struct itself; and whether it takes the packet as well.
    const Type *parameter;
    bool packet;
    /// What it returns, or null.
    const Type *result;
};

/// How often a program uses each kind of statement and of pointer. Each program leaves many out: what one kind does is
/// seen only where no other one does the same (Groce et al., Swarm Testing, ISSTA 2012, §2).
struct Mix {
    static constexpr unsigned statements = 12, pointers = 14;
    unsigned statement[statements], pointer[pointers];
    explicit Mix(Random &random);
    /// Return a number of a kind, at random by weight.
    static unsigned choose(Random &random, const unsigned *weights, unsigned count);
};

/// Writes the statements of one procedure.
class Statements {
public:
    Statements(Random &random, const Types &types, const std::string &prefix, Scope scope,
               std::vector<Procedure> callable, bool packet, const Mix &mix)
        : random(random), mix(mix), types(types), prefix(prefix), scope(std::move(scope)),
          callable(std::move(callable)), packet(packet) {}

    /// Return `count` statements, each indented.
    std::string some(unsigned count, unsigned depth = 0);
    /// Return an expression for a pointer to a type, and add to the guards that it needs.
    std::string pointerTo(const Type *type, std::vector<std::string> &guards);
    /// Return an expression of type int without side effects.
    std::string number(std::vector<std::string> &guards);
    /// Names of procedures with parameters (struct *, int), by struct.
    std::map<unsigned, std::vector<std::string>> leaves;

private:
    std::string one(unsigned depth);
    std::string assignNumber();
    std::string assignPointer();
    std::string assignStruct();
    std::string copyBytes();
    std::string holdPointer();
    std::string branch(unsigned depth);
    std::string loop(unsigned depth);
    std::string walk(unsigned depth);
    std::string call();
    std::string functionPointer();
    std::string library();
    std::string pattern();
    std::string guarded(const std::vector<std::string> &guards, const std::string &statement);
    std::optional<Place> find(const Type *type, bool lasting = false);
    std::string indexText();
    const Type *anyStruct() { return types.structure(random.below(types.count())); }
    std::string fresh(const char *stem) { return stem + std::to_string(names++); }

    Random &random;
    const Mix &mix;
    const Types &types;
    const std::string &prefix;
    Scope scope;
    std::vector<Procedure> callable;
    bool packet;
    unsigned names = 0;
};

} // namespace catena::random
