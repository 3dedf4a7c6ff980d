// A binary tree over ranges of fields: from a packet's fields to the few entries of a rule table that may matter for
// it.
#pragma once

#include "reduce/entry_conditions.h"

namespace catena {

/// A decision tree in tables.
struct DecisionTree {
    struct Node {
        /// Values of `field` above `threshold` go right, others left; a child below zero is a leaf, the complement of
        /// where its entries begin in `entries`.
        uint64_t threshold;
        int32_t left, right;
        uint32_t field;
    };
    std::vector<Node> nodes;
    /// The entries of every leaf in their order, each list with `last` at its end.
    std::vector<uint32_t> entries;
    unsigned deepest = 0;
    /// The longest list of a leaf, without its end.
    unsigned longest = 0;
};

/// Make a tree for boxes whose entries ascend, over all that fields can be. `last` is the entry that every list ends
/// with.
///
/// Leaves are split until few entries are left in each, as long as that gains anything and the tree stays within a
/// number of nodes and entries that grows with the number of boxes.
DecisionTree decisionTree(const std::vector<EntryBox> &boxes, const FieldBox &all, unsigned last);

} // namespace catena
