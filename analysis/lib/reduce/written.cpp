// Lines 6-15 of Algorithm 1 (Deng and Wu, NFReducer), by bytes:
//
//     6 for each stmt in AssignmentStmts(loopProc) do
//     7     for each var in VS do
//     8         if var == stmt.LHS or var in PointsTo(stmt.LHS) or PointsTo(var) n PointsTo(stmt.LHS) then
//    12             SV = SV U var
//
// A struct may hold configuration beside state, and so may what a variable leads to; so it is not variables that are
// asked here but bytes of objects: what no assignment may touch keeps the value it has at the first reception.
#include "reduce/written.h"

#include "dependence/execution.h"
#include "dependence/graph_builder.h"
#include "program/promotion.h"
#include "statealyzr/loop_procedures.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <numeric>

using namespace llvm;

namespace catena {

bool WrittenBytes::touches(uint64_t begin, uint64_t end) const {
    return all || any_of(ranges, [&](const Range &range) {
               if (end <= range.begin) return false;
               // Of all that begin before `end`, the last one ends last.
               uint64_t behind = range.period ? (end - 1 - range.begin) / range.period * range.period : 0;
               return begin <= behind || begin - behind < range.end;
           });
}

namespace {

/// The blocks of the outermost loop around an instruction; none if there is no loop.
SmallPtrSet<const BasicBlock *, 16> outermostLoop(const Instruction &instruction) {
    SmallPtrSet<const BasicBlock *, 16> blocks;
    DominatorTree tree(const_cast<Function &>(*instruction.getFunction()));
    LoopInfo loops(tree);
    const Loop *loop = loops.getLoopFor(instruction.getParent());
    while (loop && loop->getParentLoop()) loop = loop->getParentLoop();
    if (loop) blocks.insert(loop->block_begin(), loop->block_end());
    return blocks;
}

/// Adds the leaves of a type that a location stands for. Offsets of locations are canonical: those of an array's first
/// element stand for all of its elements.
struct Leaves {
    static constexpr uint64_t mostElements = 65536;
    const DataLayout &layout;
    /// The location's canonical offsets.
    uint64_t begin, end;
    WrittenBytes &bytes;

