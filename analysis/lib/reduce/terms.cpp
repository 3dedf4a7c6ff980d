// Symbolic execution with merging: where paths meet, a value is the one of the path that was taken. So the terms grow
// with the program, not with the number of its paths.
#include "reduce/terms.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace catena {

Terms::Terms(const Function &function, std::vector<const Value *> memoryOf)
    : layout(function.getParent()->getDataLayout()), memories(std::move(memoryOf)) {
    Z3_config config = Z3_mk_config();
    z3 = Z3_mk_context(config);
    Z3_del_config(config);
    // Errors give terms that are not used: everything below is well sorted.
    Z3_set_error_handler(z3, [](Z3_context, Z3_error_code) {});
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>> edges;
    FindFunctionBackedges(function, edges);
    backEdges.insert(edges.begin(), edges.end());
    // In this order no term is far from those that it needs.
    ReversePostOrderTraversal<const Function *> order(&function);
    for (const BasicBlock *block : order) {
        reached(block);
        for (const Instruction &instruction : *block)
            if (instruction.getType()->isIntOrPtrTy()) of(&instruction);
    }
}

Terms::~Terms() { Z3_del_context(z3); }

unsigned Terms::width(const Type *type) const {
    return type->isPointerTy() ? 64 : cast<IntegerType>(type)->getBitWidth();
}

Z3_ast Terms::number(uint64_t value, unsigned bits) const {
    return Z3_mk_unsigned_int64(z3, value, Z3_mk_bv_sort(z3, bits));
}

Z3_ast Terms::any(const Type *type) { return Z3_mk_fresh_const(z3, "any", Z3_mk_bv_sort(z3, width(type))); }

Z3_ast Terms::truth(Z3_ast condition) const { return Z3_mk_ite(z3, condition, number(1, 1), number(0, 1)); }

Z3_ast Terms::isTrue(Z3_ast bit) const { return Z3_mk_eq(z3, bit, number(1, 1)); }

Z3_ast Terms::of(const Value *value) {
    auto found = terms.find(value);
    if (found != terms.end()) return found->second;
    Z3_ast term = nullptr;
    if (const auto *constant = dyn_cast<ConstantInt>(value); constant && constant->getBitWidth() <= 64)
        term = number(constant->getZExtValue(), constant->getBitWidth());
    else if (isa<ConstantPointerNull>(value))
        term = number(0, 64);
    else if (const auto *instruction = dyn_cast<Instruction>(value))
        term = make(*instruction);
    else if (const auto *address = dyn_cast<GEPOperator>(value))
        term = step(*address);
    if (!term) term = any(value->getType());
    return terms[value] = term;
}

Z3_ast Terms::make(const Instruction &instruction) {
    // Vectors and floating point stand for any value.
    for (const Value *operand : instruction.operands())
        if (!operand->getType()->isIntOrPtrTy() && !isa<BasicBlock>(operand) && !isa<Function>(operand) &&
            !isa<MetadataAsValue>(operand))
            return nullptr;
    if (const auto *operation = dyn_cast<BinaryOperator>(&instruction)) return binary(*operation);
    if (const auto *comparison = dyn_cast<ICmpInst>(&instruction)) return compare(*comparison);
    if (const auto *phi = dyn_cast<PHINode>(&instruction)) return join(*phi);
    if (const auto *address = dyn_cast<GEPOperator>(&instruction)) return step(*address);
    if (const auto *load = dyn_cast<LoadInst>(&instruction)) return read(*load);
    if (const auto *call = dyn_cast<CallInst>(&instruction)) return intrinsic(*call);
    if (const auto *select = dyn_cast<SelectInst>(&instruction))
        return Z3_mk_ite(z3, isTrue(of(select->getCondition())), of(select->getTrueValue()),
                         of(select->getFalseValue()));
    if (isa<FreezeInst>(instruction)) return of(instruction.getOperand(0));
    if (const auto *cast = dyn_cast<CastInst>(&instruction)) {
        Z3_ast from = of(cast->getOperand(0));
        unsigned had = width(cast->getSrcTy()), has = width(cast->getDestTy());
        if (isa<SExtInst>(cast)) return Z3_mk_sign_ext(z3, has - had, from);
        if (has > had) return Z3_mk_zero_ext(z3, has - had, from);
        return has < had ? Z3_mk_extract(z3, has - 1, 0, from) : from;
    }
    return nullptr;
}

