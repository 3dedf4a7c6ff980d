// Algorithm 2 (Deng and Wu, NFReducer):
//
//      2 initialize code set CS = {}
//      3 for each instruction in acS do
//      4     CS = CS U PROGRAMSLICING(instruction, S)
//      5 end for
//      6 S' <- MERGECODE(CS)
//
// The slices of several actions are the slice of all at once. acS are the calls that send packets; what they depend on
// of state is in their slice with all that updates it. What ends the program, or goes to the device, belongs to it too:
// packets after it depend on that. "We recommend having the developers or operators inspect to decide whether to
// eliminate this kind of unrelated program logic": whatever else can be noticed is an action as well unless the user
// says that it is to be dropped.
#include "reduce/irrelevant.h"

#include "dependence/exits.h"
#include "dependence/graph_builder.h"
#include "dependence/slice.h"
#include "program/bitcode.h"
#include "program/promotion.h"
#include "reduce/statement_kinds.h"
#include "statealyzr/loop_procedures.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

const char *const leftOutMark = "catena.left.out";

namespace {

/// Where a statement stands, in the function that it was inlined from.
Place sourcePlace(const Instruction &instruction) {
    Place place = placeOf(instruction);
    if (const DILocation *at = instruction.getDebugLoc())
        if (const DISubprogram *function = at->getScope()->getSubprogram()) place.function = function->getName().str();
    return place;
}

/// A question whether an allocation failed, and the answer that it did not.
struct AllocationCheck {
    ICmpInst *question;
    CallBase *allocation;
    Constant *answer;
};

/// Find such questions. What is done if memory is short counts only where the allocation is kept: a program is not kept
/// from dropping what it allocates by that it would end without.
std::vector<AllocationCheck> allocationChecks(Function &function, const LibraryEffects &library) {
    std::vector<AllocationCheck> checks;
    for (Instruction &instruction : instructions(function)) {
        auto *question = dyn_cast<ICmpInst>(&instruction);
        if (!question || !question->isEquality() || !isa<ConstantPointerNull>(question->getOperand(1))) continue;
        auto *allocation = dyn_cast<CallBase>(question->getOperand(0));
        const Function *callee = allocation ? allocation->getCalledFunction() : nullptr;
        const std::vector<Effect> *effects =
            callee && callee->isDeclaration() ? library.find(callee->getName()) : nullptr;
        if (!effects || none_of(*effects, [](const Effect &effect) { return effect.kind == Effect::ReturnsFresh; }))
            continue;
        bool unequal = question->getPredicate() == CmpInst::ICMP_NE;
        checks.push_back({question, allocation, ConstantInt::getBool(question->getType(), unequal)});
    }
    return checks;
}

/// Whether a statement stands in a line that the user named, by the file's name or by the end of its path.
bool standsIn(const Instruction &instruction, const Place &line) {
    Place at = sourcePlace(instruction);
    return at.line == line.line && (at.file == line.file || StringRef(at.file).ends_with("/" + line.file));
}

class Finder {
public:
    /// The allocations of `checks` are taken to succeed.
    Finder(Function &packet, const Reception &reception, const AnalysisOptions &options, const ExtractionChoice &choice,
           const std::vector<AllocationCheck> &checks)
        : packet(packet), choice(choice), copy(CloneModule(*packet.getParent(), map)),
          inside(*cast<Function>(map[&packet])), checks(checks),
          pointsTo(promoted(answered()), options.library, {true, true}), calls(*copy, pointsTo), graph(*copy, pointsTo),
          exits(*copy, pointsTo), kinds(inside, pointsTo, calls, options.functions, exits, graph, reception) {}

