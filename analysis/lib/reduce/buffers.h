// Buffers that packets are copied to: who writes and who reads which of their bytes.
#pragma once

#include "library/effects.h"
#include "reduce/packet_memory.h"
#include "reduce/terms.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"

namespace catena {

/// An access to a buffer.
struct BufferAccess {
    llvm::Instruction *instruction;
    /// The pointer by which it accesses it.
    llvm::Value *pointer;
    bool writes;
    /// How many bytes; null if that is not known.
    Z3_ast size;
};

/// A variable that only the packet function uses, and whose address nobody keeps: all accesses to it are known.
struct Buffer {
    llvm::Value *base;
    std::vector<BufferAccess> accesses;
    std::vector<const BufferAccess *> of(bool writes) const;
};

/// The buffers of a packet function, and what can be proven of the bytes that are accessed. Nothing may be removed from
/// the function as long as this is there.
class Buffers {
public:
    Buffers(llvm::Function &packet, const PacketMemory &memory, const LibraryEffects &library);
    ~Buffers();
    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;

    const std::vector<Buffer> &all() const { return buffers; }
    /// Return whether `inner` accesses no byte that `outer` does not, whenever it is executed.
    bool covers(const BufferAccess &outer, const BufferAccess &inner);
    /// Return whether two accesses have no byte in common, whenever `at` is executed.
    bool disjoint(const BufferAccess &one, const BufferAccess &other, const llvm::Instruction &at);
    /// Return the write of a buffer that gave `read` all its bytes: a copy, or a store of the same bytes; null if it is
    /// not one. Stores after it that may have changed some of them are a reason to say null, or are put into `patches`,
    /// in their order.
    const BufferAccess *source(const Buffer &buffer, const BufferAccess &read,
                               std::vector<const BufferAccess *> *patches);

    llvm::DominatorTree &tree() { return dominators; }
    llvm::LoopInfo &loops() { return loopInfo; }
    const PacketMemory &packet() const { return memory; }
    /// Return whether a pointer leads into the received packet.
    bool isPacket(const llvm::Value *pointer) const;

private:
    bool collect(Buffer &buffer, llvm::Value &pointer);
    bool add(Buffer &buffer, llvm::Use &use);
    bool addCall(Buffer &buffer, llvm::CallBase &call, unsigned argument);
    Z3_ast sizeOf(const llvm::Value *length);
    Z3_ast dumped(const llvm::CallBase &call);
    Z3_ast bytes(uint64_t count) { return terms.number(count, 64); }
    bool proves(const llvm::BasicBlock *where, Z3_ast claim);

    llvm::Function &function;
    PacketMemory memory;
    const LibraryEffects &library;
    llvm::DominatorTree dominators;
    llvm::LoopInfo loopInfo;
    Terms terms;
    Z3_context z3;
    Z3_solver solver;
    unsigned asked = 0;
    std::vector<Buffer> buffers;
    /// A load of the received packet's length, if there is one.
    const llvm::LoadInst *capturedLength = nullptr;
};

} // namespace catena
