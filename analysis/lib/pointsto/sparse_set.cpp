// Sorted blocks of 64 bits: unions are merges, which is what an inclusion-based analysis spends its time on.
#include "pointsto/sparse_set.h"

#include <algorithm>

using namespace catena;

namespace {
bool before(const SparseSet::Block &block, uint32_t key) { return block.key < key; }
} // namespace

size_t SparseSet::size() const {
    size_t count = 0;
    for (const Block &block : blocks) count += static_cast<size_t>(std::popcount(block.bits));
    return count;
}

bool SparseSet::insert(uint32_t number) {
    uint32_t key = number / 64;
    uint64_t bit = uint64_t{1} << (number % 64);
    auto at = std::lower_bound(blocks.begin(), blocks.end(), key, before);
    if (at == blocks.end() || at->key != key) {
        blocks.insert(at, {key, bit});
        return true;
    }
    bool isNew = !(at->bits & bit);
    at->bits |= bit;
    return isNew;
}

bool SparseSet::contains(uint32_t number) const {
    auto at = std::lower_bound(blocks.begin(), blocks.end(), number / 64, before);
    return at != blocks.end() && at->key == number / 64 && (at->bits >> (number % 64) & 1);
}

bool SparseSet::intersects(const SparseSet &other) const {
    auto a = blocks.begin(), b = other.blocks.begin();
    while (a != blocks.end() && b != other.blocks.end()) {
        if (a->key < b->key)
            ++a;
        else if (b->key < a->key)
            ++b;
        else if (a++->bits & b++->bits)
            return true;
    }
    return false;
}

bool SparseSet::addNoting(const SparseSet &other, SparseSet *fresh) {
    if (other.blocks.empty() || &other == this) return false;
    // What is new, and how many blocks are, is found first: mostly nothing is.
    std::vector<Block> added;
    size_t newBlocks = 0;
    auto a = blocks.begin();
    for (const Block &block : other.blocks) {
        a = std::lower_bound(a, blocks.end(), block.key, before);
        bool there = a != blocks.end() && a->key == block.key;
        uint64_t bits = there ? block.bits & ~a->bits : block.bits;
        if (!bits) continue;
        added.push_back({block.key, bits});
        if (there)
            a->bits |= bits;
        else
            ++newBlocks;
    }
    if (added.empty()) return false;
    if (newBlocks) {
        std::vector<Block> merged;
        merged.reserve(blocks.size() + newBlocks);
        auto b = added.begin();
        for (const Block &block : blocks) {
            while (b != added.end() && b->key < block.key) merged.push_back(*b++);
            if (b != added.end() && b->key == block.key) ++b;
            merged.push_back(block);
        }
        merged.insert(merged.end(), b, added.end());
        blocks.swap(merged);
    }
    if (fresh) {
        SparseSet news;
        news.blocks = std::move(added);
        fresh->add(news);
    }
    return true;
}

SparseSet SparseSet::without(const SparseSet &other) const {
    SparseSet rest;
    auto b = other.blocks.begin();
    for (const Block &block : blocks) {
        b = std::lower_bound(b, other.blocks.end(), block.key, before);
        uint64_t bits = b != other.blocks.end() && b->key == block.key ? block.bits & ~b->bits : block.bits;
        if (bits) rest.blocks.push_back({block.key, bits});
    }
    return rest;
}

llvm::hash_code SparseSet::hash() const {
    llvm::hash_code code(blocks.size());
    for (const Block &block : blocks) code = llvm::hash_combine(code, block.key, block.bits);
    return code;
}
