// Lines 7-9 of Algorithm 3 (Deng and Wu, NFReducer):
//
//     7 if SYMBOLICEXECUTION(p') is infeasible then
//     8     continue
//
// Not path by path, of which there are too many, but direction by direction of branches: down the tree of dominators
// the solver is told what must hold to be there (push), and forgets it on the way up (pop).
#include "reduce/feasible.h"

#include "reduce/terms.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace catena {

namespace {

/// What one question may cost, in the solver's own units, so that the answer does not depend on the machine; how many
/// may be asked; after how many that were too expensive none is asked any more; and what all may cost together, with
/// what it takes to tell the solver of them, which is most where programs are large.
constexpr unsigned questionCost = 400000, mostQuestions = 4000, mostOpen = 50, mostCost = 10000000;

using Direction = std::pair<BasicBlock *, unsigned>;

/// Asks about directions of branches. What an answer's model takes on its way needs no question of its own: one
/// evaluation shows all of it.
class Questions {
public:
    explicit Questions(Terms &terms) : terms(terms), z3(terms.context()), solver(boundedSolver(z3, questionCost)) {}
    ~Questions() { Z3_solver_dec_ref(z3, solver); }

    void add(Z3_ast condition) { Z3_solver_assert(z3, solver, condition); }

    /// Ask about the directions of branches that no answer before has shown to be taken; `answer` sees the model, where
    /// there is one. What can only be reached by a direction that is never taken is not asked about.
    void ask(Function &function, function_ref<void(Direction, Z3_lbool, Z3_model)> answer) {
        std::vector<Z3_ast> bits;
        for (BasicBlock &block : function)
            for (unsigned i = 0; i < directions(block); ++i) {
                Z3_ast both[] = {terms.reached(&block), terms.taken(&block, i)};
                numbers[{&block, i}] = bits.size();
                bits.push_back(Z3_mk_ite(z3, Z3_mk_and(z3, 2, both), terms.number(1, 1), terms.number(0, 1)));
            }
        if (bits.empty()) return;
        shown.assign(bits.size(), false);
        all = together(bits);
        DominatorTree tree(function);
        descend(*tree.getRootNode(), answer);
    }

private:
    static unsigned directions(const BasicBlock &block) {
        const Instruction *end = block.getTerminator();
        bool chooses = end->getNumSuccessors() > 1 && (isa<BranchInst>(end) || isa<SwitchInst>(end));
        return chooses ? end->getNumSuccessors() : 0;
    }

    /// One number of all bits, the first one highest.
    Z3_ast together(ArrayRef<Z3_ast> bits) {
        if (bits.size() == 1) return bits.front();
        size_t half = bits.size() / 2;
        return Z3_mk_concat(z3, together(bits.take_front(half)), together(bits.drop_front(half)));
    }

    void descend(const DomTreeNode &node, function_ref<void(Direction, Z3_lbool, Z3_model)> answer) {
        BasicBlock *block = node.getBlock();
        way.push_back(block);
        SmallPtrSet<const BasicBlock *, 4> may;
        for (unsigned i = 0; i < directions(*block); ++i)
            if (shown[numbers.lookup({block, i})] || check({block, i}, answer) != Z3_L_FALSE)
                may.insert(block->getTerminator()->getSuccessor(i));
        for (const DomTreeNode *child : node.children())
            if (!directions(*block) || child->getBlock()->getUniquePredecessor() != block ||
                may.contains(child->getBlock()))
                descend(*child, answer);
        way.pop_back();
        if (told <= way.size()) return;
        Z3_solver_pop(z3, solver, 1);
        --told;
    }

    Z3_lbool check(Direction direction, function_ref<void(Direction, Z3_lbool, Z3_model)> answer) {
        Z3_lbool said = Z3_L_UNDEF;
        Z3_model model = nullptr;
        if (asked < mostQuestions && open < mostOpen && cost() < mostCost) {
            for (; told < way.size(); ++told) {
                Z3_solver_push(z3, solver);
                add(terms.reached(way[told]));
            }
            Z3_solver_push(z3, solver);
            add(terms.taken(direction.first, direction.second));
            said = Z3_solver_check(z3, solver);
            if (said == Z3_L_TRUE) model = Z3_solver_get_model(z3, solver);
            if (model) Z3_model_inc_ref(z3, model);
            Z3_solver_pop(z3, solver, 1);
            ++asked;
        }
        open += said == Z3_L_UNDEF;
        answer(direction, said, model);
        if (!model) return said;
        Z3_ast taken = nullptr;
        if (Z3_model_eval(z3, model, all, true, &taken) && Z3_is_numeral_ast(z3, taken)) {
            // Without leading zeros.
            StringRef ways = Z3_get_numeral_binary_string(z3, taken);
            for (size_t i = 0; i < ways.size(); ++i)
                if (ways[i] == '1') shown[shown.size() - ways.size() + i] = true;
        }
        Z3_model_dec_ref(z3, model);
        return said;
    }

