// A line is gone when no instruction of it is left in the packet function or in what that calls.
#include "reduce/removed.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

/// What names begin with, before the number of their line.
constexpr StringLiteral mark = "line.";

/// Return a function and all that it calls or names.
SetVector<const Function *> reached(const Function &packet) {
    SetVector<const Function *> functions;
    functions.insert(&packet);
    for (unsigned i = 0; i < functions.size(); ++i)
        for (const Instruction &instruction : instructions(*functions[i]))
            for (const Use &operand : instruction.operands())
                if (const auto *named = dyn_cast<Function>(operand.get()->stripPointerCasts());
                    named && !named->isDeclaration())
                    functions.insert(named);
    return functions;
}

/// Return where a statement's instruction stands; line 0 for what the compiler adds: cells on the stack, jumps.
SourceLine lineOf(const Instruction &instruction) {
    const auto *jump = dyn_cast<BranchInst>(&instruction);
    const DILocation *at = instruction.getDebugLoc();
    if (!at || isa<DbgInfoIntrinsic>(instruction) || isa<AllocaInst>(instruction) || (jump && jump->isUnconditional()))
        return {"", 0, ""};
    const DISubprogram *procedure = at->getScope()->getSubprogram();
    return {at->getFilename().str(), at->getLine(), procedure ? procedure->getName().str() : ""};
}

} // namespace

std::map<SourceLine, unsigned> RemovedLines::linesOf(const Function &packet) const {
    std::map<SourceLine, unsigned> found;
    for (const Function *function : reached(packet))
        for (const Instruction &instruction : instructions(*function)) {
            unsigned number = 0;
            StringRef name = instruction.getName();
            if (name.consume_front(mark) && !name.consumeInteger(10, number) && number < named.size())
                ++found[named[number]];
            else if (SourceLine line = lineOf(instruction); line.line)
                ++found[line];
        }
    return found;
}

RemovedLines::RemovedLines(Function &packet) {
    std::map<SourceLine, unsigned> numbers;
    for (const Function *function : reached(packet))
        for (Instruction &instruction : instructions(const_cast<Function &>(*function))) {
            SourceLine line = lineOf(instruction);
            if (!line.line || instruction.getType()->isVoidTy()) continue;
            auto [number, isNew] = numbers.try_emplace(line, named.size());
            if (isNew) named.push_back(line);
            instruction.setName(mark + Twine(number->second) + "." + instruction.getName());
        }
    left = linesOf(packet);
    lines = left.size();
}

void RemovedLines::step(const Function &packet, RemovalReason reason) { step(left, packet, reason); }

void RemovedLines::step(const std::map<SourceLine, unsigned> &before, const Function &packet, RemovalReason reason) {
    std::map<SourceLine, unsigned> now = linesOf(packet);
    for (auto at = left.begin(); at != left.end();) {
        if (now.count(at->first) || !before.count(at->first)) {
            ++at;
            continue;
        }
        gone.push_back({at->first, reason, at->second});
        at = left.erase(at);
    }
    sort(gone, [](const RemovedLine &a, const RemovedLine &b) { return a.line < b.line; });
}

} // namespace catena
