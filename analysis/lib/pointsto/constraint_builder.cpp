// The constraints of the program's own code: one rule for every kind of instruction.
#include "pointsto/constraint_builder.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IntrinsicInst.h"
#include <numeric>

using namespace llvm;

namespace catena {

bool mayHoldPointers(const Type *type) {
    if (type->isPointerTy()) return true;
    if (type->isIntegerTy()) return type->getIntegerBitWidth() >= 64;
    if (const auto *vector = dyn_cast<VectorType>(type)) return mayHoldPointers(vector->getElementType());
    if (const auto *array = dyn_cast<ArrayType>(type)) return mayHoldPointers(array->getElementType());
    if (const auto *structure = dyn_cast<StructType>(type))
        return any_of(structure->elements(), [](const Type *element) { return mayHoldPointers(element); });
    return false;
}

const Function *namedCallee(const CallBase &call) {
    return dyn_cast<Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
}

namespace {

/// Return whether a call through a pointer can have meant a function. Types need not agree, for programs cast pointers
/// to functions; but a function that takes more than it is given, or returns nothing where a result is used, would work
/// with what happens to be in registers (C17 6.5.2.2, paragraph 6).
bool mayCall(const CallBase &call, const Function &callee) {
    if (callee.arg_size() > call.arg_size()) return false;
    if (!call.use_empty() && callee.getReturnType()->isVoidTy()) return false;
    for (unsigned i = 0; i < callee.arg_size(); ++i)
        if (call.getArgOperand(i)->getType()->isFloatingPointTy() != callee.getArg(i)->getType()->isFloatingPointTy())
            return false;
    return true;
}

} // namespace

ConstraintBuilder::ConstraintBuilder(const Module &program, const LibraryEffects &library, Memory &memory,
                                     Solver &solver, const PointsToOptions &options)
    : program(program), library(library), memory(memory), solver(solver), options(options), virtualTables(program),
      thrown(solver.newNode()) {
    solver.tablesApart = !virtualTables.tables().empty();
    solver.onCallee = [this](unsigned number, const GlobalObject *callee) {
        const Site site = sites[number];
        const auto *function = dyn_cast<Function>(callee);
        auto bindMethod = [&](const Function &method) {
            if (mayCall(*site.call, method)) bind(*site.call, method);
        };
        if (!function && site.inTable)
            virtualTables.functionsAt(*cast<GlobalVariable>(callee), *site.inTable, bindMethod);
        if (!function || site.inTable) return;
        if (site.effect)
            bindCallback(*site.call, *site.effect, *function);
        else
            bindMethod(*function);
    };
}

void ConstraintBuilder::build() {
    if (options.cloneAllocators) findAllocators();
    if (solver.tablesApart) findObjectsOfClasses();
    for (const GlobalVariable &global : program.globals()) {
        ObjectId object = memory.object(Object::Global, &global, 0, global.getValueType());
        (void)node(&global);
        if (global.hasInitializer()) {
            initialize(global.getInitializer(), object, 0);
        } else {
            // A variable of a library (stderr, environ) points to what belongs to the library.
            Location own = memory.at(memory.object(Object::Library, &global, 1), 0);
            solver.address(solver.contentOf(memory.at(object, 0)), own);
            solver.address(solver.contentOf(own), own);
        }
    }
    for (const Function &function : program) (void)node(&function);
    for (const Function &function : program) {
        if (function.isDeclaration()) continue;
        for (const Argument &parameter : function.args())
            if (parameter.hasByValAttr()) {
                ObjectId copy = memory.object(Object::Stack, &parameter, 0, parameter.getParamByValType());
                solver.address(node(&parameter), memory.at(copy, 0));
            }
        // The visitor reads only; it has no face for constant instructions.
        visit(const_cast<Function &>(function));
    }
    // The program's arguments: strings that nothing else points to.
    const Function *start = program.getFunction("main");
    if (start && !start->isDeclaration())
        for (const Argument &parameter : start->args())
            if (parameter.getType()->isPointerTy()) {
                Location given = memory.at(memory.object(Object::Library, &parameter), 0);
                solver.address(node(&parameter), given);
                solver.address(solver.contentOf(given), given);
            }
}

void ConstraintBuilder::initialize(const Constant *value, ObjectId object, uint64_t offset) {
    if (isa<ConstantData>(value)) return;
    const DataLayout &layout = memory.dataLayout();
    if (const auto *aggregate = dyn_cast<ConstantAggregate>(value)) {
        Type *type = value->getType();
        for (unsigned i = 0; i < aggregate->getNumOperands(); ++i) {
            uint64_t at = 0;
            if (auto *structure = dyn_cast<StructType>(type))
                at = layout.getStructLayout(structure)->getElementOffset(i).getKnownMinValue();
            else
                at = i * layout.getTypeAllocSize(aggregate->getOperand(i)->getType()).getKnownMinValue();
            initialize(aggregate->getOperand(i), object, offset + at);
        }
        return;
    }
    if (!mayHoldPointers(value->getType())) return;
    solver.copy(node(value), solver.contentOf(memory.at(object, offset)));
}

NodeId ConstraintBuilder::nodeOrNothing(const Value *value) const {
    auto found = nodes.find(value);
    return found == nodes.end() ? Solver::nothing : found->second;
}

NodeId ConstraintBuilder::node(const Value *value) {
    if (!mayHoldPointers(value->getType()) || isa<ConstantData>(value)) return Solver::nothing;
    auto found = nodes.find(value);
    if (found != nodes.end()) return found->second;
    // Without fields a pointer into an object is a pointer to it.
    const auto *step = dyn_cast<GetElementPtrInst>(value);
    if (step && !memory.hasFields()) return nodes[value] = node(step->getPointerOperand());
    if (isa<FreezeInst>(value) || isa<CastInst>(value))
        if (const Value *same = cast<Instruction>(value)->getOperand(0); mayHoldPointers(same->getType()))
            return nodes[value] = node(same);
    if (const auto *load = dyn_cast<LoadInst>(value); load && !memory.hasFields())
        return nodes[value] = loadedBy(*load);
    if (const auto *call = dyn_cast<CallBase>(value))
        if (NodeId same = onlySource(*call)) return nodes[value] = same;
    NodeId id = nodes[value] = solver.newNode();
    if (const auto *constant = dyn_cast<Constant>(value))
        if (NodeId points = constantNode(constant)) solver.copy(points, id);
    return id;
}

/// Return the node of the one thing that a call returns, or nothing if there are others: then the call needs no node.
NodeId ConstraintBuilder::onlySource(const CallBase &call) {
    const Function *callee = namedCallee(call);
    if (!callee || callee->isIntrinsic() || allocators.contains(callee)) return Solver::nothing;
    if (!callee->isDeclaration()) return resultOf(*callee);
    const std::vector<Effect> *effects = library.find(callee->getName());
    NodeId only = Solver::nothing;
    for (const Effect &effect : effects ? *effects : std::vector<Effect>()) switch (effect.kind) {
        case Effect::ReturnsArgument:
            if (only != Solver::nothing) return Solver::nothing;
            only = argument(call, effect.a);
            break;
        case Effect::ReturnsFresh:
        case Effect::ReturnsOpaque:
        case Effect::ReturnsStatic:
        case Effect::ReturnsInto:
        case Effect::ReturnsCast:
        case Effect::ReturnsPointee:
        case Effect::ReturnsReached:
        case Effect::ReturnsKept:
        case Effect::ReturnsMemory:
            return Solver::nothing;
        default:
            break;
        }
    return only;
}

/// Return whether nothing in a constant leads anywhere: text, numbers.
static bool pointsNowhere(const Constant *value) {
    if (isa<ConstantData>(value)) return true;
    return isa<ConstantAggregate>(value) &&
           all_of(value->operands(), [](const Use &part) { return pointsNowhere(cast<Constant>(part.get())); });
}

/// Return a node for where a constant points.
NodeId ConstraintBuilder::constantNode(const Constant *constant) {
    NodeId id = solver.newNode();
    if (const auto *global = dyn_cast<GlobalVariable>(constant)) {
        // Text and numbers that cannot be written: no dependence passes through them, nor does a pointer.
        if (global->isConstant() && global->hasInitializer() && pointsNowhere(global->getInitializer())) return id;
        solver.address(id, memory.at(memory.object(Object::Global, global, 0, global->getValueType()), 0));
    } else if (const auto *function = dyn_cast<Function>(constant)) {
        solver.address(id, memory.at(memory.object(Object::Function, function), 0));
    } else if (const auto *alias = dyn_cast<GlobalAlias>(constant)) {
        solver.copy(node(alias->getAliasee()), id);
    } else if (const auto *step = dyn_cast<GEPOperator>(constant)) {
        stepThrough(*step, id);
    } else if (!isa<BlockAddress>(constant)) {
        for (const Use &operand : constant->operands()) solver.copy(node(operand.get()), id);
    }
    return id;
}

void ConstraintBuilder::visitAllocaInst(AllocaInst &cell) {
    Type *type = cell.isArrayAllocation() ? nullptr : cell.getAllocatedType();
    solver.address(node(&cell), memory.at(memory.object(Object::Stack, &cell, 0, type), 0));
}

void ConstraintBuilder::visitLoadInst(LoadInst &load) {
    // Who asks what a load touches wants its pointer's node, whatever it loads.
    NodeId pointer = node(load.getPointerOperand()), to = node(&load);
    if (!memory.hasFields()) return;
    if (solver.tablesApart && isOnlyCalled(load))
        solver.copy(solver.loaded(pointer), to);
    else
        solver.load(pointer, to, sizeOf(load.getType()));
}

void ConstraintBuilder::visitStoreInst(StoreInst &store) {
    const Value *value = store.getValueOperand();
    solver.store(node(value), node(store.getPointerOperand()), sizeOf(value->getType()));
}

void ConstraintBuilder::visitAtomicRMWInst(AtomicRMWInst &change) {
    NodeId pointer = node(change.getPointerOperand());
    solver.load(pointer, node(&change), 8);
    solver.store(node(change.getValOperand()), pointer, 8);
}

void ConstraintBuilder::visitAtomicCmpXchgInst(AtomicCmpXchgInst &change) {
    NodeId pointer = node(change.getPointerOperand());
    solver.load(pointer, node(&change), 8);
    solver.store(node(change.getNewValOperand()), pointer, 8);
}

void ConstraintBuilder::visitGetElementPtrInst(GetElementPtrInst &step) {
    stepThrough(cast<GEPOperator>(step), node(&step));
}

void ConstraintBuilder::stepThrough(const GEPOperator &step, NodeId to) {
    const DataLayout &layout = memory.dataLayout();
    MapVector<Value *, APInt> variable;
    APInt constant(layout.getIndexTypeSizeInBits(step.getType()), 0);
    NodeId from = node(step.getPointerOperand());
    if (!step.collectOffset(layout, constant.getBitWidth(), variable, constant)) {
        solver.step(from, to, Solver::anywhere);
        return;
    }
    int64_t offset = constant.getSExtValue();
    // An index of few values (a bit): each of them.
    if (variable.size() == 1) {
        const auto &[index, scale] = variable.front();
        ConstantRange range = computeConstantRange(index, true).sextOrTrunc(64);
        constexpr uint64_t few = 8;
        if (!range.isSizeLargerThan(few)) {
            for (APInt value = range.getLower(); value != range.getUpper(); ++value)
                solver.step(from, to, {offset + value.getSExtValue() * scale.getSExtValue()});
            return;
        }
    }
    // Several variable indices: any multiple of their greatest common divisor.
    uint64_t stride = 0;
    for (const auto &[index, scale] : variable) stride = std::gcd(stride, scale.abs().getZExtValue());
    solver.step(from, to, {offset, stride});
}

/// Addresses as integers: sums and tags in low bits are followed, other results may lie anywhere in the object.
void ConstraintBuilder::visitBinaryOperator(BinaryOperator &sum) {
    if (!mayHoldPointers(sum.getType())) return;
    const auto *constant = dyn_cast<ConstantInt>(sum.getOperand(1));
    Solver::Distance distance = Solver::anywhere;
    constexpr int64_t lowBits = 15, shortest = int64_t{1} << 40;
    int64_t value = constant && constant->getBitWidth() <= 64 ? constant->getSExtValue() : 0;
    switch (sum.getOpcode()) {
    // Products, quotients, remainders and shifts of an address are not addresses any more.
    case Instruction::Mul:
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
        return;
    case Instruction::Add:
        if (constant) distance = {value};
        break;
    case Instruction::Sub:
        if (constant) distance = {-value};
        // What is taken off is no part of the address that remains; between two addresses lies a length.
        if (!isa<PtrToIntOperator>(sum.getOperand(1))) solver.step(node(sum.getOperand(0)), node(&sum), distance);
        return;
    case Instruction::And:
        // Only a tag is left, or a flag: too little of an address to make it again.
        if (constant && value >= 0 && value < shortest) return;
        if (constant && value < 0 && ~value <= lowBits) distance = {0, 0, static_cast<uint8_t>(~value), 0};
        break;
    case Instruction::Or:
        if (constant && value >= 0 && value <= lowBits) distance = {0, 0, 0, static_cast<uint8_t>(value)};
        break;
    default:
        break;
    }
    for (const Use &operand : sum.operands()) {
        solver.step(node(operand.get()), node(&sum), distance);
        if (distance.stride) solver.copy(node(operand.get()), node(&sum));
    }
}

void ConstraintBuilder::visitInstruction(Instruction &instruction) {
    if (!mayHoldPointers(instruction.getType())) return;
    for (const Use &operand : instruction.operands()) solver.copy(node(operand.get()), node(&instruction));
}

NodeId ConstraintBuilder::resultOf(const Function &function) {
    if (!mayHoldPointers(function.getReturnType())) return Solver::nothing;
    auto [at, isNew] = results.try_emplace(&function, Solver::nothing);
    if (isNew) at->second = solver.newNode();
    return at->second;
}

void ConstraintBuilder::visitReturnInst(ReturnInst &end) {
    if (const Value *value = end.getReturnValue()) solver.copy(node(value), resultOf(*end.getFunction()));
}

void ConstraintBuilder::visitVAArgInst(VAArgInst &argument) {
    // The list points to the variable arguments.
    NodeId list = solver.newNode();
    solver.load(node(argument.getPointerOperand()), list, 24);
    solver.load(list, node(&argument), 8);
}

void ConstraintBuilder::visitLandingPadInst(LandingPadInst &pad) { solver.copy(thrown, node(&pad)); }

void ConstraintBuilder::callThrough(NodeId pointer, const CallBase &call, const Effect *effect) {
    sites.push_back({&call, effect});
    solver.call(pointer, static_cast<unsigned>(sites.size() - 1));
}

NodeId ConstraintBuilder::argument(const CallBase &call, unsigned number) {
    return number < call.arg_size() ? node(call.getArgOperand(number)) : Solver::nothing;
}

void ConstraintBuilder::visitCallBase(CallBase &call) {
    for (const Use &operand : call.args()) (void)node(operand.get());
    if (call.isInlineAsm()) {
        for (const Use &operand : call.args()) solver.copy(node(operand.get()), node(&call));
        return;
    }
    if (const Function *callee = namedCallee(call)) {
        if (callee->getName() == "__cxa_throw") solver.copy(argument(call, 0), thrown);
        bind(call, *callee);
        return;
    }
    callThrough(node(call.getCalledOperand()), call, nullptr);
    if (!solver.tablesApart) return;
    if (std::optional<TableCall> found = tableCall(call, memory.dataLayout())) {
        sites.push_back({&call, nullptr, found->offset});
        solver.call(node(found->table), static_cast<unsigned>(sites.size() - 1));
    }
}

void ConstraintBuilder::bind(const CallBase &call, const Function &callee) {
    auto &there = callees[&call];
    if (is_contained(there, &callee)) return;
    if (callee.isIntrinsic()) {
        bindIntrinsic(call, callee);
        return;
    }
    there.push_back(&callee);
    if (callee.isDeclaration()) {
        bindLibrary(call, callee);
        return;
    }
    for (unsigned i = 0; i < call.arg_size(); ++i) {
        NodeId given = argument(call, i);
        if (i >= callee.arg_size()) {
            if (!callee.isVarArg() || !given) continue;
            Location rest = memory.at(memory.object(Object::Variadic, &callee, 1), 0);
            solver.copy(given, solver.contentOf(rest));
            continue;
        }
        const Argument *parameter = callee.getArg(i);
        if (parameter->hasByValAttr())
            solver.copyMemory(given, node(parameter), sizeOf(parameter->getParamByValType()));
        else
            solver.copy(given, arrival(*parameter));
    }
    auto allocator = allocators.find(&callee);
    if (allocator != allocators.end())
        bindAllocator(call, callee, allocator->second);
    else
        solver.copy(resultOf(callee), node(&call));
}

} // namespace catena