    Expected<PacketLogic> run() {
        for (const auto &[instruction, counterpart] : counterparts())
            if (auto statement = kinds.of(*counterpart)) statements.push_back({instruction, counterpart, *statement});
        wholeProgram();
        for (const Found &one : statements)
            if (one.kind.essential) add(criteria, one.kind.vertices);
        Slice packetSlice = slice();
        bool sends = kinds.sends();
        for (Found &one : statements) {
            // What gives back a block goes or stays with what allocates it.
            one.listed = !one.kind.essential && !one.kind.givesBack && !reaches(packetSlice, *one.counterpart);
            one.asked = one.listed && isDropped(one);
            if (!one.asked && !one.kind.givesBack) add(criteria, one.kind.vertices);
            sends |= one.listed && !one.asked;
        }
        PacketLogic logic;
        if (Error error = check(sends)) return std::move(error);
        Slice kept = slice();
        report(kept, logic.found);
        if (logic.found.drops())
            for (const auto &[instruction, counterpart] : counterparts())
                if (!reaches(kept, *counterpart) && isRemovable(*counterpart)) logic.outside.push_back(instruction);
        for (const AllocationCheck &check : checks)
            if (const auto *allocation = counterpartOf(*check.allocation); allocation && reaches(kept, *allocation))
                keptChecks.push_back(check);
            else
                logic.succeeded.push_back({check.question, check.answer});
        return logic;
    }

    /// The checks of `checks` whose allocations are kept after all.
    const std::vector<AllocationCheck> &checksOfKept() const { return keptChecks; }

private:
    /// The copy, in which allocations are known to succeed.
    Module &answered() {
        for (const AllocationCheck &check : checks) {
            auto *question = cast<Instruction>(static_cast<Value *>(map[check.question]));
            for (Use &use : make_early_inc_range(question->uses())) use.set(check.answer);
        }
        return *copy;
    }

    struct Found {
        Instruction *instruction;
        const Instruction *counterpart;
        Statement kind;
        /// Whether it is outside the slice of what sends packets, and whether the user wants it to be dropped.
        bool listed = false, asked = false;
    };

    static const Module &promoted(Module &program) {
        promoteLocals(program, {});
        return program;
    }

    static void add(std::vector<Vertex> &to, const std::vector<Vertex> &more) {
        to.insert(to.end(), more.begin(), more.end());
    }

    /// The instructions of the packet function with those of the copy, which lost what promotion made constant.
    std::vector<std::pair<Instruction *, const Instruction *>> counterparts() {
        std::vector<std::pair<Instruction *, const Instruction *>> pairs;
        for (Instruction &instruction : instructions(packet))
            if (const Instruction *other = counterpartOf(instruction)) pairs.push_back({&instruction, other});
        return pairs;
    }

    const Instruction *counterpartOf(const Instruction &instruction) {
        auto found = map.find(&instruction);
        Value *value = found == map.end() ? nullptr : static_cast<Value *>(found->second);
        const auto *other = dyn_cast_or_null<Instruction>(value);
        bool same = other && other->getOpcode() == instruction.getOpcode() && other->getFunction() == &inside;
        return same ? other : nullptr;
    }

    bool reaches(const Slice &slice, const Instruction &instruction) const {
        Vertex vertex = graph.of(&instruction);
        if (vertex != noVertex && slice.contains(vertex)) return true;
        const auto *call = dyn_cast<CallBase>(&instruction);
        return call && graph.ofCall(call) != noVertex && slice.contains(graph.ofCall(call));
    }

    static bool isRemovable(const Instruction &instruction) {
        if (const auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
            intrinsic && !isa<MemIntrinsic, AssumeInst>(intrinsic) && !intrinsic->onlyReadsMemory())
            return false;
        return instruction.isTerminator() ? instruction.getNumSuccessors() > 1 : !isa<AllocaInst>(instruction);
    }

    /// What counts wherever it stands: what sends packets, and what ends the program and how.
    void wholeProgram() {
        for (const Function &function : *copy)
            for (const Instruction &instruction : instructions(function)) {
                const auto *call = dyn_cast<CallBase>(&instruction);
                if (call && kinds.isEssential(*call)) add(criteria, kinds.verticesOf(*call));
            }
        if (const Function *main = copy->getFunction("main")) criteria.push_back(graph.resultOf(main));
        for (const Instruction &instruction : instructions(inside))
            if (const auto *cell = dyn_cast<AllocaInst>(&instruction);
                isa<ReturnInst>(instruction) || (cell && !cell->isStaticAlloca()))
                criteria.push_back(graph.of(&instruction));
    }

