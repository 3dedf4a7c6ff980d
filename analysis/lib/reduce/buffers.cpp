// "We parse the code and mark the packet specific data structure fields (its base address plus the offset) as a single
// variable" (Deng and Wu, NFReducer, section IV-B). Offsets depend on the packet, as a port's does on the length of the
// header before it; so it is the solver that is asked whether two accesses mean the same bytes, under the conditions by
// which they are reached.
#include "reduce/buffers.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

namespace {

/// As for branches: what one question may cost in the solver's units, and how many are asked.
constexpr unsigned questionCost = 200000, mostQuestions = 3000;
/// Where a struct pcap_pkthdr has caplen.
constexpr uint64_t caplenAt = 16;

} // namespace

std::vector<const BufferAccess *> Buffer::of(bool writes) const {
    std::vector<const BufferAccess *> found;
    for (const BufferAccess &access : accesses)
        if (access.writes == writes) found.push_back(&access);
    return found;
}

Buffers::Buffers(Function &packet, const PacketMemory &memory, const LibraryEffects &library)
    : function(packet), memory(memory), library(library), dominators(packet), loopInfo(dominators), terms(packet),
      z3(terms.context()), solver(boundedSolver(z3, questionCost)) {
    const DataLayout &layout = packet.getParent()->getDataLayout();
    std::vector<Value *> bases;
    for (GlobalVariable &global : packet.getParent()->globals())
        if (global.hasLocalLinkage() && !global.isConstant() && !global.isThreadLocal()) bases.push_back(&global);
    for (Instruction &instruction : instructions(packet)) {
        if (isa<AllocaInst>(instruction)) bases.push_back(&instruction);
        auto *load = dyn_cast<LoadInst>(&instruction);
        if (!load || !load->getType()->isIntegerTy(32)) continue;
        APInt offset(64, 0);
        const Value *base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
        if (!capturedLength && memory.header && base == memory.header && offset == caplenAt) capturedLength = load;
    }
    for (Value *base : bases) {
        Buffer buffer{base, {}};
        // Buffers for packets are written by copying; scalars are not worth a question.
        bool plain = collect(buffer, *base);
        if (plain && any_of(buffer.accesses, [](const BufferAccess &access) {
                return access.writes && isa<MemTransferInst>(access.instruction);
            }))
            buffers.push_back(std::move(buffer));
    }
}

Buffers::~Buffers() { Z3_solver_dec_ref(z3, solver); }

bool Buffers::isPacket(const Value *pointer) const {
    return memory.packet && getUnderlyingObject(pointer, 0) == memory.packet;
}

/// Collect the accesses through a pointer; false if it may be kept somewhere, or is used by other functions.
bool Buffers::collect(Buffer &buffer, Value &pointer) {
    for (Use &use : pointer.uses()) {
        auto *step = dyn_cast<GEPOperator>(use.getUser());
        if (step ? use.getOperandNo() != 0 || !collect(buffer, *step) : !add(buffer, use)) return false;
    }
    return true;
}

bool Buffers::add(Buffer &buffer, Use &use) {
    auto *instruction = dyn_cast<Instruction>(use.getUser());
    if (!instruction) return false;
    const DataLayout &layout = function.getParent()->getDataLayout();
    if (instruction->getFunction() != &function) return false;
    BufferAccess access{instruction, use.get(), false, nullptr};
    if (auto *load = dyn_cast<LoadInst>(instruction)) {
        if (!load->isSimple()) return false;
        access.size = bytes(layout.getTypeStoreSize(load->getType()).getFixedValue());
    } else if (auto *store = dyn_cast<StoreInst>(instruction)) {
        if (!store->isSimple() || use.getOperandNo() != 1) return false;
        access.writes = true;
        access.size = bytes(layout.getTypeStoreSize(store->getValueOperand()->getType()).getFixedValue());
    } else if (auto *block = dyn_cast<AnyMemIntrinsic>(instruction)) {
        if (!isa<MemIntrinsic>(block) || cast<MemIntrinsic>(block)->isVolatile()) return false;
        access.writes = use.getOperandNo() == 0;
        access.size = sizeOf(block->getLength());
    } else if (auto *call = dyn_cast<CallBase>(instruction)) {
        return addCall(buffer, *call, use.getOperandNo());
    } else {
        return isa<ICmpInst>(instruction);
    }
    buffer.accesses.push_back(access);
    return true;
}

/// A call of a library function that does nothing with a pointer but read there.
bool Buffers::addCall(Buffer &buffer, CallBase &call, unsigned argument) {
    BufferAccess access{&call, call.getArgOperand(argument), false, nullptr};
    if (call.isLifetimeStartOrEnd()) {
        access.writes = true;
        buffer.accesses.push_back(access);
        return true;
    }
    const Function *callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration() || argument >= call.arg_size()) return false;
    const auto *effects = library.find(callee->getName());
    if (!effects || !all_of(*effects, [](const Effect &effect) { return effect.kind == Effect::Reads; })) return false;
    if (callee->getName() == "pcap_dump" && argument == 2) access.size = dumped(call);
    buffer.accesses.push_back(access);
    return true;
}

Z3_ast Buffers::sizeOf(const Value *length) {
    unsigned bits = length->getType()->getIntegerBitWidth();
    if (bits > 64) return nullptr;
    Z3_ast size = terms.of(length);
    return bits < 64 ? Z3_mk_zero_ext(z3, 64 - bits, size) : size;
}

