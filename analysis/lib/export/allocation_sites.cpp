// The type of what malloc returns is what the program makes of it: the structs through whose members it is accessed,
// found by the points-to sets of those accesses.
#include "export/allocation_sites.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

namespace {

using Structs = SmallSetVector<StructType *, 2>;

/// Return whether a type is `part`, or holds it by value.
bool holds(Type *type, StructType *part) {
    if (type == part) return true;
    if (auto *array = dyn_cast<ArrayType>(type)) return holds(array->getElementType(), part);
    auto *structure = dyn_cast<StructType>(type);
    return structure && any_of(structure->elements(), [&](Type *element) { return holds(element, part); });
}

/// Return the one struct that all others are parts of, or null.
StructType *outermost(const Structs &structs) {
    for (StructType *whole : structs)
        if (all_of(structs, [&](StructType *part) { return holds(whole, part); })) return whole;
    return nullptr;
}

/// Return whether a function may return a pointer into what it has: behind a header of its own.
bool returnsInner(const Function &function) {
    SmallVector<const Value *, 8> work;
    SmallPtrSet<const Value *, 16> seen;
    for (const BasicBlock &block : function)
        if (const auto *end = dyn_cast<ReturnInst>(block.getTerminator())) work.push_back(end->getReturnValue());
    while (!work.empty()) {
        const Value *value = work.pop_back_val();
        if (!seen.insert(value).second) continue;
        if (isa<GetElementPtrInst>(value)) return true;
        if (const auto *joint = dyn_cast<PHINode>(value)) append_range(work, joint->incoming_values());
        if (const auto *choice = dyn_cast<SelectInst>(value)) append_range(work, choice->operands());
        // strcpy and the like return what they were given.
        if (const auto *call = dyn_cast<CallBase>(value)) append_range(work, call->args());
    }
    return false;
}

/// The calls that allocate below a function.
class Below {
public:
    explicit Below(const CallGraph &calls) : calls(calls) {}

    const SmallSetVector<const CallBase *, 4> &of(const Function *function) {
        auto [at, isNew] = known.try_emplace(function);
        if (!isNew) return at->second;
        SmallSetVector<const CallBase *, 4> found;
        for (const Function *inner : calls.closure({function}))
            for (const Instruction &instruction : instructions(*inner))
                if (const auto *call = dyn_cast<CallBase>(&instruction))
                    if (const Function *callee = namedCallee(*call); callee && allocates(callee->getName()))
                        found.insert(call);
        return known[function] = std::move(found);
    }

private:
    const CallGraph &calls;
    std::map<const Function *, SmallSetVector<const CallBase *, 4>> known;
};

} // namespace

bool allocates(StringRef function) {
    static const StringSet<> names = {
        "malloc",    "calloc",         "realloc", "reallocarray", "aligned_alloc",       "memalign",
        "valloc",    "strdup",         "strndup", "__strdup",     "__strndup",           "asprintf",
        "vasprintf", "posix_memalign", "_Znwm",   "_Znam",        "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
        "getline",   "getdelim",
    };
    return names.contains(function);
}

MapVector<CallBase *, AllocationSite> allocationSites(const StateFindings &findings) {
    const PointsTo &pointsTo = findings.pointsTo;
    const Memory &memory = pointsTo.memory();
    DenseMap<ObjectId, Structs> accessed;
    MapVector<CallBase *, AllocationSite> sites;
    for (const Function &function : findings.analysed)
        for (const Instruction &instruction : instructions(function)) {
            if (const auto *call = dyn_cast<CallBase>(&instruction))
                if (const Function *callee = namedCallee(*call); callee && allocates(callee->getName()))
                    if (CallBase *original = findings.inOriginal(call)) sites[original];
            const auto *member = dyn_cast<GetElementPtrInst>(&instruction);
            auto *structure = member ? dyn_cast<StructType>(member->getSourceElementType()) : nullptr;
            if (!structure || !structure->hasName()) continue;
            for (Location location : pointsTo.of(member->getPointerOperand()))
                accessed[memory.objectIdOf(location)].insert(structure);
        }
    struct Use {
        Structs structs;
        bool pointers = false, behindHeader = false;
        SparseSet locations = {};
    };
    MapVector<const CallBase *, Use> uses;
    SmallPtrSet<const CallBase *, 8> mixed, outer;
    DenseSet<const Function *> allocators;
    Below below(findings.calls);
    for (ObjectId id = 0; id < memory.objectCount(); ++id) {
        const Object &object = memory[id];
        const auto *call = object.kind == Object::Heap ? dyn_cast_or_null<CallBase>(object.site) : nullptr;
        const Function *callee = call ? namedCallee(*call) : nullptr;
        if (!callee) continue;
        if (!callee->isDeclaration()) {
            // Where an allocator allocates several objects, one of them is meant, and it cannot be said which.
            const auto &inner = below.of(callee);
            if (inner.size() != 1) {
                mixed.insert(inner.begin(), inner.end());
                continue;
            }
            outer.insert(call);
            for (const Function *inner : findings.calls.closure({callee})) allocators.insert(inner);
        } else if (!allocates(callee->getName())) {
            continue;
        }
        Use &use = uses[call];
        use.behindHeader |= !callee->isDeclaration() && returnsInner(*callee);
        use.structs.insert(accessed[id].begin(), accessed[id].end());
        for (Location location : pointsTo.locationsOf(object)) use.pointers |= !pointsTo.contents(location).empty();
        use.locations.add(pointsTo.locationsOf(object));
    }
    std::vector<const Variable *> updateable;
    for (const Variable &variable : findings.report.variables)
        if (variable.updateable) updateable.push_back(&variable);
    for (auto &[call, use] : uses) {
        CallBase *original = findings.inOriginal(call);
        if (!original || mixed.contains(call)) continue;
        // What is allocated within an allocator is known by the call of it, or else not at all.
        if (allocators.contains(call->getFunction())) continue;
        AllocationSite &site = sites[original];
        site.outer = outer.contains(call);
        for (auto [rank, variable] : enumerate(updateable))
            if (variable->entries.intersects(use.locations)) site.entryOf.push_back(static_cast<unsigned>(rank));
        if (!use.pointers)
            site.treatment = Treatment::Bytes;
        else if (StructType *whole = use.behindHeader ? nullptr : outermost(use.structs))
            site.treatment = Treatment::Typed, site.type = whole;
    }
    return sites;
}

} // namespace catena