    /// The slice of the criteria, with what it brings along: functions that are called are kept whole, blocks that are
    /// kept are given back as before, and a branch whose ways never meet stays.
    Slice slice() {
        PostDominatorTree tree(inside);
        while (true) {
            Slice found(graph, criteria, Slice::Backward);
            size_t before = criteria.size();
            for (const Instruction &instruction : instructions(inside)) {
                if (reaches(found, instruction)) {
                    if (const auto *call = dyn_cast<CallBase>(&instruction); call && whole.insert(call).second)
                        add(criteria, kinds.wholeOf(*call));
                    continue;
                }
                if (instruction.isTerminator() && instruction.getNumSuccessors() > 1) {
                    const auto *node = tree.getNode(instruction.getParent());
                    if (!node || !node->getIDom() || !node->getIDom()->getBlock())
                        criteria.push_back(graph.of(&instruction));
                }
            }
            for (const Found &one : statements)
                if (one.kind.givesBack && !reaches(found, *one.counterpart) && givesBackKept(one, found))
                    add(criteria, one.kind.vertices);
            if (criteria.size() == before) return found;
        }
    }

    /// Whether a statement gives back a block that something else than dropped statements of this function allocates.
    bool givesBackKept(const Found &one, const Slice &kept) const {
        for (const Use &argument : cast<CallBase>(one.counterpart)->args()) {
            if (!argument->getType()->isPointerTy()) continue;
            for (Location location : pointsTo.of(argument)) {
                const auto *site = dyn_cast_or_null<Instruction>(pointsTo.memory().objectOf(location).site);
                if (!site || site->getFunction() != &inside || reaches(kept, *site)) return true;
            }
        }
        return false;
    }

    bool isDropped(const Found &one) const {
        for (const Place &line : choice.kept)
            if (standsIn(*one.instruction, line)) return false;
        return all_of(one.kind.purposes, [&](Purpose purpose) { return choice.dropped.count(purpose); });
    }

    Error check(bool sends) const {
        for (const Place &line : choice.kept)
            if (none_of(statements, [&](const Found &one) { return one.listed && standsIn(*one.instruction, line); }))
                return failure("--keep " + line.file + ":" + Twine(line.line) +
                               ": no statement that could be dropped stands there; the report lists those that could");
        if (none_of(statements, [](const Found &one) { return one.asked; })) return Error::success();
        if (!sends)
            return failure("no statement of the packet function is known to send packets, so that nothing would be "
                           "left: name what does in a list with `send NAME`, --functions FILE, or keep more");
        bool locks = any_of(
            statements, [](const Found &one) { return one.asked && is_contained(one.kind.purposes, Purpose::Locks); });
        if (locks && kinds.threads()) return failure("the program starts threads, which need its locks: --keep locks");
        for (const Instruction &instruction : instructions(packet))
            if (instruction.isEHPad() || isa<InvokeInst, IndirectBrInst, CallBrInst>(instruction))
                return failure("nothing can be dropped from a packet function with exceptions or computed jumps (" +
                               sourcePlace(instruction).file + ":" + Twine(sourcePlace(instruction).line) + ")");
        return Error::success();
    }

    void report(const Slice &kept, Extraction &found) {
        std::vector<Vertex> dropped;
        for (const Found &one : statements) {
            if (!one.listed) continue;
            auto fate = IrrelevantStatement::Kept;
            if (one.asked) {
                bool needed = reaches(kept, *one.counterpart);
                fate = needed ? IrrelevantStatement::Needed : IrrelevantStatement::Dropped;
                if (!needed) {
                    add(dropped, one.kind.vertices);
                    found.leftOut.add(one.kind.writes, pointsTo.memory());
                    if (one.kind.output) mark(*one.instruction);
                }
            }
            found.statements.push_back({one.kind.purposes[0], sourcePlace(*one.instruction), one.kind.what, fate});
        }
        if (dropped.empty()) return;
        // A log at the end that shows what is no longer counted.
        std::vector<const CallBase *> receptions;
        for (const Instruction &instruction : instructions(*copy->getFunction(kinds.loopProcedure())))
            if (const auto *call = dyn_cast<CallBase>(&instruction); call && call->getMetadata("catena.reception"))
                receptions.push_back(call);
        ExecutedAfter after(calls, *copy, receptions);
        Slice shown(graph, dropped, Slice::Forward);
        for (Function &function : *packet.getParent())
            for (Instruction &instruction : instructions(function)) {
                auto *call = dyn_cast_or_null<CallBase>(static_cast<Value *>(map.lookup(&instruction)));
                if (&function == &packet || !call || onlyFromPacket(*call->getFunction()) || !reaches(shown, *call) ||
                    !after.contains(call))
                    continue;
                auto statement = kinds.of(*call);
                if (!statement || statement->essential || !statement->output) continue;
                mark(instruction);
                found.showing.push_back(
                    {statement->purposes[0], sourcePlace(instruction), statement->what, IrrelevantStatement::Kept});
            }
    }

