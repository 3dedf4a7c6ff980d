// "NFReducer unrolls a loop by cloning its loop body and functions called from the loop" (Deng and Wu, NFReducer,
// section III-B): here functions are cloned into the packet function where it stays of a size that LLVM's passes and
// the solver can work on, and beside it where it does not.
#include "reduce/callees.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>

using namespace llvm;

namespace catena {

namespace {

/// What inlining may grow the packet function to, in instructions.
constexpr unsigned mostInlined = 20000;

/// Return the function with code that a call names.
Function *namedBy(const CallBase &call) {
    Function *callee = call.getCalledFunction();
    return callee && !callee->isDeclaration() ? callee : nullptr;
}

/// Return a function and after it all that it calls by name, directly or by one another.
SetVector<Function *> withCallees(Function &packet) {
    SetVector<Function *> functions;
    functions.insert(&packet);
    for (unsigned i = 0; i < functions.size(); ++i)
        for (Instruction &instruction : instructions(*functions[i]))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (Function *callee = namedBy(*call)) functions.insert(callee);
    return functions;
}

/// How large a callee is; nothing for one that is not inlined.
std::optional<unsigned> inlinedSize(const Function &callee) {
    if (callee.isVarArg()) return std::nullopt;
    for (const Instruction &instruction : instructions(callee))
        if (const auto *call = dyn_cast<CallBase>(&instruction); call && call->getCalledFunction() == &callee)
            return std::nullopt;
    return callee.getInstructionCount();
}

bool isCallIn(const Use &use, const SetVector<Function *> &functions, const SmallPtrSetImpl<Function *> &except) {
    const auto *call = dyn_cast<CallBase>(use.getUser());
    if (!call || !call->isCallee(&use)) return false;
    auto *caller = const_cast<Function *>(call->getFunction());
    return functions.contains(caller) && !except.contains(caller);
}

} // namespace

unsigned inlineCalls(Function &packet) {
    // Counted along: to count all instructions again after each call would take longer than all the rest.
    unsigned inlined = 0, size = packet.getInstructionCount();
    std::map<const Function *, std::optional<unsigned>> sizes;
    SmallVector<CallBase *> calls;
    auto open = [&](auto &&found) {
        for (CallBase *call : reverse(found))
            if (Function *callee = namedBy(*call); callee && callee != &packet) calls.push_back(call);
    };
    SmallVector<CallBase *> all;
    for (Instruction &instruction : instructions(packet))
        if (auto *call = dyn_cast<CallBase>(&instruction)) all.push_back(call);
    open(all);
    while (!calls.empty() && size < mostInlined) {
        CallBase *call = calls.pop_back_val();
        const Function *callee = namedBy(*call);
        auto [known, isNew] = sizes.try_emplace(callee, std::nullopt);
        if (isNew) known->second = inlinedSize(*callee);
        if (!known->second) continue;
        InlineFunctionInfo info;
        if (!InlineFunction(*call, info).isSuccess()) continue;
        ++inlined;
        size += *known->second;
        open(info.InlinedCallSites);
    }
    return inlined;
}

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

std::vector<Function *> ownCallees(Function &packet) {
    SetVector<Function *> functions = withCallees(packet);
    // What others use keeps calling what it calls, so that is used by others too.
    SmallPtrSet<Function *, 32> shared;
    for (bool again = true; again;) {
        again = false;
        for (Function *function : functions)
            if (function != &packet && !shared.contains(function) &&
                any_of(function->uses(), [&](const Use &use) { return !isCallIn(use, functions, shared); }))
                again |= shared.insert(function).second;
    }
    std::map<Function *, Function *> copies;
    std::vector<Function *> own;
    for (Function *function : functions) {
        if (function == &packet) continue;
        if (shared.contains(function)) {
            ValueToValueMapTy map;
            Function *copy = CloneFunction(function, map);
            copy->setName(function->getName() + ".packet");
            copy->setLinkage(GlobalValue::InternalLinkage);
            copies[function] = copy;
            function = copy;
        }
        own.push_back(function);
    }
    auto redirect = [&](Function &caller) {
        for (Instruction &instruction : instructions(caller))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (auto copy = copies.find(call->getCalledFunction()); copy != copies.end())
                    call->setCalledFunction(copy->second);
    };
    redirect(packet);
    for (Function *function : own) redirect(*function);
    return own;
}

unsigned propagateArguments(ArrayRef<Function *> callees) {
    unsigned replaced = 0;
    for (Function *callee : callees)
        for (Argument &parameter : callee->args()) {
            if (parameter.use_empty() || parameter.hasPassPointeeByValueCopyAttr()) continue;
            Constant *same = nullptr;
            bool alike = all_of(callee->users(), [&](const User *user) {
                const auto *call = cast<CallBase>(user);
                // Within itself it passes on what it got.
                Value *passed =
                    parameter.getArgNo() < call->arg_size() ? call->getArgOperand(parameter.getArgNo()) : nullptr;
                if (passed == &parameter) return true;
                auto *constant = dyn_cast_or_null<Constant>(passed);
                if (!constant || constant->getType() != parameter.getType() || (same && same != constant)) return false;
                same = constant;
                return true;
            });
            if (!alike || !same) continue;
            parameter.replaceAllUsesWith(same);
            ++replaced;
        }
    return replaced;
}

unsigned instructionsWithCallees(const Function &packet) {
    unsigned count = 0;
    for (const Function *function : withCallees(const_cast<Function &>(packet)))
        count += function->getInstructionCount();
    return count;
}

} // namespace catena
