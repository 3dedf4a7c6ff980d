// Each is an error that a reduction could make: it took state for configuration, or removed what was needed.
#include "mutants.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <random>

using namespace llvm;

namespace catena::random {

namespace {

const GlobalVariable *variableAt(const Value *pointer) {
    const auto *variable = dyn_cast<GlobalVariable>(getUnderlyingObject(pointer));
    return variable && !variable->isConstant() ? variable : nullptr;
}

bool fits(const Instruction &instruction, Mutation mutation) {
    switch (mutation) {
    case Mutation::FrozenState: {
        // Not those that the reduced program reads to find its blocks.
        const auto *load = dyn_cast<LoadInst>(&instruction);
        const GlobalVariable *variable = load ? variableAt(load->getPointerOperand()) : nullptr;
        return variable && !variable->getName().starts_with("catena") && load->getType()->isIntegerTy();
    }
    case Mutation::LostUpdate: {
        const auto *store = dyn_cast<StoreInst>(&instruction);
        return store && variableAt(store->getPointerOperand());
    }
    case Mutation::OneWay: {
        const auto *branch = dyn_cast<BranchInst>(&instruction);
        return branch && branch->isConditional();
    }
    case Mutation::OtherConstant: {
        const auto *comparison = dyn_cast<ICmpInst>(&instruction);
        return comparison && isa<ConstantInt>(comparison->getOperand(1));
    }
    case Mutation::LostCall: {
        const auto *call = dyn_cast<CallInst>(&instruction);
        return call && !isa<IntrinsicInst>(call) && call->use_empty();
    }
    }
    return false;
}

void apply(Instruction &at, Mutation mutation, bool choice) {
    switch (mutation) {
    case Mutation::FrozenState:
        at.replaceAllUsesWith(ConstantInt::get(at.getType(), 0));
        break;
    case Mutation::OneWay:
        cast<BranchInst>(at).setCondition(ConstantInt::getBool(at.getContext(), choice));
        return;
    case Mutation::OtherConstant: {
        auto *number = cast<ConstantInt>(at.getOperand(1));
        at.setOperand(1, ConstantInt::get(number->getType(), number->getValue() + (choice ? 1 : -1)));
        return;
    }
    case Mutation::LostUpdate:
    case Mutation::LostCall:
        break;
    }
    at.eraseFromParent();
}

} // namespace

const char *name(Mutation mutation) {
    switch (mutation) {
    case Mutation::FrozenState:
        return "frozen state";
    case Mutation::LostUpdate:
        return "lost update";
    case Mutation::OneWay:
        return "one way";
    case Mutation::OtherConstant:
        return "other constant";
    case Mutation::LostCall:
        return "lost call";
    }
    return "";
}

Mutant mutant(const Module &program, StringRef function, Mutation mutation, uint64_t seed) {
    auto copy = CloneModule(program);
    std::vector<Instruction *> places;
    for (Instruction &instruction : instructions(*copy->getFunction(function)))
        if (fits(instruction, mutation)) places.push_back(&instruction);
    if (places.empty()) return {};
    std::mt19937_64 choose(seed);
    Instruction &at = *places[choose() % places.size()];
    bool choice = choose() & 1;
    std::string changed;
    raw_string_ostream text(changed);
    text << "line " << (at.getDebugLoc() ? at.getDebugLoc().getLine() : 0) << (choice ? ", up:" : ", down:") << at;
    apply(at, mutation, choice);
    return {std::move(copy), std::move(changed)};
}

} // namespace catena::random