Z3_ast Terms::binary(const BinaryOperator &operation) {
    Z3_ast a = of(operation.getOperand(0)), b = of(operation.getOperand(1));
    switch (operation.getOpcode()) {
    case Instruction::Add:
        return Z3_mk_bvadd(z3, a, b);
    case Instruction::Sub:
        return Z3_mk_bvsub(z3, a, b);
    case Instruction::Mul:
        return Z3_mk_bvmul(z3, a, b);
    case Instruction::And:
        return Z3_mk_bvand(z3, a, b);
    case Instruction::Or:
        return Z3_mk_bvor(z3, a, b);
    case Instruction::Xor:
        return Z3_mk_bvxor(z3, a, b);
    case Instruction::Shl:
        return Z3_mk_bvshl(z3, a, b);
    case Instruction::LShr:
        return Z3_mk_bvlshr(z3, a, b);
    case Instruction::AShr:
        return Z3_mk_bvashr(z3, a, b);
    // Division is any value: solvers are slow at it, and packet processing hardly divides.
    default:
        return nullptr;
    }
}

Z3_ast Terms::compare(const ICmpInst &comparison) {
    Z3_ast a = of(comparison.getOperand(0)), b = of(comparison.getOperand(1));
    switch (comparison.getPredicate()) {
    case CmpInst::ICMP_EQ:
        return truth(Z3_mk_eq(z3, a, b));
    case CmpInst::ICMP_NE:
        return truth(Z3_mk_not(z3, Z3_mk_eq(z3, a, b)));
    case CmpInst::ICMP_UGT:
        return truth(Z3_mk_bvugt(z3, a, b));
    case CmpInst::ICMP_UGE:
        return truth(Z3_mk_bvuge(z3, a, b));
    case CmpInst::ICMP_ULT:
        return truth(Z3_mk_bvult(z3, a, b));
    case CmpInst::ICMP_ULE:
        return truth(Z3_mk_bvule(z3, a, b));
    case CmpInst::ICMP_SGT:
        return truth(Z3_mk_bvsgt(z3, a, b));
    case CmpInst::ICMP_SGE:
        return truth(Z3_mk_bvsge(z3, a, b));
    case CmpInst::ICMP_SLT:
        return truth(Z3_mk_bvslt(z3, a, b));
    case CmpInst::ICMP_SLE:
        return truth(Z3_mk_bvsle(z3, a, b));
    default:
        return nullptr;
    }
}

Z3_ast Terms::step(const GEPOperator &address) {
    if (!address.getType()->isPointerTy()) return nullptr;
    Z3_ast at = of(address.getPointerOperand());
    for (auto index = gep_type_begin(address), end = gep_type_end(address); index != end; ++index) {
        if (StructType *structure = index.getStructTypeOrNull()) {
            unsigned field = cast<ConstantInt>(index.getOperand())->getZExtValue();
            uint64_t offset = layout.getStructLayout(structure)->getElementOffset(field).getFixedValue();
            at = Z3_mk_bvadd(z3, at, number(offset, 64));
            continue;
        }
        if (!index.getOperand()->getType()->isIntegerTy()) return nullptr;
        unsigned bits = width(index.getOperand()->getType());
        if (bits > 64) return nullptr;
        Z3_ast count = of(index.getOperand());
        if (bits < 64) count = Z3_mk_sign_ext(z3, 64 - bits, count);
        uint64_t size = index.getSequentialElementStride(layout).getFixedValue();
        at = Z3_mk_bvadd(z3, at, Z3_mk_bvmul(z3, count, number(size, 64)));
    }
    return at;
}

Z3_ast Terms::join(const PHINode &phi) {
    const BasicBlock *block = phi.getParent();
    for (const BasicBlock *from : phi.blocks())
        if (backEdges.contains({from, block})) return nullptr;
    Z3_ast value = of(phi.getIncomingValue(0));
    for (unsigned i = 1; i < phi.getNumIncomingValues(); ++i)
        value = Z3_mk_ite(z3, edge(phi.getIncomingBlock(i), block), of(phi.getIncomingValue(i)), value);
    return value;
}

Z3_ast Terms::intrinsic(const CallInst &call) {
    auto argument = [&](unsigned i) { return of(call.getArgOperand(i)); };
    switch (call.getIntrinsicID()) {
    case Intrinsic::bswap: {
        unsigned bits = width(call.getType());
        Z3_ast value = argument(0), swapped = Z3_mk_extract(z3, 7, 0, value);
        for (unsigned at = 8; at < bits; at += 8)
            swapped = Z3_mk_concat(z3, swapped, Z3_mk_extract(z3, at + 7, at, value));
        return swapped;
    }
    case Intrinsic::umin:
        return Z3_mk_ite(z3, Z3_mk_bvult(z3, argument(0), argument(1)), argument(0), argument(1));
    case Intrinsic::umax:
        return Z3_mk_ite(z3, Z3_mk_bvugt(z3, argument(0), argument(1)), argument(0), argument(1));
    case Intrinsic::smin:
        return Z3_mk_ite(z3, Z3_mk_bvslt(z3, argument(0), argument(1)), argument(0), argument(1));
    case Intrinsic::smax:
        return Z3_mk_ite(z3, Z3_mk_bvsgt(z3, argument(0), argument(1)), argument(0), argument(1));
    default:
        return nullptr;
    }
}

