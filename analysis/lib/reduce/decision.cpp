// "n clones" of a loop's body (Deng and Wu, NFReducer, section III-B) do not serve for thousands of rules: here the
// tree and the entries are tables, and the code is the same for any number of them.
#include "reduce/decision.h"

#include "reduce/decision_tree.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace catena {

namespace {

GlobalVariable *table(Module &program, Constant *values, const char *name) {
    auto *global = new GlobalVariable(program, values->getType(), true, GlobalValue::PrivateLinkage, values, name);
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return global;
}

/// Emits a decision before a loop.
class Emission {
public:
    Emission(Loop &loop, Frozen &frozen, DominatorTree &tree)
        : loop(loop), frozen(frozen), tree(tree), program(*loop.getHeader()->getModule()),
          context(program.getContext()), half(Type::getInt32Ty(context)), word(Type::getInt64Ty(context)) {}

    /// Return where the entries of the leaf begin, as computed before the loop.
    Value *walk(const DecisionTree &decision, const std::vector<PacketField> &fields) {
        Function &function = *loop.getHeader()->getParent();
        IRBuilder<> entry(&*function.getEntryBlock().getFirstInsertionPt());
        auto *cells = ArrayType::get(word, fields.size());
        Value *values = entry.CreateAlloca(cells, nullptr, "fields");
        Instruction *end = loop.getLoopPreheader()->getTerminator();
        IRBuilder<> builder(end);
        for (unsigned i = 0; i < fields.size(); ++i) {
            Value *value = fields[i].value;
            if (fields[i].loaded) value = builder.CreateLoad(fields[i].type, value);
            builder.CreateStore(builder.CreateZExt(value, word),
                                builder.CreateConstInBoundsGEP2_64(cells, values, 0, i));
        }
        BasicBlock *before = end->getParent(), *after = SplitBlock(before, end, &tree);
        auto *step = BasicBlock::Create(context, "decide", &function, after);
        before->getTerminator()->setSuccessor(0, step);
        builder.SetInsertPoint(step);
        auto *type = StructType::get(context, {word, ArrayType::get(half, 2), half});
        Value *nodes = table(program, nodeTable(decision, type), "catena.nodes");
        PHINode *node = builder.CreatePHI(half, 2, "node");
        node->addIncoming(builder.getInt32(0), before);
        auto member = [&](unsigned index) {
            return builder.CreateInBoundsGEP(type, nodes, {builder.CreateZExt(node, word), builder.getInt32(index)});
        };
        Value *field = builder.CreateZExt(builder.CreateLoad(half, member(2)), word);
        Value *value = builder.CreateLoad(word, builder.CreateInBoundsGEP(cells, values, {builder.getInt64(0), field}));
        Value *right = builder.CreateICmpUGT(value, builder.CreateLoad(word, member(0)));
        Value *child = builder.CreateInBoundsGEP(ArrayType::get(half, 2), member(1),
                                                 {builder.getInt64(0), builder.CreateZExt(right, word)});
        Value *next = builder.CreateLoad(half, child);
        node->addIncoming(next, step);
        builder.CreateCondBr(builder.CreateICmpSLT(next, builder.getInt32(0)), after, step);
        builder.SetInsertPoint(after, after->getFirstInsertionPt());
        return builder.CreateNot(next, "candidates");
    }

