// Wrong reductions, to see that the comparison notices them.
#pragma once

#include "llvm/IR/Module.h"
#include <cstdint>

namespace catena::random {

/// What is done to a packet function.
enum class Mutation {
    FrozenState,   // what is read from a variable is the value that it had at first
    LostUpdate,    // a variable is not written
    OneWay,        // a branch goes one way only
    OtherConstant, // a comparison is made with another number
    LostCall,      // a library function whose result is not used is not called
};
constexpr Mutation mutations[] = {Mutation::FrozenState, Mutation::LostUpdate, Mutation::OneWay,
                                  Mutation::OtherConstant, Mutation::LostCall};
const char *name(Mutation mutation);

/// A spoilt program, and the instruction that was changed, with its line in the source.
struct Mutant {
    std::unique_ptr<llvm::Module> program;
    std::string changed;
};

/// Return a copy of a program whose function is wrong in one place; without a program if it has no place for it.
Mutant mutant(const llvm::Module &program, llvm::StringRef function, Mutation mutation, uint64_t seed);

} // namespace catena::random
