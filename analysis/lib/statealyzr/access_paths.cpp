// From a pointer back to where the program got it. Each kind of value has one way back.
#include "statealyzr/access_paths.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PointerIntPair.h"
#include "llvm/IR/IntrinsicInst.h"
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

const std::vector<const Value *> &AccessPaths::storedIn(const AllocaInst *cell) {
    auto [at, isNew] = stored.try_emplace(cell);
    std::vector<const Value *> &values = at->second;
    if (!isNew) return values;
    SmallPtrSet<const Value *, 8> seen;
    SmallVector<const Value *, 8> work{cell};
    while (!work.empty()) {
        const Value *address = work.pop_back_val();
        if (!seen.insert(address).second) continue;
        for (const Use &use : address->uses()) {
            const User *user = use.getUser();
            if (isa<GEPOperator>(user) || isa<CastInst>(user) || isa<PHINode>(user) || isa<SelectInst>(user))
                work.push_back(user);
            else if (const auto *store = dyn_cast<StoreInst>(user); store && store->getPointerOperand() == address)
                values.push_back(store->getValueOperand());
            else if (const auto *copy = dyn_cast<MemTransferInst>(user); copy && copy->getRawDest() == address)
                values.push_back(copy->getRawSource());
            else if (const auto *call = dyn_cast<CallBase>(user); call && call->isArgOperand(&use))
                for (const Function *callee : pointsTo.callees(*call))
                    if (unsigned number = call->getArgOperandNo(&use); number < callee->arg_size())
                        work.push_back(callee->getArg(number));
        }
    }
    return values;
}

std::vector<const Value *> AccessPaths::givenTo(const Argument &parameter, const CallBase &call) const {
    std::vector<const Value *> given;
    const Function *function = parameter.getParent();
    unsigned number = parameter.getArgNo();
    if (is_contained(pointsTo.callees(call), function) && number < call.arg_size())
        given.push_back(call.getArgOperand(number));
    for (const Callback &callback : pointsTo.callbacks(call))
        if (callback.function == function && number < callback.arguments.size())
            if (int argument = callback.arguments[number]; argument >= 0 && unsigned(argument) < call.arg_size())
                given.push_back(call.getArgOperand(argument));
    return given;
}

const AccessPath &AccessPaths::of(const Value *pointer) {
    auto [at, isNew] = known.try_emplace(pointer);
    if (!isNew) return at->second;
    AccessPath path;
    // With each value, whether something is loaded through it.
    using Place = PointerIntPair<const Value *, 1, bool>;
    DenseSet<Place> seen;
    SmallVector<Place, 16> work{{pointer, false}};
    while (!work.empty()) {
        Place place = work.pop_back_val();
        if (!seen.insert(place).second) continue;
        const Value *value = place.getPointer();
        auto follow = [&](const Value *from) { work.push_back({from, place.getInt()}); };
        if (isa<GlobalVariable>(value)) {
            path.roots.insert(value);
        } else if (const auto *cell = dyn_cast<AllocaInst>(value)) {
            path.roots.insert(value);
            if (place.getInt())
                for (const Value *kept : storedIn(cell)) follow(kept);
        } else if (const auto *step = dyn_cast<GEPOperator>(value)) {
            follow(step->getPointerOperand());
        } else if (const auto *load = dyn_cast<LoadInst>(value)) {
            path.through.insert(base(load->getPointerOperand()));
            work.push_back({load->getPointerOperand(), true});
        } else if (const auto *parameter = dyn_cast<Argument>(value)) {
            for (const CallBase *call : calls.callersOf(parameter->getParent()))
                for (const Value *given : givenTo(*parameter, *call)) follow(given);
        } else if (const auto *call = dyn_cast<CallBase>(value)) {
            const Function *named = namedCallee(*call);
            if (named && named->isIntrinsic())
                for (const Use &given : call->args()) follow(given.get());
            for (const Function *callee : pointsTo.callees(*call)) {
                if (callee->isDeclaration())
                    for (const Use &given : call->args()) follow(given.get());
                for (const BasicBlock &block : *callee)
                    if (const auto *end = dyn_cast<ReturnInst>(block.getTerminator()); end && end->getReturnValue())
                        follow(end->getReturnValue());
            }
        } else if (const auto *user = dyn_cast<User>(value); user && !isa<Function>(value)) {
            // Merged values, casts, sums: from any operand.
            for (const Use &operand : user->operands()) follow(operand.get());
        }
        if (const Value *stands = base(value); stands != base(pointer)) path.through.insert(stands);
    }
    return known[pointer] = std::move(path);
}

} // namespace catena
