// Lines 4 to 6 of Algorithm 4 (Deng and Wu, NFReducer):
//
//     4 S' <- COMMON_SUBEXPRESSION_ELIMINATION(S')
//     5 S' <- COPY_PROPAGATION(S')
//     6 S' <- DEAD_CODE_ELIMINATION(S')
//
// LLVM does the first and the last of it once the bytes of a packet are the same expression wherever they are read. So
// the copy that a function made of the packet to change it is propagated: who reads a byte of it reads the packet's, or
// what was written over it; who copies it copies the packet, and what was written over it.
#include "reduce/consolidate.h"

#include "reduce/simplify.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

namespace {

/// Make a pointer like one into `from`, but into `to`, with the same steps; null if it takes others.
Value *rebase(Value *pointer, const Value *from, Value *to, IRBuilder<> &builder) {
    if (pointer == from) return to;
    auto *step = dyn_cast<GEPOperator>(pointer);
    Value *base = step ? rebase(step->getPointerOperand(), from, to, builder) : nullptr;
    if (!base) return nullptr;
    SmallVector<Value *, 4> indices(step->indices());
    return builder.CreateGEP(step->getSourceElementType(), base, indices, "", step->isInBounds());
}

struct Propagation {
    Instruction *read;
    Instruction *source;
    std::vector<StoreInst *> patches;
};

/// Let a load read where the copy came from; null if the copy is not a plain one of the packet.
bool propagateInto(LoadInst &load, Instruction &source, const Value *base) {
    IRBuilder<> builder(&load);
    if (auto *store = dyn_cast<StoreInst>(&source)) {
        load.replaceAllUsesWith(store->getValueOperand());
        load.eraseFromParent();
        return true;
    }
    auto &copy = cast<MemTransferInst>(source);
    if (copy.getRawDest() != base) return false;
    Value *from = rebase(load.getPointerOperand(), base, copy.getRawSource(), builder);
    if (!from) return false;
    auto *direct = builder.CreateAlignedLoad(load.getType(), from, Align(1), load.getName());
    load.replaceAllUsesWith(direct);
    load.eraseFromParent();
    return true;
}

/// Let a copy of a copy be one of the packet, with what was written over the first written over it too.
bool propagateInto(MemTransferInst &second, MemTransferInst &first, const std::vector<StoreInst *> &patches,
                   const Value *base) {
    if (first.getRawDest() != base || second.getRawSource() != base) return false;
    IRBuilder<> builder(second.getNextNode());
    builder.SetCurrentDebugLocation(second.getDebugLoc());
    std::vector<Value *> places;
    for (StoreInst *patch : patches) {
        places.push_back(rebase(patch->getPointerOperand(), base, second.getRawDest(), builder));
        if (!places.back()) return false;
    }
    second.setSource(first.getRawSource());
    second.setSourceAlignment(Align(1));
    for (size_t i = 0; i < patches.size(); ++i)
        builder.CreateAlignedStore(patches[i]->getValueOperand(), places[i], Align(1));
    return true;
}

/// Find what can be propagated. What is proven of one holds for all: the packet does not change, and no read does.
std::vector<std::pair<Propagation, Value *>> findPropagations(Buffers &buffers) {
    std::vector<std::pair<Propagation, Value *>> found;
    for (const Buffer &buffer : buffers.all())
        for (const BufferAccess *read : buffer.of(false)) {
            bool copies = isa<MemTransferInst>(read->instruction);
            if (!copies && !isa<LoadInst>(read->instruction)) continue;
            std::vector<const BufferAccess *> patches;
            const BufferAccess *source = buffers.source(buffer, *read, copies ? &patches : nullptr);
            if (!source) continue;
            auto *first = dyn_cast<MemTransferInst>(source->instruction);
            if (first && !buffers.isPacket(first->getRawSource())) continue;
            Propagation one{read->instruction, source->instruction, {}};
            // What is written over the second copy must lie within it, or it would be written where nothing was before.
            BufferAccess second = *read;
            bool within = all_of(patches, [&](const BufferAccess *patch) {
                BufferAccess later = *patch;
                later.instruction = read->instruction;
                return buffers.covers(second, later);
            });
            if (!within) continue;
            for (const BufferAccess *patch : patches) one.patches.push_back(cast<StoreInst>(patch->instruction));
            found.push_back({one, buffer.base});
        }
    return found;
}

/// Remove the writes to buffers that nothing reads.
void removeUnread(Function &packet, const ChainKnowledge &chain, Consolidated &done,
                  std::map<std::string, PrivateParts> &privates) {
    std::vector<Instruction *> writes;
    {
        Buffers buffers(packet, {}, chain.library);
        for (const Buffer &buffer : buffers.all()) {
            if (!buffer.of(false).empty()) continue;
            ++done.buffers;
            if (isa<GlobalVariable>(buffer.base)) privates[buffer.base->getName().str()] = {1, 1};
            for (const BufferAccess &access : buffer.accesses) writes.push_back(access.instruction);
        }
    }
    for (Instruction *write : writes) write->eraseFromParent();
}

} // namespace

void removeDuplicated(Function &packet, const ChainKnowledge &chain, Consolidated &done,
                      std::map<std::string, PrivateParts> &privates) {
    // What one function hands the next passes through variables of the second: its pointers to packet and header.
    for (const auto &[name, parts] : makePrivate(packet, {}, true)) privates[name] = parts;
    for (bool again = true; again;) {
        again = false;
        PacketMemory memory = holdPacket(packet, chain.reception, chain.phase);
        markPacketMemory(packet, memory);
        propagateConstants(packet);
        // The load of a variable may be another one now.
        memory = holdPacket(packet, chain.reception, chain.phase);
        if (!memory.isKnown()) break;
        std::vector<std::pair<Propagation, Value *>> found;
        {
            Buffers buffers(packet, memory, chain.library);
            found = findPropagations(buffers);
        }
        for (auto &[one, base] : found) {
            if (auto *load = dyn_cast<LoadInst>(one.read)) {
                bool did = propagateInto(*load, *one.source, base);
                done.reads += did, again |= did;
            } else {
                bool did = propagateInto(*cast<MemTransferInst>(one.read), *cast<MemTransferInst>(one.source),
                                         one.patches, base);
                done.copies += did, again |= did;
            }
        }
    }
    removeUnread(packet, chain, done, privates);
    propagateConstants(packet);
    markPacketMemory(packet, holdPacket(packet, chain.reception, chain.phase));
}

} // namespace catena
