// Figure 4.6 of Khalid's dissertation:
//
//     1 persistVars = {}
//     2 persistVars = persistVars U GlobalVarDecls(prog)
//     3 foreach proc in Procedures(prog) do
//     4     persistVars = persistVars U StaticVarDecls(proc)
//     5 persistVars = persistVars U LocalVarDecls(loopProc)
//     6 persistVars = persistVars U FormalParams(loopProc)
//
// In LLVM static variables are global ones whose scope is a procedure, and parameters of the loop procedure are cells
// like its locals, because the loop procedure's cells are not promoted. What lies on the heap is considered through the
// variables from which it can be reached.
#include "statealyzr/persistent_variables.h"

#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

namespace {

bool leadsToChangeable(const Constant *value, SmallPtrSetImpl<const Constant *> &seen) {
    if (!seen.insert(value).second || isa<ConstantData>(value) || isa<Function>(value)) return false;
    if (const auto *global = dyn_cast<GlobalVariable>(value)) {
        if (!global->isConstant()) return true;
        return global->hasInitializer() && leadsToChangeable(global->getInitializer(), seen);
    }
    return any_of(value->operands(),
                  [&](const Use &operand) { return leadsToChangeable(cast<Constant>(operand.get()), seen); });
}

Variable describe(const Value *value, const DIVariable *source, Variable::Kind kind, const PointsTo &pointsTo) {
    Variable variable;
    variable.value = value;
    variable.source = source;
    variable.name = source->getName().str();
    variable.type = typeName(source->getType());
    variable.kind = kind;
    variable.declared.file = source->getFilename().str();
    variable.declared.line = source->getLine();
    if (const auto *scope = dyn_cast_or_null<DILocalScope>(source->getScope()))
        variable.declared.function = scope->getSubprogram()->getName().str();
    if (const Object *object = pointsTo.memory().find(value)) variable.own = pointsTo.locationsOf(*object);
    variable.reach = pointsTo.reachable(variable.own);
    return variable;
}

} // namespace

std::vector<Variable> persistentVariables(const Module &program, const PointsTo &pointsTo,
                                          const std::vector<LoopProcedure> &loops) {
    std::vector<Variable> variables;
    for (const GlobalVariable &global : program.globals()) {
        const DIGlobalVariable *source = sourceVariable(global);
        if (!source || global.isDeclaration()) continue;
        SmallPtrSet<const Constant *, 8> seen;
        if (global.isConstant() && !leadsToChangeable(&global, seen)) continue;
        bool local = isa_and_nonnull<DILocalScope>(source->getScope());
        variables.push_back(describe(&global, source, local ? Variable::Static : Variable::Global, pointsTo));
    }
    for (const LoopProcedure &loop : loops) {
        auto add = [&](const Value &cell) {
            if (const DILocalVariable *source = sourceLocal(cell))
                variables.push_back(
                    describe(&cell, source, source->isParameter() ? Variable::Parameter : Variable::Local, pointsTo));
        };
        for (const Argument &parameter : loop.function->args())
            if (parameter.hasByValAttr()) add(parameter);
        for (const Instruction &instruction : instructions(*loop.function))
            if (isa<AllocaInst>(instruction)) add(instruction);
    }
    return variables;
}

} // namespace catena
