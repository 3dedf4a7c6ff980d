// Algorithm 5 (Deng and Wu, NFReducer):
//
//     5 TRUNCATEATFIRSTDROP(p)
//     6 CHECKCHAINEDACTIONS(p)
//     7 LABELACTIONPKT(p)
//     8 code <- DEAD_CODE_ELIMINATION(p)
//
// Where a function drops, nothing of those after it is called: the splice truncated these paths. "For drop(pkt), pkt
// should be LHS (or neither), so that all previous packet header modification is regarded as dead code"; "for
// send(pkt), pkt should be partially RHS". So a send reads the packet, and a drop does not: what is written to a packet
// is moved down to where all sends that read it begin, and where no send follows it is gone. The paths need not be
// listed for that: the place is the last one that all ways to these sends have in common.
#include "reduce/consolidate.h"

#include "reduce/simplify.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"

using namespace llvm;

namespace catena {

namespace {

/// Where a write is moved to, and whether nothing reads it.
struct Sinking {
    Instruction *write;
    Instruction *to;
};

class Sinks {
public:
    Sinks(Function &packet, Buffers &buffers) : packet(packet), buffers(buffers) {}

    /// Return whether every packet writes what of a buffer it reads: then nothing reads what a packet before it left.
    bool isOfOnePacket(const Buffer &buffer) {
        return all_of(buffer.of(false), [&](const BufferAccess *read) {
            return any_of(buffer.of(true), [&](const BufferAccess *write) {
                return buffers.tree().dominates(write->instruction, read->instruction) && buffers.covers(*write, *read);
            });
        });
    }

    /// Move the writes of a buffer, the last ones first.
    std::vector<Sinking> sinkings(const Buffer &buffer) {
        std::vector<Sinking> found;
        std::vector<const BufferAccess *> writes = buffer.of(true);
        DenseMap<const BasicBlock *, unsigned> order;
        unsigned number = 0;
        for (const BasicBlock *block : ReversePostOrderTraversal<Function *>(&packet)) order[block] = number++;
        sort(writes, [&](const BufferAccess *a, const BufferAccess *b) {
            const BasicBlock *one = a->instruction->getParent(), *other = b->instruction->getParent();
            return one == other ? b->instruction->comesBefore(a->instruction) : order[other] < order[one];
        });
        // A write that was moved lies before the place it was moved to.
        for (const BufferAccess *write : writes) {
            if (!mayMove(*write)) continue;
            auto place = placeFor(buffer, *write);
            if (!place) continue;
            if (*place) now[write->instruction] = *place;
            found.push_back({write->instruction, *place});
            if (!*place) gone.insert(write->instruction);
        }
        return found;
    }

private:
    bool mayMove(const BufferAccess &write) {
        if (buffers.loops().getLoopFor(write.instruction->getParent())) return false;
        if (auto *copy = dyn_cast<MemTransferInst>(write.instruction))
            return !copy->isVolatile() && buffers.isPacket(copy->getRawSource());
        return isa<StoreInst>(write.instruction) || isa<MemSetInst>(write.instruction);
    }

    /// Where an access is done by now.
    const Instruction *at(const BufferAccess &access) {
        const Instruction *moved = now.lookup(access.instruction);
        return moved ? moved : access.instruction;
    }

    bool follows(const Instruction *later, const Instruction *earlier) {
        return isPotentiallyReachable(earlier, later, nullptr, &buffers.tree(), &buffers.loops()) && later != earlier;
    }

    /// Return the instruction before which a write can be done as well, null if nothing reads it, nothing if it stays.
    std::optional<Instruction *> placeFor(const Buffer &buffer, const BufferAccess &write) {
        DominatorTree &tree = buffers.tree();
        BasicBlock *common = nullptr;
        std::vector<const BufferAccess *> reads;
        for (const BufferAccess *read : buffer.of(false)) {
            if (!follows(read->instruction, write.instruction)) continue;
            if (!tree.dominates(write.instruction, read->instruction)) return std::nullopt;
            reads.push_back(read);
            BasicBlock *block = read->instruction->getParent();
            common = common ? tree.findNearestCommonDominator(common, block) : block;
        }
        if (!common) return static_cast<Instruction *>(nullptr);
        while (const Loop *loop = buffers.loops().getLoopFor(common))
            common = tree.getNode(loop->getHeader())->getIDom()->getBlock();
        if (common == write.instruction->getParent()) return std::nullopt;
        // Before the first in the block that has to do with the buffer, or at its end.
        Instruction *place = common->getTerminator();
        for (const BufferAccess &other : buffer.accesses) {
            auto *instruction = const_cast<Instruction *>(at(other));
            if (&other != &write && !gone.count(other.instruction) && instruction->getParent() == common &&
                instruction->comesBefore(place))
                place = instruction;
        }
        // What else is written on the way must not be the same bytes; what was moved to the place comes behind.
        for (const BufferAccess *other : buffer.of(true)) {
            if (other == &write || gone.count(other->instruction) || at(*other) == place) continue;
            const Instruction *there = at(*other);
            if (follows(there, write.instruction) && follows(place, there) &&
                !buffers.disjoint(write, *other, *other->instruction))
                return std::nullopt;
        }
        return place;
    }

    Function &packet;
    Buffers &buffers;
    DenseMap<const Instruction *, const Instruction *> now;
    SmallPtrSet<const Instruction *, 8> gone;
};

} // namespace

void removeOverwritten(Function &packet, const ChainKnowledge &chain, Consolidated &done,
                       std::map<std::string, PrivateParts> &privates) {
    PacketMemory memory = holdPacket(packet, chain.reception, chain.phase);
    if (!memory.isKnown()) return;
    std::vector<Sinking> found;
    {
        Buffers buffers(packet, memory, chain.library);
        for (const Buffer &buffer : buffers.all()) {
            if (any_of(buffer.accesses, [](const BufferAccess &access) { return access.writes && !access.size; }))
                continue;
            Sinks sinks(packet, buffers);
            if (!sinks.isOfOnePacket(buffer)) continue;
            auto moves = sinks.sinkings(buffer);
            if (moves.empty()) continue;
            if (isa<GlobalVariable>(buffer.base)) privates[buffer.base->getName().str()] = {1, 1};
            append_range(found, moves);
        }
    }
    // In their own order, for those that come to one place.
    for (const Sinking &one : reverse(found)) {
        if (one.to) {
            one.write->moveBefore(one.to);
            ++done.sunk;
        } else {
            one.write->eraseFromParent();
            ++done.unread;
        }
    }
    propagateConstants(packet);
}

} // namespace catena
