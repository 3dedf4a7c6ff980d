// A line is gone when no instruction of it is left in the packet function or in what that calls.
#include "reduce/removed.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

/// Return the lines that a function and all that it calls or names consist of, each with its number of instructions.
std::map<SourceLine, unsigned> linesOf(const Function &packet) {
    SetVector<const Function *> functions;
    functions.insert(&packet);
    std::map<SourceLine, unsigned> found;
    for (unsigned i = 0; i < functions.size(); ++i) {
        // What the compiler adds (cells on the stack, jumps) is no statement.
        for (const Instruction &instruction : instructions(*functions[i])) {
            for (const Use &operand : instruction.operands())
                if (const auto *named = dyn_cast<Function>(operand.get()->stripPointerCasts());
                    named && !named->isDeclaration())
                    functions.insert(named);
            const auto *jump = dyn_cast<BranchInst>(&instruction);
            if (isa<DbgInfoIntrinsic>(instruction) || isa<AllocaInst>(instruction) || (jump && jump->isUnconditional()))
                continue;
            const DILocation *at = instruction.getDebugLoc();
            if (!at || !at->getLine()) continue;
            const DISubprogram *procedure = at->getScope()->getSubprogram();
            ++found[{at->getFilename().str(), at->getLine(), procedure ? procedure->getName().str() : ""}];
        }
    }
    return found;
}

} // namespace

RemovedLines::RemovedLines(const Function &packet) : left(linesOf(packet)), lines(left.size()) {}

void RemovedLines::step(const Function &packet, RemovalReason reason) {
    std::map<SourceLine, unsigned> now = linesOf(packet);
    for (auto at = left.begin(); at != left.end();) {
        if (now.count(at->first)) {
            ++at;
            continue;
        }
        gone.push_back({at->first, reason, at->second});
        at = left.erase(at);
    }
    sort(gone, [](const RemovedLine &a, const RemovedLine &b) { return a.line < b.line; });
}

} // namespace catena
