// The order is that of Algorithm 3 (Deng and Wu, NFReducer): configuration is applied, constants are folded and
// propagated, and only then paths are looked at.
#include "reduce/specialise.h"

#include "reduce/callees.h"
#include "reduce/feasible.h"
#include "reduce/paths.h"
#include "reduce/simplify.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

namespace {

/// How much larger than before the packet function may be while paths are taken apart; small ones may grow to a bound.
constexpr unsigned pathsGrowth = 8, smallestBound = 4000;
/// How many merges are tried, and which part of a copy (one of so many) must become unneeded for it to be kept.
constexpr unsigned mostTries = 32, leastGain = 10;
/// How many instructions all tries may be of: LLVM's passes go over each of them several times.
constexpr unsigned mostTried = 400000;

void decideBranches(Function &packet, Specialised &done) {
    Feasibility found = removeInfeasible(packet);
    done.branchesDecided += found.decided;
    done.undecided = found.undecided;
}

/// Take paths apart where their copies become smaller by it; tried on a clone, since only LLVM's passes can tell.
void takePathsApart(Function &packet, Specialised &done) {
    propagateDecisions(packet);
    unsigned most = std::max(smallestBound, pathsGrowth * packet.getInstructionCount());
    unsigned passed = 0, tried = 0;
    for (unsigned tries = 0; tries < mostTries; ++tries) {
        ValueToValueMapTy map;
        Function *trial = CloneFunction(&packet, map);
        unsigned bound = std::min(most, mostTried - tried);
        unsigned copied = splitOne(*trial, bound, passed);
        tried = std::min(mostTried, tried + trial->getInstructionCount());
        if (copied) propagateDecisions(*trial);
        bool gains = trial->getInstructionCount() + copied / leastGain <= packet.getInstructionCount() + copied;
        trial->eraseFromParent();
        if (!copied) break;
        if (!gains) {
            ++passed;
            continue;
        }
        splitOne(packet, bound, passed);
        propagateDecisions(packet);
        ++done.pathsSplit;
    }
}

/// Do in what the packet function still calls what was done in itself: functions of their own code, bounded together.
void specialiseCallees(Function &packet, Frozen &frozen, const UnrollLimits &limits, Specialised &done) {
    std::set<const BasicBlock *> kept;
    for (bool again = true; again;) {
        // What is folded may make a call direct, whose callee is one more; or take away what called one.
        removeUncalled(*packet.getParent());
        std::vector<Function *> callees = ownCallees(packet);
        again = propagateArguments(callees);
        for (Function *callee : callees) {
            auto fold = [&] {
                propagateConstants(*callee);
                unsigned loads = frozen.foldLoads(*callee);
                done.loadsFolded += loads;
                again |= loads != 0;
                return loads;
            };
            while (fold()) {
            }
            UnrollLimits left = limits;
            unsigned others = instructionsWithCallees(packet) - callee->getInstructionCount();
            left.instructions = limits.instructions > others ? limits.instructions - others : 0;
            while (auto unrolled = unrollOne(*callee, frozen, left, kept)) {
                done.loops.push_back(*unrolled);
                again |= !unrolled->kept;
                while (fold()) {
                }
            }
        }
    }
}

} // namespace

void specialise(Function &packet, Frozen &frozen, ReduceLevel level, const UnrollLimits &limits,
                const std::set<std::string> &temporaries, const ChainKnowledge *chain, RemovedLines &lines,
                Specialised &done) {
    auto fold = [&] {
        // Folding one load may make the address of another constant, or a call through a pointer direct.
        for (bool again = true; again;) {
            propagateConstants(packet);
            unsigned loads = level >= ReduceLevel::Constants ? frozen.foldLoads(packet) : 0;
            unsigned calls = inlineCalls(packet);
            done.loadsFolded += loads, done.inlined += calls;
            again = loads || calls;
        }
    };
    fold();
    removeUncalled(*packet.getParent());
    // "Duplicated logic elimination, then overwritten logic elimination, and finally unused logic elimination" (IV-C);
    // and once more, when less is left that reads what was written.
    auto consolidate = [&] {
        if (chain && level >= ReduceLevel::Duplicated)
            removeDuplicated(packet, *chain, done.consolidated, done.privates);
        auto written = lines.linesOf(packet);
        if (chain && level >= ReduceLevel::Overwritten)
            removeOverwritten(packet, *chain, done.consolidated, done.privates);
        return written;
    };
    auto apart = lines.linesOf(packet);
    auto written = consolidate();
    if (chain) {
        lines.step(written, packet, RemovalReason::Overwritten);
        lines.step(apart, packet, RemovalReason::Duplicated);
    }
    if (level < ReduceLevel::Constants) {
        simplify(packet);
        consolidate();
        done.removed = lines.removed();
        done.instructionsAfter = instructionsWithCallees(packet);
        return;
    }
    std::set<const BasicBlock *> kept;
    while (auto unrolled = unrollOne(packet, frozen, limits, kept)) {
        done.loops.push_back(*unrolled);
        fold();
    }
    specialiseCallees(packet, frozen, limits, done);
    fold();
    removeUncalled(*packet.getParent());
    lines.step(packet, RemovalReason::Configuration);
    auto unmerged = CloneModule(*packet.getParent());
    simplify(packet);
    fold();
    // Only now: as long as decoded fields are read from memory, comparisons with many rules become one; as terms of the
    // packet's bytes each would be simplified in its own way.
    if (level >= ReduceLevel::Layers) {
        for (const auto &[name, parts] : makePrivate(packet, temporaries)) done.privates[name] = parts;
        Function &same = *unmerged->getFunction(packet.getName());
        makePrivate(same, temporaries);
        propagateConstants(same);
        lines.step(same, RemovalReason::Layer);
        // A send that paths share is one place to move writes to; taken apart it is several.
        if (chain) {
            simplify(packet);
            consolidate();
        }
        if (level >= ReduceLevel::Paths) {
            takePathsApart(packet, done);
            fold();
            auto before = lines.linesOf(packet);
            decideBranches(packet, done);
            lines.step(before, packet, RemovalReason::Path);
        }
        simplify(packet);
        fold();
    }
    consolidate();
    if (chain) simplify(packet);
    done.removed = lines.removed();
    done.instructionsAfter = instructionsWithCallees(packet);
}

void inlineAll(Function &packet) {
    inlineCalls(packet);
    simplify(packet);
}

} // namespace catena
