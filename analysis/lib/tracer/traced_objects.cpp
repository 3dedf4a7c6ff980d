// Making variables into objects that the runtime can tell apart.
#include "tracer/traced_objects.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace catena {

namespace {

constexpr unsigned granule = 16;
constexpr uint32_t noVariable = UINT32_MAX;

Type *padded(Type *type) {
    Type *behind = ArrayType::get(Type::getInt8Ty(type->getContext()), granule);
    return StructType::get(type->getContext(), {type, behind});
}

} // namespace

TracedObjects::TracedObjects(Module &program)
    : program(program), context(program.getContext()), pointer(PointerType::get(context, 0)),
      word(Type::getInt64Ty(context)), number(Type::getInt32Ty(context)),
      variableType(StructType::get(context, {pointer, pointer, pointer, number, number})),
      globalType(StructType::get(context, {pointer, word, word})) {}

Constant *TracedObjects::text(StringRef text) {
    Constant *&known = texts[text];
    if (!known) {
        Constant *bytes = ConstantDataArray::getString(context, text);
        known = new GlobalVariable(program, bytes->getType(), true, GlobalValue::PrivateLinkage, bytes, "trace.text");
    }
    return known;
}

uint32_t TracedObjects::variable(const DIVariable &source, unsigned kind) {
    auto [at, isNew] = numbers.try_emplace(&source, variables.size());
    if (isNew) {
        std::string function;
        if (const auto *scope = dyn_cast_or_null<DILocalScope>(source.getScope()))
            function = scope->getSubprogram()->getName().str();
        variables.push_back(ConstantStruct::get(
            variableType, {text(source.getName()), text(source.getFilename()), text(function),
                           ConstantInt::get(number, source.getLine()), ConstantInt::get(number, kind)}));
    }
    return at->second;
}

void TracedObjects::addGlobals() {
    std::vector<GlobalVariable *> all;
    for (GlobalVariable &global : program.globals())
        if (sourceVariable(global) && global.hasInitializer() && !global.isThreadLocal() && !global.hasSection() &&
            !global.hasAppendingLinkage() && global.getValueType()->isSized())
            all.push_back(&global);
    for (GlobalVariable *global : all) {
        const DIGlobalVariable *source = sourceVariable(*global);
        Type *type = padded(global->getValueType());
        Constant *behind = Constant::getNullValue(cast<StructType>(type)->getElementType(1));
        Constant *initial = ConstantStruct::get(cast<StructType>(type), {global->getInitializer(), behind});
        auto linkage = global->hasCommonLinkage() ? GlobalValue::ExternalLinkage : global->getLinkage();
        auto *wider = new GlobalVariable(program, type, global->isConstant(), linkage, initial, "", global);
        wider->copyAttributesFrom(global);
        wider->setComdat(global->getComdat());
        wider->setAlignment(std::max(global->getAlign().valueOrOne(), Align(granule)));
        wider->takeName(global);
        uint64_t size = program.getDataLayout().getTypeAllocSize(global->getValueType());
        global->replaceAllUsesWith(wider);
        global->eraseFromParent();
        bool local = isa_and_nonnull<DILocalScope>(source->getScope());
        globals.push_back(ConstantStruct::get(globalType, {wider, ConstantInt::get(word, size),
                                                           ConstantInt::get(word, variable(*source, local ? 1 : 0))}));
    }
}

FunctionCallee TracedObjects::begins() {
    return program.getOrInsertFunction("catena_trace_local", Type::getVoidTy(context), pointer, word, number);
}

void TracedObjects::addCells(Function &function, bool all) {
    // Structs passed as a copy get a cell of their own, which can be aligned and padded as others are.
    for (Argument &parameter : function.args()) {
        if (!parameter.hasByValAttr()) continue;
        Type *type = parameter.getParamByValType();
        IRBuilder<> at(&*function.getEntryBlock().begin());
        AllocaInst *cell = at.CreateAlloca(padded(type));
        cell->setAlignment(std::max(parameter.getParamAlign().valueOrOne(), Align(granule)));
        const DILocalVariable *source = sourceLocal(parameter);
        uint64_t size = program.getDataLayout().getTypeAllocSize(type);
        at.CreateCall(begins(), {cell, ConstantInt::get(word, size),
                                 ConstantInt::get(number, source ? variable(*source, 3) : noVariable)});
        parameter.replaceAllUsesWith(cell);
        at.CreateMemCpy(cell, Align(granule), &parameter, parameter.getParamAlign(), size);
        cells.insert(cell);
    }
    std::vector<AllocaInst *> found;
    for (Instruction &instruction : instructions(function))
        if (auto *cell = dyn_cast<AllocaInst>(&instruction))
            if (cell->getAllocatedType()->isSized() && !cell->isUsedWithInAlloca() && !cells.contains(cell) &&
                (all || !isAllocaPromotable(cell)))
                found.push_back(cell);
    for (AllocaInst *cell : found) {
        const DILocalVariable *source = sourceLocal(*cell);
        uint32_t name = source ? variable(*source, source->isParameter() ? 3 : 2) : noVariable;
        uint64_t element = program.getDataLayout().getTypeAllocSize(cell->getAllocatedType());
        IRBuilder<> at(cell);
        AllocaInst *wider;
        Value *size;
        if (cell->isArrayAllocation()) {
            Value *count = at.CreateZExtOrTrunc(cell->getArraySize(), word);
            size = at.CreateMul(count, ConstantInt::get(word, element));
            wider = at.CreateAlloca(at.getInt8Ty(), at.CreateAdd(size, ConstantInt::get(word, granule)));
        } else {
            size = ConstantInt::get(word, element);
            wider = at.CreateAlloca(padded(cell->getAllocatedType()));
        }
        wider->setAlignment(std::max(cell->getAlign(), Align(granule)));
        at.CreateCall(begins(), {wider, size, ConstantInt::get(number, name)});
        cell->replaceAllUsesWith(wider);
        cell->eraseFromParent();
        cells.insert(wider);
    }
}

Constant *TracedObjects::table(ArrayRef<Constant *> rows, StructType *type) {
    Constant *all = ConstantArray::get(ArrayType::get(type, rows.size()), rows);
    return new GlobalVariable(program, all->getType(), true, GlobalValue::PrivateLinkage, all, "trace.table");
}

void TracedObjects::announce(Function &main) {
    FunctionCallee announced =
        program.getOrInsertFunction("catena_trace_program", Type::getVoidTy(context), pointer, number, pointer, number);
    IRBuilder<> at(&*main.getEntryBlock().begin());
    at.CreateCall(announced, {table(variables, variableType), ConstantInt::get(number, variables.size()),
                              table(globals, globalType), ConstantInt::get(number, globals.size())});
}

} // namespace catena