    /// What the solver has spent so far, in its own units.
    unsigned cost() const {
        Z3_stats figures = Z3_solver_get_statistics(z3, solver);
        Z3_stats_inc_ref(z3, figures);
        unsigned spent = 0;
        for (unsigned i = 0, end = Z3_stats_size(z3, figures); i < end; ++i)
            if (StringRef(Z3_stats_get_key(z3, figures, i)) == "rlimit count")
                spent = Z3_stats_get_uint_value(z3, figures, i);
        Z3_stats_dec_ref(z3, figures);
        return spent;
    }

    Terms &terms;
    Z3_context z3;
    Z3_solver solver;
    unsigned asked = 0, open = 0;
    /// The directions' numbers, which of them an answer takes, and a term that says which ones a model does.
    DenseMap<Direction, unsigned> numbers;
    std::vector<bool> shown;
    Z3_ast all = nullptr;
    /// The blocks that dominate the one at hand, and to how many of them the solver was told to have come.
    std::vector<BasicBlock *> way;
    size_t told = 0;
};

} // namespace

Feasibility removeInfeasible(Function &function) {
    Feasibility done;
    std::map<BasicBlock *, std::vector<unsigned>> never;
    {
        Terms terms(function);
        Questions questions(terms);
        questions.ask(function, [&](Direction direction, Z3_lbool said, Z3_model) {
            if (said == Z3_L_FALSE) never[direction.first].push_back(direction.second);
            done.undecided += said == Z3_L_UNDEF;
        });
    }
    for (auto &[block, directions] : never) {
        Instruction *end = block->getTerminator();
        ++done.decided;
        // Directions that are never taken lead to a block of their own, which ends nowhere; then what is left is
        // simplified.
        for (unsigned direction : directions) {
            BasicBlock *to = end->getSuccessor(direction);
            auto *nowhere = BasicBlock::Create(function.getContext(), "never", &function);
            new UnreachableInst(function.getContext(), nowhere);
            to->removePredecessor(block);
            end->setSuccessor(direction, nowhere);
        }
    }
    if (!never.empty()) removeUnreachableBlocks(function);
    return done;
}

std::vector<std::string> packetsForBranches(const Function &function, const PacketBases &bases) {
    // Offsets of caplen and len in a struct pcap_pkthdr, whose time comes first; and an ordinary longest packet.
    constexpr unsigned caplenAt = 16, lenAt = 20, longest = 1514;
    std::vector<std::string> packets;
    Terms terms(function, {bases.packet, bases.header});
    Z3_context z3 = terms.context();
    Questions questions(terms);
    auto numberIn = [&](Z3_model model, Z3_ast term) -> std::optional<uint64_t> {
        Z3_ast value = nullptr;
        uint64_t number = 0;
        if (!Z3_model_eval(z3, model, term, true, &value) || !Z3_get_numeral_uint64(z3, value, &number))
            return std::nullopt;
        return number;
    };
    auto isAt = [&](const PacketRead &read, unsigned offset) {
        return read.base == bases.header && read.bytes == 4 &&
               Z3_is_eq_ast(z3, Z3_simplify(z3, read.offset), terms.number(offset, 64));
    };
    std::optional<Z3_ast> length;
    for (const PacketRead &read : terms.reads()) {
        if (!isAt(read, caplenAt) && !isAt(read, lenAt)) continue;
        questions.add(Z3_mk_bvule(z3, read.value, terms.number(longest, 32)));
        if (isAt(read, caplenAt)) length = read.value;
    }
    for (const PacketRead &read : terms.reads())
        if (read.base == bases.packet) questions.add(Z3_mk_bvult(z3, read.offset, terms.number(longest, 64)));
    questions.ask(const_cast<Function &>(function), [&](Direction, Z3_lbool, Z3_model model) {
        if (!model) return;
        std::string packet(longest, '\0');
        uint64_t caplen = length ? numberIn(model, *length).value_or(longest) : longest;
        for (const PacketRead &read : terms.reads()) {
            if (read.base != bases.packet) continue;
            auto offset = numberIn(model, read.offset), value = numberIn(model, read.value);
            if (!offset || !value || *offset + read.bytes > longest) continue;
            for (unsigned i = 0; i < read.bytes; ++i) packet[*offset + i] = static_cast<char>(*value >> 8 * i);
        }
        packet.resize(std::min<uint64_t>(caplen, longest));
        if (!is_contained(packets, packet)) packets.push_back(std::move(packet));
    });
    return packets;
}

} // namespace catena