    /// Let the loop run through the entries from `begin` on.
    void lead(Value *begin, const DecisionTree &decision, const IterationValues &iterations) {
        BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch();
        Value *entries = table(program, ConstantDataArray::get(context, decision.entries), "catena.candidates");
        IRBuilder<> builder(header, header->begin());
        PHINode *at = builder.CreatePHI(half, 2, "candidate");
        builder.SetInsertPoint(header, header->getFirstInsertionPt());
        Value *entry = builder.CreateLoad(half, builder.CreateInBoundsGEP(half, entries, builder.CreateZExt(at, word)));
        Value *index = builder.CreateZExt(entry, word, "entry");
        for (unsigned i = 0; i < iterations.phis.size(); ++i) {
            PHINode *phi = iterations.phis[i];
            std::vector<Constant *> values;
            for (const auto &iteration : iterations.values) values.push_back(iteration[i]);
            phi->replaceAllUsesWith(valueOf(index, phi->getType(), values, builder));
            phi->eraseFromParent();
        }
        builder.SetInsertPoint(latch->getTerminator());
        at->addIncoming(begin, loop.getLoopPreheader());
        at->addIncoming(builder.CreateAdd(at, builder.getInt32(1)), latch);
    }

private:
    Constant *nodeTable(const DecisionTree &decision, StructType *type) {
        auto small = [&](int64_t value) { return ConstantInt::getSigned(half, value); };
        auto *pair = ArrayType::get(half, 2);
        std::vector<Constant *> nodes;
        for (const DecisionTree::Node &node : decision.nodes)
            nodes.push_back(ConstantStruct::get(type, {ConstantInt::get(word, node.threshold),
                                                       ConstantArray::get(pair, {small(node.left), small(node.right)}),
                                                       small(node.field)}));
        return ConstantArray::get(ArrayType::get(type, nodes.size()), nodes);
    }

    /// Return what a variable of the loop is in an iteration: counted if it goes up evenly, else from a table.
    Value *valueOf(Value *index, Type *type, const std::vector<Constant *> &values, IRBuilder<> &builder) {
        if (type->isPointerTy()) {
            Value *slot = builder.CreateInBoundsGEP(type, frozen.addresses(values), index);
            return builder.CreateLoad(type, slot);
        }
        const APInt &first = cast<ConstantInt>(values[0])->getValue();
        APInt step = cast<ConstantInt>(values[1])->getValue() - first, expected = first;
        bool even = all_of(values, [&](const Constant *value) {
            bool same = cast<ConstantInt>(value)->getValue() == expected;
            expected += step;
            return same;
        });
        if (even) {
            Value *counted = builder.CreateMul(builder.CreateZExtOrTrunc(index, type), ConstantInt::get(type, step));
            return builder.CreateAdd(counted, ConstantInt::get(type, first));
        }
        auto *array = ArrayType::get(type, values.size());
        Value *all = table(program, ConstantArray::get(array, values), "catena.values");
        return builder.CreateLoad(type, builder.CreateInBoundsGEP(type, all, index));
    }

    Loop &loop;
    Frozen &frozen;
    DominatorTree &tree;
    Module &program;
    LLVMContext &context;
    Type *half, *word;
};

} // namespace

std::optional<Decision> decide(Loop &loop, const IterationValues &iterations, Frozen &frozen, DominatorTree &tree) {
    for (const auto &values : iterations.values)
        for (const Constant *value : values)
            if (value->getType()->isPointerTy() ? !frozen.isAddress(*value) : !isa<ConstantInt>(value))
                return std::nullopt;
    if (iterations.phis.empty() || !loop.getLoopPreheader() || !loop.getLoopLatch()) return std::nullopt;
    auto conditions = entryConditions(loop, iterations, frozen, tree, false);
    if (!conditions) return std::nullopt;
    unsigned last = iterations.values.size() - 1, fields = conditions->fields.size();
    FieldBox all;
    for (const PacketField &field : conditions->fields)
        all.push_back({0, APInt::getMaxValue(field.type->getIntegerBitWidth()).getZExtValue()});
    DecisionTree decision = decisionTree(conditions->boxes, all, last);
    // What the tree saves must be worth its steps.
    if (decision.nodes.empty() || decision.longest > last / 2) return std::nullopt;
    conditions = entryConditions(loop, iterations, frozen, tree, true);
    for (auto [load, value] : conditions->uniform) load->replaceAllUsesWith(value);
    Emission emission(loop, frozen, tree);
    Value *begin = emission.walk(decision, conditions->fields);
    emission.lead(begin, decision, iterations);
    return Decision{last, fields, unsigned(decision.nodes.size()), decision.deepest, decision.longest};
}

} // namespace catena
