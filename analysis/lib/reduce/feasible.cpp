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
/// may be asked; after how many that were too expensive none is asked any more; and what all may cost together, which
/// is what bounds the time for large programs.
constexpr unsigned questionCost = 400000, mostQuestions = 4000, mostOpen = 50, mostCost = 10000000;

using Direction = std::pair<BasicBlock *, unsigned>;

class Questions {
public:
    explicit Questions(Terms &terms) : terms(terms), z3(terms.context()), solver(boundedSolver(z3, questionCost)) {}
    ~Questions() { Z3_solver_dec_ref(z3, solver); }

    void add(Z3_ast condition) { Z3_solver_assert(z3, solver, condition); }

    /// Ask about every direction of every branch; `answer` sees the solver before it forgets.
    void ask(Function &function, function_ref<void(Direction, Z3_lbool, Z3_solver)> answer) {
        DominatorTree tree(function);
        descend(*tree.getRootNode(), answer);
    }

private:
    void descend(const DomTreeNode &node, function_ref<void(Direction, Z3_lbool, Z3_solver)> answer) {
        BasicBlock *block = node.getBlock();
        // To tell the solver what is not asked about is most of the work where there is much of it.
        bool tells = mayAsk();
        if (tells) {
            Z3_solver_push(z3, solver);
            add(terms.reached(block));
        }
        const Instruction *end = block->getTerminator();
        if (end->getNumSuccessors() > 1 && (isa<BranchInst>(end) || isa<SwitchInst>(end)))
            for (unsigned i = 0; i < end->getNumSuccessors(); ++i) {
                Z3_lbool said = Z3_L_UNDEF;
                if (tells && mayAsk()) {
                    Z3_solver_push(z3, solver);
                    add(terms.taken(block, i));
                    said = Z3_solver_check(z3, solver);
                    ++asked, open += said == Z3_L_UNDEF;
                    answer({block, i}, said, solver);
                    Z3_solver_pop(z3, solver, 1);
                } else {
                    answer({block, i}, said, solver);
                }
            }
        for (const DomTreeNode *child : node.children()) descend(*child, answer);
        if (tells) Z3_solver_pop(z3, solver, 1);
    }

    bool mayAsk() const { return asked < mostQuestions && open < mostOpen && cost() < mostCost; }

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
};

} // namespace

Feasibility removeInfeasible(Function &function) {
    Feasibility done;
    std::map<BasicBlock *, std::vector<unsigned>> never;
    {
        Terms terms(function);
        Questions questions(terms);
        questions.ask(function, [&](Direction direction, Z3_lbool said, Z3_solver) {
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
    questions.ask(const_cast<Function &>(function), [&](Direction, Z3_lbool said, Z3_solver solver) {
        if (said != Z3_L_TRUE) return;
        Z3_model model = Z3_solver_get_model(z3, solver);
        if (!model) return;
        Z3_model_inc_ref(z3, model);
        std::string packet(longest, '\0');
        uint64_t caplen = length ? numberIn(model, *length).value_or(longest) : longest;
        for (const PacketRead &read : terms.reads()) {
            if (read.base != bases.packet) continue;
            auto offset = numberIn(model, read.offset), value = numberIn(model, read.value);
            if (!offset || !value || *offset + read.bytes > longest) continue;
            for (unsigned i = 0; i < read.bytes; ++i) packet[*offset + i] = static_cast<char>(*value >> 8 * i);
        }
        packet.resize(std::min<uint64_t>(caplen, longest));
        Z3_model_dec_ref(z3, model);
        if (!is_contained(packets, packet)) packets.push_back(std::move(packet));
    });
    return packets;
}

} // namespace catena
