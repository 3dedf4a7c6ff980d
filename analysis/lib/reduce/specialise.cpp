// The order is that of Algorithm 3 (Deng and Wu, NFReducer): configuration is applied, constants are folded and
// propagated, and only then paths are looked at.
#include "reduce/specialise.h"

#include "reduce/simplify.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

namespace {

/// What inlining may grow the packet function to, in instructions.
constexpr unsigned mostInlined = 20000;

bool callsItself(const Function &function) {
    return any_of(instructions(function), [&](const Instruction &instruction) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        return call && call->getCalledFunction() == &function;
    });
}

/// Inline all calls of functions with code; return how many.
unsigned inlineCalls(Function &packet) {
    unsigned inlined = 0;
    bool again = true;
    while (again && packet.getInstructionCount() < mostInlined) {
        again = false;
        for (Instruction &instruction : instructions(packet)) {
            auto *call = dyn_cast<CallBase>(&instruction);
            Function *callee = call ? call->getCalledFunction() : nullptr;
            if (!callee || callee->isDeclaration() || callee == &packet || callee->isVarArg() || callsItself(*callee))
                continue;
            InlineFunctionInfo info;
            if (!InlineFunction(*call, info).isSuccess()) continue;
            ++inlined;
            again = true;
            break;
        }
    }
    return inlined;
}

/// Remove functions that nothing calls any more: what only they used is the packet function's own then.
void removeUncalled(Module &program) {
    for (bool again = true; again;) {
        again = false;
        for (Function &function : make_early_inc_range(program)) {
            function.removeDeadConstantUsers();
            if (!function.hasLocalLinkage() || !function.use_empty()) continue;
            function.eraseFromParent();
            again = true;
        }
    }
}

} // namespace

Specialised specialise(Function &packet, Frozen &frozen, ReduceLevel level, const UnrollLimits &limits) {
    Specialised done;
    done.inlined = inlineCalls(packet);
    done.instructionsBefore = packet.getInstructionCount();
    auto fold = [&] {
        // Folding one load may make the address of another constant, or a call through a pointer direct.
        for (bool again = true; again;) {
            propagateConstants(packet);
            unsigned loads = frozen.foldLoads(packet), calls = inlineCalls(packet);
            done.loadsFolded += loads, done.inlined += calls;
            again = loads || calls;
        }
    };
    fold();
    removeUncalled(*packet.getParent());
    if (level >= ReduceLevel::Layers) done.privates = makePrivate(packet);
    std::set<const BasicBlock *> kept;
    while (auto unrolled = unrollOne(packet, frozen, limits, kept)) {
        done.loops.push_back(*unrolled);
        fold();
    }
    simplify(packet);
    fold();
    done.instructionsAfter = packet.getInstructionCount();
    return done;
}

} // namespace catena
