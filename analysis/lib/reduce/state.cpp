// Two images of different programs: objects correspond if they have one name, or if corresponding pointers lead to
// them.
#include "reduce/state.h"

using namespace llvm;

namespace catena {

namespace {

class Comparison {
public:
    Comparison(const Module &program, const Image &original, const Image &reduced,
               const std::map<std::string, PrivateParts> &privates, const std::set<unsigned> &ownBlocks,
               const WrittenMemory &leftOut, bool samePackets)
        : program(program), original(original), reduced(reduced), privates(privates), ownBlocks(ownBlocks),
          leftOut(leftOut), samePackets(samePackets) {}

    StateComparison run() {
        for (const GlobalVariable &global : program.globals()) {
            std::string name = global.getName().str();
            auto one = original.symbols.find(name), other = reduced.symbols.find(name);
            if (global.isConstant() || global.isDeclaration() || one == original.symbols.end() ||
                other == reduced.symbols.end())
                continue;
            // Some parts of it are not kept; the others are read by packets, and show in what is sent and logged.
            if (auto own = privates.find(name); own != privates.end() && own->second.ofOnePacket) continue;
            ++result.variables;
            at = name;
            match(one->second, other->second);
            while (!work.empty() && result.difference.empty()) {
                auto [left, right] = work.back();
                work.pop_back();
                compare(original.objects[left], reduced.objects[right]);
            }
            if (!result.difference.empty()) break;
        }
        return result;
    }

private:
    void match(unsigned left, unsigned right) {
        auto [known, isNew] = pairs.try_emplace(left, right);
        if (!isNew) {
            if (known->second != right) differ("leads to another object");
            return;
        }
        const ImageObject &one = original.objects[left], &other = reduced.objects[right];
        if (one.symbol != other.symbol || one.site != other.site || one.bytes.size() != other.bytes.size() ||
            one.freed != other.freed)
            return differ("leads to an object of another kind");
        if (!one.symbol.empty() || ownBlocks.count(one.site)) work.push_back({left, right});
    }

    void compare(const ImageObject &one, const ImageObject &other) {
        for (uint64_t begin = 0; begin < one.bytes.size(); begin += 8) {
            uint64_t end = std::min<uint64_t>(begin + 8, one.bytes.size());
            auto left = one.pointers.find(begin), right = other.pointers.find(begin);
            if (one.unsteady.count(begin) && (other.unsteady.count(begin) || !samePackets)) continue;
            if (!samePackets && left != one.pointers.end() && isLibrarys(left->second)) continue;
            if (isLeftOut(one, begin, end)) continue;
            if (left != one.pointers.end() && right != other.pointers.end()) {
                if (left->second.offset != right->second.offset) return differ("points to another place");
                match(left->second.object, right->second.object);
                continue;
            }
            if (left != one.pointers.end() || right != other.pointers.end() || one.unsteady.count(begin) ||
                other.unsteady.count(begin))
                return differ("holds another pointer at byte " + std::to_string(begin));
            if (!std::equal(one.bytes.begin() + begin, one.bytes.begin() + end, other.bytes.begin() + begin))
                return differ("differs at byte " + std::to_string(begin));
            result.bytes += end - begin;
        }
    }

    bool isLeftOut(const ImageObject &object, uint64_t begin, uint64_t end) const {
        if (!object.symbol.empty()) {
            auto found = leftOut.globals.find(object.symbol);
            return found != leftOut.globals.end() && found->second.touches(begin, end);
        }
        auto found = leftOut.heap.find(object.site);
        return found != leftOut.heap.end() && found->second.touches(begin, end);
    }

    bool isLibrarys(const ImagePointer &pointer) const {
        const ImageObject &object = original.objects[pointer.object];
        return object.symbol.empty() && !ownBlocks.count(object.site);
    }

    void differ(const std::string &what) {
        if (result.difference.empty()) result.difference = at + ", or what it leads to, " + what;
    }

    const Module &program;
    const Image &original, &reduced;
    const std::map<std::string, PrivateParts> &privates;
    const std::set<unsigned> &ownBlocks;
    const WrittenMemory &leftOut;
    bool samePackets;
    std::string at;
    std::map<unsigned, unsigned> pairs;
    std::vector<std::pair<unsigned, unsigned>> work;
    StateComparison result;
};

} // namespace

StateComparison compareState(const Module &program, const Image &original, const Image &reduced,
                             const std::map<std::string, PrivateParts> &privates, const std::set<unsigned> &ownBlocks,
                             const WrittenMemory &leftOut, bool samePackets) {
    return Comparison(program, original, reduced, privates, ownBlocks, leftOut, samePackets).run();
}

} // namespace catena