    /// Whether only the packet function calls a function: it goes with what is dropped there.
    bool onlyFromPacket(const Function &function) const {
        const auto &callers = calls.callersOf(&function);
        return !callers.empty() &&
               all_of(callers, [&](const CallBase *call) { return call->getFunction() == &inside; });
    }

    static void mark(Instruction &instruction) {
        instruction.setMetadata(leftOutMark, MDNode::get(instruction.getContext(), {}));
    }

    Function &packet;
    const ExtractionChoice &choice;
    ValueToValueMapTy map;
    std::unique_ptr<Module> copy;
    Function &inside;
    const std::vector<AllocationCheck> &checks;
    std::vector<AllocationCheck> keptChecks;
    PointsTo pointsTo;
    CallGraph calls;
    Graph graph;
    AbruptExits exits;
    StatementKinds kinds;
    std::vector<Found> statements;
    std::vector<Vertex> criteria;
    std::set<const CallBase *> whole;
};

} // namespace

StringRef name(Purpose purpose) {
    switch (purpose) {
    case Purpose::Log:
        return "log";
    case Purpose::Locks:
        return "locks";
    case Purpose::Statistics:
        return "statistics";
    case Purpose::Time:
        return "time";
    case Purpose::Other:
        return "other";
    }
    return "";
}

namespace {

const Purpose *purposeOf(StringRef word) {
    const auto *found = find_if(allPurposes, [&](Purpose purpose) { return name(purpose) == word; });
    return found == std::end(allPurposes) ? nullptr : found;
}

} // namespace

Error ExtractionChoice::drop(StringRef words) {
    for (StringRef word : split(words, ',')) {
        if (word == "all")
            dropped.insert(std::begin(allPurposes), std::end(allPurposes));
        else if (const Purpose *purpose = purposeOf(word))
            dropped.insert(*purpose);
        else
            return failure("--drop " + word + ": this is none of log, locks, statistics, time, other, all");
    }
    return Error::success();
}

Error ExtractionChoice::keep(StringRef words) {
    for (StringRef word : split(words, ',')) {
        auto [file, line] = word.rsplit(':');
        Place place{file.str(), 0, ""};
        if (const Purpose *purpose = purposeOf(word))
            dropped.erase(*purpose);
        else if (!file.empty() && !line.empty() && !line.getAsInteger(10, place.line))
            kept.push_back(place);
        else
            return failure("--keep " + word +
                           ": this is none of log, locks, statistics, time, other, and no line FILE:LINE");
    }
    return Error::success();
}

Expected<PacketLogic> findPacketLogic(Function &packet, const Reception &reception, const AnalysisOptions &options,
                                      const ExtractionChoice &choice) {
    auto checks = allocationChecks(packet, options.library);
    while (true) {
        for (Function &function : *packet.getParent())
            for (Instruction &instruction : instructions(function)) instruction.setMetadata(leftOutMark, nullptr);
        Finder finder(packet, reception, options, choice, checks);
        auto logic = finder.run();
        if (!logic || !logic->found.drops() || finder.checksOfKept().empty()) return logic;
        // What is kept is kept with what happens if it fails, which may need more.
        erase_if(checks, [&](const AllocationCheck &check) {
            return any_of(finder.checksOfKept(),
                          [&](const AllocationCheck &kept) { return kept.question == check.question; });
        });
    }
}

} // namespace catena
