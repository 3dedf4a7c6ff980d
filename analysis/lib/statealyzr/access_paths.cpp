// From a pointer back to where the program got it. Each kind of value has one way back.
#include "statealyzr/access_paths.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

const Value *AccessPaths::base(const Value *pointer) {
    while (true) {
        const auto *step = dyn_cast<GEPOperator>(pointer);
        if (step && step->hasAllConstantIndices())
            pointer = step->getPointerOperand();
        else if (const auto *cast = dyn_cast<CastInst>(pointer))
            pointer = cast->getOperand(0);
        else
            break;
    }
    if (const auto *load = dyn_cast<LoadInst>(pointer))
        if (const Value *cell = base(load->getPointerOperand()); isa<AllocaInst>(cell)) return cell;
    return pointer;
}

const AccessPath &AccessPaths::of(const Value *pointer) {
    auto [at, isNew] = known.try_emplace(pointer);
    if (!isNew) return at->second;
    AccessPath path;
    SmallPtrSet<const Value *, 16> seen;
    SmallVector<const Value *, 16> work{pointer};
    while (!work.empty()) {
        const Value *value = work.pop_back_val();
        if (!seen.insert(value).second) continue;
        if (isa<GlobalVariable>(value) || isa<AllocaInst>(value)) {
            path.roots.insert(value);
        } else if (const auto *step = dyn_cast<GEPOperator>(value)) {
            work.push_back(step->getPointerOperand());
        } else if (const auto *load = dyn_cast<LoadInst>(value)) {
            const Value *from = base(load->getPointerOperand());
            path.through.insert(from);
            work.push_back(load->getPointerOperand());
            if (isa<AllocaInst>(from))
                for (const User *user : from->users())
                    if (const auto *store = dyn_cast<StoreInst>(user); store && store->getPointerOperand() == from)
                        work.push_back(store->getValueOperand());
        } else if (const auto *parameter = dyn_cast<Argument>(value)) {
            for (const CallBase *call : calls.callersOf(parameter->getParent()))
                if (is_contained(pointsTo.callees(*call), parameter->getParent()) &&
                    parameter->getArgNo() < call->arg_size())
                    work.push_back(call->getArgOperand(parameter->getArgNo()));
        } else if (const auto *call = dyn_cast<CallBase>(value)) {
            for (const Function *callee : pointsTo.callees(*call)) {
                if (callee->isDeclaration())
                    for (const Use &given : call->args()) work.push_back(given.get());
                for (const BasicBlock &block : *callee)
                    if (const auto *end = dyn_cast<ReturnInst>(block.getTerminator()); end && end->getReturnValue())
                        work.push_back(end->getReturnValue());
            }
        } else if (const auto *user = dyn_cast<User>(value); user && !isa<Function>(value)) {
            // Merged values, casts, sums: from any operand.
            for (const Use &operand : user->operands()) work.push_back(operand.get());
        }
        if (const Value *stands = base(value); stands != base(pointer)) path.through.insert(stands);
    }
    return known[pointer] = std::move(path);
}

} // namespace catena