    void add(Type *type, uint64_t base, uint64_t canonical) {
        uint64_t size = layout.getTypeAllocSize(type).getFixedValue();
        if (canonical >= end || canonical + size <= begin || !size) return;
        if (auto *structure = dyn_cast<StructType>(type)) {
            const StructLayout *inside = layout.getStructLayout(structure);
            for (unsigned i = 0; i < structure->getNumElements(); ++i) {
                uint64_t at = inside->getElementOffset(i).getFixedValue();
                add(structure->getElementType(i), base + at, canonical + at);
            }
            return;
        }
        auto *array = dyn_cast<ArrayType>(type);
        if (!array || !array->getElementType()->isAggregateType()) {
            bytes.ranges.push_back({base, base + size});
        } else if (array->getNumElements() > mostElements) {
            bytes.all = true;
        } else {
            uint64_t step = layout.getTypeAllocSize(array->getElementType()).getFixedValue();
            for (uint64_t i = 0; i < array->getNumElements(); ++i)
                add(array->getElementType(), base + i * step, canonical);
        }
    }
};

/// Add a part of a block that is walked over by strides: it is one of every element. Elements of two or three bytes are
/// told from numbers of that size by the members that they have.
void addElements(const Object &object, uint64_t offset, uint64_t end, WrittenBytes &bytes) {
    constexpr uint64_t number = 4;
    uint64_t period = 0, first = UINT64_MAX;
    for (auto [stride, begin] : object.strides) {
        if (offset < begin) continue;
        auto member = object.fields.upper_bound(begin);
        if (stride < number && (member == object.fields.end() || member->first >= begin + stride)) continue;
        period = std::gcd(period, stride), first = std::min(first, begin);
    }
    if (!period) return;
    // What is met in a later element is of all if nothing else stands for the part in the first.
    bool stands = any_of(object.fields, [&](const auto &field) {
        return field.first >= first && field.first < offset && (offset - field.first) % period == 0;
    });
    uint64_t begin = stands ? offset : first + (offset - first) % period;
    bytes.ranges.push_back({begin, end == UINT64_MAX ? end : end - offset + begin, period});
}

void addLocation(Location location, const Memory &memory, WrittenBytes &bytes) {
    const Object &object = memory.objectOf(location);
    uint64_t offset = memory.offsetOf(location);
    if (offset == Memory::restOffset || object.fields.size() >= Memory::mostFields) {
        bytes.all = true;
        return;
    }
    // What nobody addresses by itself belongs to the location before it.
    auto next = object.fields.upper_bound(offset);
    uint64_t end = next == object.fields.end() ? UINT64_MAX : next->first;
    if (object.type && object.type->isSized() && offset < object.size)
        Leaves{memory.dataLayout(), offset, end, bytes}.add(object.type, 0, 0);
    else
        bytes.ranges.push_back({offset, end});
    if (!object.type) addElements(object, offset, end, bytes);
}

const std::set<StringRef> givesBack = {"free",   "cfree",   "realloc", "reallocarray", "_ZdlPv",
                                       "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "munmap",       "mremap"};

class Phase {
public:
    Phase(const PointsTo &pointsTo, const DenseSet<const Function *> &processing, PacketPhase &found)
        : pointsTo(pointsTo), processing(processing), found(found) {}

    void statement(const Instruction &instruction) {
        for (const Use &operand : instruction.operands()) names(operand.get());
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (!call) {
            add(written(instruction, pointsTo));
            return;
        }
        auto library = [&](const Function &callee) {
            add(libraryAccess(*call, callee, pointsTo).writes);
            if (!givesBack.count(callee.getName())) return;
            for (const Use &argument : call->args())
                if (argument->getType()->isPointerTy())
                    for (Location location : pointsTo.of(argument)) free(pointsTo.memory().objectOf(location));
        };
        if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic()) library(*callee);
        for (const Function *callee : pointsTo.callees(*call))
            if (callee->isDeclaration()) library(*callee);
    }

private:
    void names(const Value *value) {
        if (const auto *global = dyn_cast<GlobalVariable>(value))
            found.used.insert(global->getName().str());
        else if (const auto *expression = dyn_cast<ConstantExpr>(value))
            for (const Use &operand : expression->operands()) names(operand.get());
    }

    void add(const SparseSet &locations) {
        found.add(locations, pointsTo.memory());
        for (Location location : locations) {
            const Object &object = pointsTo.memory().objectOf(location);
            if (const auto *cell = dyn_cast_or_null<AllocaInst>(object.site);
                cell && !processing.contains(cell->getFunction()))
                found.outerLocals.insert((cell->getFunction()->getName() + "." + cell->getName()).str());
        }
    }

    void free(const Object &object) {
        if (const auto *call = dyn_cast_or_null<CallBase>(object.site)) found.freed.insert(callNumber(*call));
    }

    const PointsTo &pointsTo;
    const DenseSet<const Function *> &processing;
    PacketPhase &found;
};

/// Find the calls whose blocks are told apart. What allocators allocate within themselves is known to their callers by
/// another call, and a call through a pointer cannot say in a run what it is.
void findAllocations(const Module &program, const PointsTo &pointsTo, PacketPhase &found) {
    auto isFresh = [&](const Function &callee) {
        const auto *effects = pointsTo.library().find(callee.getName());
        return effects && any_of(*effects, [](const Effect &effect) { return effect.kind == Effect::ReturnsFresh; });
    };
    for (const Function &function : program) {
        if (pointsTo.isAllocator(function)) {
            found.allocators.insert(function.getName().str());
            continue;
        }
        for (const Instruction &instruction : instructions(function)) {
            const auto *call = dyn_cast<CallInst>(&instruction);
            const Function *callee = call ? call->getCalledFunction() : nullptr;
            if (callee && (callee->isDeclaration() ? isFresh(*callee) : pointsTo.keepsOffsets(*callee)))
                found.allocations.insert(callNumber(*call));
        }
    }
}

} // namespace

void WrittenMemory::add(const SparseSet &locations, const Memory &memory) {
    for (Location location : locations) {
        const Object &object = memory.objectOf(location);
        if (object.kind == Object::Global)
            addLocation(location, memory, globals[object.site->getName().str()]);
        else if (const auto *call = dyn_cast_or_null<CallBase>(object.site))
            addLocation(location, memory, heap[callNumber(*call)]);
    }
}

PacketPhase packetPhase(const Module &program, const Reception &reception, const AnalysisOptions &options) {
    PacketPhase found;
    auto copy = CloneModule(program);
    promoteLocals(*copy, {});
    PointsTo pointsTo(*copy, options.library, {true, true});
    CallGraph calls(*copy, pointsTo);
    auto receives = packetCalls(*copy, pointsTo, options.functions, PacketFunction::Receive);
    SmallPtrSet<const BasicBlock *, 32> blocks;
    for (const LoopProcedure &loop : loopProcedures(*copy, calls, receives))
        for (const CallBase *call : loop.receives)
            for (const BasicBlock *block : outermostLoop(*call)) blocks.insert(block);
    const CallBase *call = numberedCalls(*copy).at(callNumber(*reception.call));
    std::vector<const Function *> called = calls.calledBack();
    append_range(called, calls.calledBy(call));
    for (const BasicBlock *block : blocks)
        for (const Instruction &instruction : *block)
            if (const auto *inside = dyn_cast<CallBase>(&instruction))
                for (const Function *callee : calls.calledBy(inside))
                    if (!is_contained(called, callee)) called.push_back(callee);
    DenseSet<const Function *> processing = calls.closure(called);
    Phase phase(pointsTo, processing, found);
    for (const Function &function : *copy) {
        if (!processing.contains(&function)) continue;
        found.functions.push_back(function.getName().str());
        for (const Instruction &instruction : instructions(function)) phase.statement(instruction);
    }
    for (const BasicBlock *block : blocks)
        if (!processing.contains(block->getParent()))
            for (const Instruction &instruction : *block) phase.statement(instruction);
    findAllocations(*copy, pointsTo, found);
    // A library that calls back needs no loop around its call.
    phase.statement(*call);
    found.unmodelled.assign(pointsTo.unmodelled().begin(), pointsTo.unmodelled().end());
    return found;
}

} // namespace catena