/// What a pointer is found by: a parameter, or the global whose value it was once.
const Value *Terms::baseOf(const Value *pointer) const {
    const Value *object = getUnderlyingObject(pointer, 0);
    if (const auto *load = dyn_cast<LoadInst>(object)) object = load->getPointerOperand()->stripPointerCasts();
    return is_contained(memories, object) ? object : nullptr;
}

Z3_ast Terms::read(const LoadInst &load) {
    const Value *base = baseOf(load.getPointerOperand());
    // What a global of another type holds is no pointer to it, but it.
    const auto *global = dyn_cast_or_null<GlobalVariable>(base);
    bool isPointer = global && global->getValueType()->isPointerTy();
    if (!base || (isPointer && getUnderlyingObject(load.getPointerOperand(), 0) == base)) return nullptr;
    unsigned bytes = layout.getTypeStoreSize(load.getType()).getFixedValue();
    if (bytes * 8 != width(load.getType())) return nullptr;
    // The base itself is an unknown address; reads are at their distance from it.
    Z3_ast offset = Z3_mk_bvsub(z3, of(load.getPointerOperand()), of(getUnderlyingObject(load.getPointerOperand(), 0)));
    Z3_sort array = Z3_mk_array_sort(z3, Z3_mk_bv_sort(z3, 64), Z3_mk_bv_sort(z3, 8));
    Z3_ast memory = Z3_mk_const(z3, Z3_mk_int_symbol(z3, find(memories, base) - memories.begin()), array);
    Z3_ast value = nullptr;
    for (unsigned i = 0; i < bytes; ++i) {
        Z3_ast byte = Z3_mk_select(z3, memory, Z3_mk_bvadd(z3, offset, number(i, 64)));
        value = value ? Z3_mk_concat(z3, byte, value) : byte;
    }
    packetReads.push_back({base, offset, bytes, value});
    return value;
}

Z3_ast Terms::taken(const BasicBlock *block, unsigned index) {
    const Instruction *end = block->getTerminator();
    if (const auto *branch = dyn_cast<BranchInst>(end)) {
        if (branch->isUnconditional()) return Z3_mk_true(z3);
        Z3_ast condition = isTrue(of(branch->getCondition()));
        return index ? Z3_mk_not(z3, condition) : condition;
    }
    const auto *choice = dyn_cast<SwitchInst>(end);
    if (!choice || width(choice->getCondition()->getType()) > 64) return Z3_mk_true(z3);
    Z3_ast value = of(choice->getCondition());
    std::vector<Z3_ast> cases;
    for (auto one : choice->cases())
        if (!index || one.getSuccessorIndex() == index) cases.push_back(Z3_mk_eq(z3, value, of(one.getCaseValue())));
    Z3_ast some = cases.empty() ? Z3_mk_false(z3) : Z3_mk_or(z3, cases.size(), cases.data());
    return index ? some : Z3_mk_not(z3, some);
}

Z3_ast Terms::edge(const BasicBlock *from, const BasicBlock *to) {
    std::vector<Z3_ast> ways;
    const Instruction *end = from->getTerminator();
    for (unsigned i = 0; i < end->getNumSuccessors(); ++i)
        if (end->getSuccessor(i) == to) ways.push_back(taken(from, i));
    Z3_ast both[] = {reached(from), Z3_mk_or(z3, ways.size(), ways.data())};
    return Z3_mk_and(z3, 2, both);
}

Z3_ast Terms::reached(const BasicBlock *block) {
    auto found = reach.find(block);
    if (found != reach.end()) return found->second;
    std::vector<Z3_ast> ways;
    for (const BasicBlock *from : predecessors(block))
        if (!backEdges.contains({from, block})) ways.push_back(edge(from, block));
    Z3_ast condition = block->isEntryBlock() ? Z3_mk_true(z3) : Z3_mk_or(z3, ways.size(), ways.data());
    return reach[block] = condition;
}

Z3_solver boundedSolver(Z3_context z3, unsigned cost) {
    Z3_solver solver = Z3_mk_simple_solver(z3);
    Z3_solver_inc_ref(z3, solver);
    Z3_params parameters = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, parameters);
    Z3_params_set_uint(z3, parameters, Z3_mk_string_symbol(z3, "rlimit"), cost);
    Z3_solver_set_params(z3, solver, parameters);
    Z3_params_dec_ref(z3, parameters);
    return solver;
}

} // namespace catena
