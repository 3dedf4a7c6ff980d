// Spreading from the calls that throw and jump to the callers: a call that is no `invoke` passes exceptions on, and one
// that is passes long jumps on.
#include "dependence/exits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include <map>

using namespace llvm;

namespace catena {

AbruptExits::AbruptExits(const Module &program, const PointsTo &pointsTo) {
    enum How : uint8_t { throws = 1, jumps = 2 };
    std::map<const Function *, std::vector<const CallBase *>> callers;
    std::map<const Function *, uint8_t> leaves;
    std::vector<const Function *> work;
    auto leave = [&](const Function *function, uint8_t how) {
        uint8_t &known = leaves[function];
        if ((known | how) == known) return;
        known |= how;
        work.push_back(function);
    };
    for (const Function &function : program) {
        StringRef name = function.getName();
        if (is_contained({"__cxa_throw", "__cxa_rethrow"}, name)) leave(&function, throws);
        if (is_contained({"longjmp", "_longjmp", "siglongjmp"}, name)) leave(&function, jumps);
        for (const Instruction &instruction : instructions(function)) {
            if (isa<ResumeInst>(instruction)) leave(&function, throws);
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (!call) continue;
            for (const Function *callee : pointsTo.callees(*call)) callers[callee].push_back(call);
        }
    }
    while (!work.empty()) {
        const Function *function = work.back();
        work.pop_back();
        uint8_t how = leaves[function];
        for (const CallBase *call : callers[function]) {
            calls.insert(call);
            if (uint8_t passed = isa<InvokeInst>(call) ? how & jumps : how) leave(call->getFunction(), passed);
        }
    }
}

} // namespace catena
