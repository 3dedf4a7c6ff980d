// Cuts of one field at a time at ends of ranges, as in HyperSplit (Qi, Xu, Yang, Xue and Li, Packet Classification
// Algorithms: From Theory to Practice). The largest leaf is split first, so that what the bounds leave unsplit is
// small.
#include "reduce/decision_tree.h"

#include <queue>

using namespace llvm;

namespace catena {

namespace {

/// Leaves of so many entries are not split; and how many entries the lists may have in all for each box.
constexpr unsigned fewEntries = 2, mostCopies = 24, mostEntries = 4000000;

struct Region {
    FieldBox box;
    /// Boxes by their number, in ascending order.
    std::vector<uint32_t> boxes;
    /// Which child of which node it is.
    int32_t parent = -1;
    bool right = false;
    unsigned depth = 0;
};

struct Cut {
    unsigned field;
    uint64_t threshold;
    size_t left, right;
};

class Builder {
public:
    Builder(const std::vector<EntryBox> &boxes, const FieldBox &all, unsigned last)
        : boxes(boxes), everything(all), fields(all.size()), last(last) {}

    DecisionTree run() {
        Region all{everything, {}};
        for (uint32_t i = 0; i < boxes.size(); ++i) all.boxes.push_back(i);
        cutBehindCertain(all);
        size_t inAll = all.boxes.size(), most = std::min<size_t>(mostEntries, mostCopies * boxes.size() + 64);
        auto smaller = [](const Region &a, const Region &b) { return a.boxes.size() < b.boxes.size(); };
        std::priority_queue<Region, std::vector<Region>, decltype(smaller)> work(smaller);
        work.push(std::move(all));
        while (!work.empty()) {
            Region region = work.top();
            work.pop();
            std::optional<Cut> cut;
            if (region.boxes.size() > fewEntries && inAll < most) cut = bestCut(region);
            if (!cut) {
                setLeaf(region);
                continue;
            }
            auto node = static_cast<int32_t>(tree.nodes.size());
            tree.nodes.push_back({cut->threshold, 0, 0, cut->field});
            setChild(region, node);
            inAll -= region.boxes.size();
            for (bool right : {false, true}) {
                Region child{region.box, {}, node, right, region.depth + 1};
                (right ? child.box[cut->field].low : child.box[cut->field].high) = cut->threshold + right;
                for (uint32_t i : region.boxes)
                    if (meets(boxes[i], child.box)) child.boxes.push_back(i);
                cutBehindCertain(child);
                inAll += child.boxes.size();
                work.push(std::move(child));
            }
        }
        return std::move(tree);
    }

private:
    bool meets(const EntryBox &box, const FieldBox &region) const {
        for (unsigned i = 0; i < fields; ++i)
            if (FieldRange range = rangeOf(box.box, i); range.high < region[i].low || range.low > region[i].high)
                return false;
        return true;
    }

    bool covers(const EntryBox &box, const FieldBox &region) const {
        for (unsigned i = 0; i < fields; ++i)
            if (FieldRange range = rangeOf(box.box, i); range.low > region[i].low || range.high < region[i].high)
                return false;
        return true;
    }

    /// Behind an entry at which every packet of the region leaves the loop nothing is reached.
    void cutBehindCertain(Region &region) const {
        for (size_t i = 0; i < region.boxes.size(); ++i)
            if (const EntryBox &box = boxes[region.boxes[i]]; box.leaves && covers(box, region.box)) {
                region.boxes.resize(i + 1);
                return;
            }
    }

    /// Return the cut after which the larger side has the fewest boxes; nothing if none makes both sides smaller.
    std::optional<Cut> bestCut(const Region &region) const {
        std::optional<Cut> best;
        for (unsigned field = 0; field < fields; ++field) {
            // A range ends before `low` on its left and after `high` on its right.
            std::vector<uint64_t> lows, highs;
            std::vector<uint64_t> thresholds;
            for (uint32_t i : region.boxes) {
                FieldRange range = rangeOf(boxes[i].box, field);
                lows.push_back(range.low), highs.push_back(range.high);
                if (range.low > region.box[field].low) thresholds.push_back(range.low - 1);
                if (range.high < region.box[field].high) thresholds.push_back(range.high);
            }
            if (thresholds.empty()) continue;
            sort(lows), sort(highs), sort(thresholds);
            for (size_t part : {2, 1, 3}) {
                uint64_t threshold = thresholds[std::min(thresholds.size() * part / 4, thresholds.size() - 1)];
                Cut cut{field, threshold, 0, 0};
                cut.left = upper_bound(lows, threshold) - lows.begin();
                cut.right = highs.end() - upper_bound(highs, threshold);
                size_t larger = std::max(cut.left, cut.right), size = region.boxes.size();
                if (larger == size) continue;
                auto cost = [](const Cut &one) {
                    return std::pair(std::max(one.left, one.right), one.left + one.right);
                };
                if (!best || cost(cut) < cost(*best)) best = cut;
            }
        }
        return best;
    }

    void setChild(const Region &region, int32_t child) {
        if (region.parent < 0) return;
        DecisionTree::Node &parent = tree.nodes[region.parent];
        (region.right ? parent.right : parent.left) = child;
    }

    void setLeaf(const Region &region) {
        std::vector<uint32_t> list;
        for (uint32_t i : region.boxes)
            if (list.empty() || list.back() != boxes[i].entry) list.push_back(boxes[i].entry);
        if (list.empty() || list.back() != last) list.push_back(last);
        tree.deepest = std::max(tree.deepest, region.depth);
        tree.longest = std::max<unsigned>(tree.longest, list.size() - 1);
        // Leaves with the same entries share them.
        auto [at, isNew] = leaves.try_emplace(list, static_cast<int32_t>(tree.entries.size()));
        if (isNew) append_range(tree.entries, list);
        setChild(region, ~at->second);
    }

    const std::vector<EntryBox> &boxes;
    const FieldBox &everything;
    const unsigned fields, last;
    DecisionTree tree;
    std::map<std::vector<uint32_t>, int32_t> leaves;
};

} // namespace

DecisionTree decisionTree(const std::vector<EntryBox> &boxes, const FieldBox &all, unsigned last) {
    return Builder(boxes, all, last).run();
}

} // namespace catena
