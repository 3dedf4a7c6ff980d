// Climbing from receptions to packet loops.
#include "statealyzr/loop_procedures.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

std::vector<PacketCall> packetCalls(const Module &program, const PointsTo &pointsTo, const PacketFunctions &functions,
                                    PacketFunction::Kind kind) {
    std::vector<PacketCall> found;
    for (const Function &function : program)
        for (const Instruction &instruction : instructions(function)) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (!call || call->isInlineAsm()) continue;
            for (const Function *callee : pointsTo.callees(*call)) {
                const PacketFunction *listed = functions.find(callee->getName());
                if (!listed || listed->kind != kind) continue;
                found.push_back({call, listed, callee->getName().str()});
                break;
            }
        }
    return found;
}

SmallPtrSet<const BasicBlock *, 16> loopAround(const Instruction &call) {
    SmallPtrSet<const BasicBlock *, 16> blocks;
    DominatorTree tree(const_cast<Function &>(*call.getFunction()));
    LoopInfo loops(tree);
    if (const Loop *loop = loops.getLoopFor(call.getParent())) blocks.insert(loop->block_begin(), loop->block_end());
    return blocks;
}

namespace {

bool callsBack(const PacketCall &receive) {
    return any_of(receive.function->packets,
                  [](const PacketPlace &place) { return place.kind == PacketPlace::CallbackParameter; });
}

/// Return whether `target` is called only while `procedure` is: taking `procedure` away, nothing leads there any more.
bool alwaysBelow(const Function *procedure, const Function *target, const CallGraph &calls) {
    DenseSet<const Function *> seen;
    std::vector<const Function *> work{target};
    while (!work.empty()) {
        const Function *function = work.back();
        work.pop_back();
        if (function == procedure || !seen.insert(function).second) continue;
        // A root other than `procedure`: main, or what nobody calls.
        const auto &callers = calls.callersOf(function);
        if (callers.empty() || function->getName() == "main" || is_contained(calls.calledBack(), function))
            return false;
        for (const CallBase *call : callers) work.push_back(call->getFunction());
    }
    return true;
}

} // namespace

std::vector<LoopProcedure> loopProcedures(const Module &, const CallGraph &calls,
                                          const std::vector<PacketCall> &receives) {
    std::vector<LoopProcedure> found;
    auto add = [&](const CallBase *call) {
        for (LoopProcedure &procedure : found)
            if (procedure.function == call->getFunction()) {
                if (!is_contained(procedure.receives, call)) procedure.receives.push_back(call);
                return;
            }
        found.push_back({call->getFunction(), {call}});
    };
    SetVector<const CallBase *> climbing;
    DenseSet<const Function *> beyond;
    SmallPtrSet<const Function *, 16> receivers;
    for (const PacketCall &receive : receives) {
        receivers.insert(receive.call->getFunction());
        if (callsBack(receive))
            add(receive.call), beyond.insert(receive.call->getFunction());
        else
            climbing.insert(receive.call);
    }
    for (size_t i = 0; i < climbing.size(); ++i) {
        const CallBase *call = climbing[i];
        if (!loopAround(*call).empty()) {
            add(call);
            beyond.insert(call->getFunction());
            continue;
        }
        for (const CallBase *caller : calls.callersOf(call->getFunction())) {
            // Whoever calls a library that calls back whenever something arrives is in a loop of the library's.
            const Function *callee = namedCallee(*caller);
            if (callee && callee->isDeclaration())
                add(caller), beyond.insert(caller->getFunction());
            else
                climbing.insert(caller);
        }
    }
    // Outer loops: procedures that are on the stack whenever anything is received.
    SetVector<const CallBase *> outer;
    for (const Function *function : beyond)
        for (const CallBase *caller : calls.callersOf(function)) outer.insert(caller);
    DenseMap<const Function *, bool> always;
    for (size_t i = 0; i < outer.size(); ++i) {
        const Function *function = outer[i]->getFunction();
        auto [at, isNew] = always.try_emplace(function, false);
        if (isNew) at->second = all_of(receivers, [&](const Function *r) { return alwaysBelow(function, r, calls); });
        for (const CallBase *caller : calls.callersOf(function)) outer.insert(caller);
        if (always[function] && !loopAround(*outer[i]).empty()) add(outer[i]);
    }
    return found;
}

LoopProcedure namedLoop(const Function &function, const CallGraph &calls, const std::vector<PacketCall> &receives) {
    SmallPtrSet<const Function *, 16> receivers;
    for (const PacketCall &receive : receives) receivers.insert(receive.call->getFunction());
    LoopProcedure named{&function, {}};
    for (const Instruction &instruction : instructions(function)) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (!call) continue;
        bool itself = any_of(receives, [&](const PacketCall &receive) { return receive.call == call; });
        if (itself || any_of(calls.closure(calls.calledBy(call)),
                             [&](const Function *below) { return receivers.contains(below); }))
            named.receives.push_back(call);
    }
    return named;
}

} // namespace catena
