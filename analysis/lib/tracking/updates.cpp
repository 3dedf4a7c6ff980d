// §4.4.2 of Khalid's dissertation: "We create a unique updated bit for each top-level variable and we set the
// appropriate bit before any statement that updates a value that may be reachable from the corresponding variable. We
// use the same analysis discussed in §4.3.2 to determine where to insert statements to set updated bits." Bits are
// those of the updateable variables only: the others' would never be set.
#include "tracking/updates.h"

#include "tracking/pruning.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

namespace {

/// Says where packets end: before a reception, and while a function runs that leads to one.
class PacketEnds {
public:
    explicit PacketEnds(const StateFindings &findings) : findings(findings) {
        std::vector<const Function *> work;
        for (const PacketCall &receive : findings.receives) {
            bool back = any_of(receive.function->packets,
                               [](const PacketPlace &place) { return place.kind == PacketPlace::CallbackParameter; });
            note(receive.call, back ? Forgets::After : Forgets::Before);
            work.push_back(receive.call->getFunction());
        }
        DenseSet<const Function *> seen;
        while (!work.empty()) {
            const Function *function = work.back();
            work.pop_back();
            if (!seen.insert(function).second) continue;
            for (const CallBase *caller : findings.calls.callersOf(function)) {
                note(caller, Forgets::After);
                work.push_back(caller->getFunction());
            }
        }
    }

    Forgets operator()(const Instruction &instruction) const {
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (!call) return Forgets::No;
        // longjmp comes back to setjmp from anywhere.
        if (call->hasFnAttr(Attribute::ReturnsTwice)) return Forgets::After;
        auto found = ends.find(call);
        return found == ends.end() ? Forgets::No : found->second;
    }

private:
    void note(const CallBase *call, Forgets forgets) {
        if (const CallBase *original = findings.inOriginal(call)) {
            Forgets &at = ends[original];
            at = std::max(at, forgets);
        }
    }

    const StateFindings &findings;
    DenseMap<const CallBase *, Forgets> ends;
};

} // namespace

std::vector<Update> findUpdates(const StateFindings &findings) {
    std::vector<const Variable *> updateable;
    for (const Variable &variable : findings.report.variables)
        if (variable.updateable) updateable.push_back(&variable);
    std::vector<Update> updates;
    BitsOf bitsOf;
    // Many statements write the same set of locations.
    DenseMap<const SparseSet *, std::vector<unsigned>> bySet;
    for (const MemoryStatement &statement : findings.statements.all) {
        auto [known, isNew] = bySet.try_emplace(statement.writes);
        for (unsigned bit = 0; isNew && bit < updateable.size(); ++bit)
            if (statement.writes->intersects(updateable[bit]->reach)) known->second.push_back(bit);
        std::vector<unsigned> bits = known->second;
        Instruction *original = bits.empty() ? nullptr : findings.inOriginal(statement.instruction);
        if (!original) continue;
        bitsOf[original] = bits;
        updates.push_back({original, std::move(bits)});
    }
    PacketEnds ends(findings);
    // Calls that are only made before the first packet.
    DenseSet<const CallBase *> initialization;
    for (const Function &function : findings.analysed)
        for (const Instruction &instruction : instructions(function))
            if (const auto *call = dyn_cast<CallBase>(&instruction); call && !findings.executed.contains(call))
                if (const CallBase *original = findings.inOriginal(call)) initialization.insert(original);
    BitsOf pruned = bitsSetBefore({findings.original, bitsOf, static_cast<unsigned>(updateable.size()), ends,
                                   [&](const CallBase &call) { return !initialization.contains(&call); }});
    for (Update &update : updates)
        if (auto found = pruned.find(update.statement); found != pruned.end()) update.pruned = found->second;
    return updates;
}

} // namespace catena
