// Sets of small numbers, for points-to sets: sorted blocks of 64 bits, empty blocks left out.
#pragma once

#include "llvm/ADT/Hashing.h"
#include <bit>
#include <cstdint>
#include <iterator>
#include <unordered_set>
#include <vector>

namespace catena {

/// A set of numbers below 2^32.
class SparseSet {
public:
    struct Block {
        uint32_t key;
        uint64_t bits;
        bool operator==(const Block &) const = default;
    };

    bool empty() const { return blocks.empty(); }
    size_t size() const;
    void clear() { blocks.clear(); }
    /// Insert a number; return whether it is new.
    bool insert(uint32_t number);
    bool contains(uint32_t number) const;
    bool intersects(const SparseSet &other) const;
    /// Add all of `other`; return whether anything was new.
    bool add(const SparseSet &other) { return addNoting(other, nullptr); }
    /// Add all of `other`, and what was new to `fresh` too; return whether anything was.
    bool add(const SparseSet &other, SparseSet &fresh) { return addNoting(other, &fresh); }
    /// Return what this has and `other` has not.
    SparseSet without(const SparseSet &other) const;
    bool operator==(const SparseSet &) const = default;
    llvm::hash_code hash() const;
    struct Hash {
        size_t operator()(const SparseSet &set) const { return set.hash(); }
    };

    /// Walks the numbers from small to great.
    class iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = uint32_t;
        using difference_type = std::ptrdiff_t;
        using pointer = const uint32_t *;
        using reference = uint32_t;
        iterator() = default;
        iterator(const Block *at, const Block *end) : at(at), end(end), bits(at == end ? 0 : at->bits) {}
        uint32_t operator*() const { return at->key * 64 + static_cast<uint32_t>(std::countr_zero(bits)); }
        iterator &operator++() {
            bits &= bits - 1;
            if (!bits && ++at != end) bits = at->bits;
            return *this;
        }
        iterator operator++(int) {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator &other) const { return at == other.at && bits == other.bits; }

    private:
        const Block *at = nullptr, *end = nullptr;
        uint64_t bits = 0;
    };
    iterator begin() const { return {blocks.data(), blocks.data() + blocks.size()}; }
    iterator end() const { return {blocks.data() + blocks.size(), blocks.data() + blocks.size()}; }

private:
    bool addNoting(const SparseSet &other, SparseSet *fresh);
    std::vector<Block> blocks;
};

/// Sets that many have in common, kept once each.
class SharedSets {
public:
    /// Return the one copy of a set; it lives as long as this.
    const SparseSet *keep(SparseSet set) { return &*sets.insert(std::move(set)).first; }

private:
    std::unordered_set<SparseSet, SparseSet::Hash> sets;
};

} // namespace catena
