// From packet loops to the points at which a standby may take over.
#include "standby/packet_ends.h"

#include "program/bitcode.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

namespace {

/// Return the first instruction of a procedure behind its cells and what is noted of them.
Instruction *beginOf(Function &function) {
    Instruction *at = &*function.getEntryBlock().getFirstInsertionPt();
    while (isa<AllocaInst>(at)) at = at->getNextNode();
    return at;
}

Instruction *afterCall(CallBase &call) {
    if (auto *invoke = dyn_cast<InvokeInst>(&call)) return &*invoke->getNormalDest()->getFirstInsertionPt();
    return call.getNextNode();
}

bool callsBack(const PacketCall &receive) {
    return any_of(receive.function->packets,
                  [](const PacketPlace &place) { return place.kind == PacketPlace::CallbackParameter; });
}

/// Return whether another reception of the same loop comes first in every round.
bool comesLater(const CallBase *call, const std::vector<const CallBase *> &all) {
    auto &function = const_cast<Function &>(*call->getFunction());
    DominatorTree tree(function);
    auto around = loopAround(*call);
    return any_of(all, [&](const CallBase *other) {
        return other != call && around.contains(other->getParent()) && tree.dominates(other, call);
    });
}

Error checkThreads(const StateFindings &findings) {
    for (const Function &function : findings.analysed)
        for (const Instruction &instruction : instructions(function))
            if (const auto *call = dyn_cast<CallBase>(&instruction))
                for (const Callback &callback : findings.pointsTo.callbacks(*call))
                    if (callback.thread) {
                        Place place = placeOf(*call);
                        return failure(place.file + ":" + std::to_string(place.line) + ": a thread is started here; " +
                                       "a standby needs a program that processes one packet after the other");
                    }
    return Error::success();
}

Error checkRegisters(const CallBase *original) {
    DominatorTree tree(const_cast<Function &>(*original->getFunction()));
    LoopInfo loops(tree);
    const Loop *loop = loops.getLoopFor(original->getParent());
    if (!loop || loop->getHeader()->phis().empty()) return Error::success();
    return failure(original->getFunction()->getName() +
                   ": the variables of its packet loop are in registers, so this " +
                   "bitcode was optimized; build it with -O0, and optimize what comes out");
}

} // namespace

Expected<PacketEnds> packetEnds(const StateFindings &findings) {
    if (Error error = checkThreads(findings)) return std::move(error);
    DenseMap<const CallBase *, const PacketCall *> receives;
    for (const PacketCall &receive : findings.receives) receives[receive.call] = &receive;
    std::vector<const CallBase *> calls;
    SmallPtrSet<const Function *, 4> procedures;
    for (const LoopProcedure &loop : findings.loops) {
        append_range(calls, loop.receives);
        if (!loop.receives.empty()) procedures.insert(loop.function);
    }
    PacketEnds found;
    DenseMap<const Function *, unsigned> begun;
    for (const CallBase *call : calls) {
        // An outer loop: its inner ones say where packets end.
        auto below = findings.calls.closure(findings.calls.calledBy(call));
        bool back = receives.contains(call) && callsBack(*receives[call]);
        if (!back && any_of(procedures, [&](const Function *inner) { return below.contains(inner); })) continue;
        if (comesLater(call, calls)) continue;
        CallBase *original = findings.inOriginal(call);
        if (!original) continue;
        if (Error error = checkRegisters(original)) return std::move(error);
        unsigned reception = found.receptions.size();
        if (!back) {
            found.receptions.push_back(placeOf(*call));
            found.ends.push_back({original, reception});
            continue;
        }
        // Calls that give packets to the same function are one reception: only one of them is running.
        const auto &callbacks = findings.pointsTo.callbacks(*call);
        for (const Callback &callback : callbacks)
            if (auto known = begun.find(callback.function); known != begun.end()) reception = known->second;
        if (reception == found.receptions.size()) found.receptions.push_back(placeOf(*call));
        for (const Callback &callback : callbacks)
            if (Function *function = findings.inOriginal(callback.function))
                if (begun.try_emplace(callback.function, reception).second)
                    found.ends.push_back({beginOf(*function), reception});
        found.ends.push_back({afterCall(*original), reception, false});
    }
    if (found.ends.empty())
        return failure("there is no place where one packet ends and the next one is not received yet: packets are "
                       "received outside of loops. Name the procedure with the loop: --loop NAME");
    return std::move(found);
}

} // namespace catena
