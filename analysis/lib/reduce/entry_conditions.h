// When an entry of a rule table may matter for a packet: as ranges of the packet's fields.
#pragma once

#include "reduce/frozen.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

namespace catena {

/// Values of one field from `low` to `high`, unsigned.
struct FieldRange {
    uint64_t low = 0, high = UINT64_MAX;
    bool operator==(const FieldRange &) const = default;
};

/// Ranges by the field's number; fields behind the last have any value.
using FieldBox = std::vector<FieldRange>;

/// Return a field's range in a box.
inline FieldRange rangeOf(const FieldBox &box, unsigned field) {
    return field < box.size() ? box[field] : FieldRange();
}

/// A box outside of which an entry does nothing but go on to the next.
struct EntryBox {
    unsigned entry;
    FieldBox box;
    /// Whether the loop is left for sure by every packet in the box.
    bool leaves;
};

/// A field of the packet: a value that is the same in all iterations.
struct PacketField {
    /// A value from before the loop, or the address of one that is loaded in it.
    llvm::Value *value;
    llvm::Type *type;
    bool loaded;
};

/// What each iteration of a loop over configuration does, as far as it depends on fields of the packet.
struct EntryConditions {
    std::vector<PacketField> fields;
    std::vector<EntryBox> boxes;
    /// Loads in the loop that read the same in all iterations.
    llvm::DenseMap<llvm::LoadInst *, llvm::Constant *> uniform;
};

/// The values that a loop's header takes from iteration to iteration, as far as frozen memory decides them.
struct IterationValues {
    std::vector<llvm::PHINode *> phis;
    /// By iteration, the last one among them, in which the loop is left.
    std::vector<std::vector<llvm::Constant *>> values;
};

/// Find when the iterations of a loop matter. With `rely` the program rests on the memory that was read from now on.
///
/// Nothing if the loop is not of the shape: within it nothing is written, and what is not decided by the configuration
/// is not carried from one iteration that does not matter to the next.
std::optional<EntryConditions> entryConditions(llvm::Loop &loop, const IterationValues &iterations, Frozen &frozen,
                                               const llvm::DominatorTree &tree, bool rely);

} // namespace catena