/// pcap_dump writes as many bytes as the header says; of the received one that is known.
Z3_ast Buffers::dumped(const CallBase &call) {
    if (!capturedLength || call.getArgOperand(1) != memory.header) return nullptr;
    return sizeOf(capturedLength);
}

bool Buffers::proves(const BasicBlock *where, Z3_ast claim) {
    if (++asked > mostQuestions) return false;
    Z3_solver_push(z3, solver);
    Z3_solver_assert(z3, solver, terms.reached(where));
    Z3_solver_assert(z3, solver, Z3_mk_not(z3, claim));
    Z3_lbool said = Z3_solver_check(z3, solver);
    Z3_solver_pop(z3, solver, 1);
    return said == Z3_L_FALSE;
}

bool Buffers::covers(const BufferAccess &outer, const BufferAccess &inner) {
    // What a loop wrote before is not what its values say now.
    if (!outer.size || !inner.size || loopInfo.getLoopFor(outer.instruction->getParent())) return false;
    Z3_ast distance = Z3_mk_bvsub(z3, terms.of(inner.pointer), terms.of(outer.pointer));
    Z3_ast within[] = {Z3_mk_bvule(z3, inner.size, outer.size),
                       Z3_mk_bvule(z3, distance, Z3_mk_bvsub(z3, outer.size, inner.size))};
    return proves(inner.instruction->getParent(), Z3_mk_and(z3, 2, within));
}

bool Buffers::disjoint(const BufferAccess &one, const BufferAccess &other, const Instruction &at) {
    if (!one.size || !other.size || loopInfo.getLoopFor(one.instruction->getParent()) ||
        (loopInfo.getLoopFor(other.instruction->getParent()) && other.instruction != &at))
        return false;
    // On the circle of addresses neither begins within the other.
    Z3_ast there = Z3_mk_bvsub(z3, terms.of(other.pointer), terms.of(one.pointer));
    Z3_ast apart[] = {Z3_mk_bvuge(z3, there, one.size), Z3_mk_bvuge(z3, Z3_mk_bvneg(z3, there), other.size)};
    Z3_ast zero = bytes(0);
    Z3_ast none[] = {Z3_mk_eq(z3, one.size, zero), Z3_mk_eq(z3, other.size, zero), Z3_mk_and(z3, 2, apart)};
    return proves(at.getParent(), Z3_mk_or(z3, 3, none));
}

const BufferAccess *Buffers::source(const Buffer &buffer, const BufferAccess &read,
                                    std::vector<const BufferAccess *> *patches) {
    DenseMap<const BasicBlock *, std::vector<const BufferAccess *>> written;
    for (const BufferAccess *write : buffer.of(true)) written[write->instruction->getParent()].push_back(write);
    for (auto &[block, writes] : written)
        sort(writes, [](const auto *a, const auto *b) { return b->instruction->comesBefore(a->instruction); });
    const BufferAccess *found = nullptr;
    // Backwards over all ways, until each has come to one write that says all.
    auto look = [&](const BasicBlock *block, const Instruction *before) -> std::optional<bool> {
        for (const BufferAccess *write : written.lookup(block)) {
            if (before && !write->instruction->comesBefore(before)) continue;
            if (write == found) return true;
            bool copies = isa<MemTransferInst>(write->instruction);
            if (copies || isa<StoreInst>(write->instruction)) {
                if (disjoint(*write, read, *read.instruction)) continue;
                if (copies && covers(*write, read)) {
                    if (found) return false;
                    found = write;
                    return true;
                }
                const auto *store = dyn_cast<StoreInst>(write->instruction);
                if (store && patches && dominators.dominates(store, read.instruction) &&
                    !loopInfo.getLoopFor(store->getParent())) {
                    if (!is_contained(*patches, write)) patches->push_back(write);
                    continue;
                }
                if (store && !patches && isa<LoadInst>(read.instruction) &&
                    store->getValueOperand()->getType() == read.instruction->getType() && covers(*write, read)) {
                    if (found) return false;
                    found = write;
                    return true;
                }
            }
            return false;
        }
        return std::nullopt;
    };
    std::vector<const BasicBlock *> work;
    SmallPtrSet<const BasicBlock *, 16> seen;
    auto goOn = [&](const BasicBlock *block) {
        for (const BasicBlock *before : predecessors(block))
            if (seen.insert(before).second) work.push_back(before);
    };
    const BasicBlock *begin = read.instruction->getParent();
    if (auto decided = look(begin, read.instruction)) {
        if (!*decided) return nullptr;
    } else {
        if (begin->isEntryBlock()) return nullptr;
        goOn(begin);
    }
    while (!work.empty()) {
        const BasicBlock *block = work.back();
        work.pop_back();
        auto decided = look(block, nullptr);
        if (decided && !*decided) return nullptr;
        if (decided) continue;
        if (block->isEntryBlock()) return nullptr;
        goOn(block);
    }
    if (!found || !dominators.dominates(found->instruction, read.instruction)) return nullptr;
    if (patches) {
        for (const BufferAccess *patch : *patches)
            if (!dominators.dominates(found->instruction, patch->instruction)) return nullptr;
        sort(*patches, [&](const auto *a, const auto *b) {
            return a != b && dominators.dominates(a->instruction, b->instruction);
        });
    }
    return found;
}

} // namespace catena
