// Virtual tables as compilers lay them out: {offset to the top, type information, functions}, once for every base that
// has virtual functions. Objects point behind the type information.
#include "pointsto/virtual_tables.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

bool isVirtualTable(const GlobalVariable &global) {
    // _ZTC: tables of bases while objects are constructed.
    return global.isConstant() && global.hasInitializer() &&
           (global.getName().starts_with("_ZTV") || global.getName().starts_with("_ZTC"));
}

std::optional<TableCall> tableCall(const CallBase &call, const DataLayout &layout) {
    const auto *function = dyn_cast<LoadInst>(call.getCalledOperand());
    if (!function) return {};
    const Value *place = function->getPointerOperand();
    APInt offset(layout.getIndexTypeSizeInBits(place->getType()), 0);
    if (const auto *step = dyn_cast<GetElementPtrInst>(place)) {
        if (!step->accumulateConstantOffset(layout, offset)) return {};
        place = step->getPointerOperand();
    }
    const auto *table = dyn_cast<LoadInst>(place);
    if (!table) return {};
    return TableCall{table, offset.getSExtValue()};
}

bool mayReadTable(const LoadInst &load) {
    if (!load.getType()->isPointerTy() && !load.getType()->isIntegerTy(64)) return false;
    const auto *step = dyn_cast<GEPOperator>(load.getPointerOperand());
    const auto *structure = step ? dyn_cast<StructType>(step->getSourceElementType()) : nullptr;
    return !structure || all_of(structure->elements(), [](const Type *element) { return element->isPointerTy(); });
}

/// Return the type information that a table names before an address point.
static const GlobalVariable *informationBefore(const GlobalVariable &table) {
    for (const Use &group : table.getInitializer()->operands())
        if (const auto *entries = dyn_cast<ConstantArray>(group.get()))
            for (const Use &entry : entries->operands())
                if (const auto *global = dyn_cast<GlobalVariable>(entry->stripPointerCasts());
                    global && global->getName().starts_with("_ZTI"))
                    return global;
    return nullptr;
}

VirtualTables::VirtualTables(const Module &program) : program(program) {
    const DataLayout &layout = program.getDataLayout();
    for (const GlobalVariable &global : program.globals()) {
        if (!isVirtualTable(global)) continue;
        all.push_back(&global);
        for (const User *user : global.users()) {
            const auto *step = dyn_cast<GEPOperator>(user);
            APInt offset(layout.getIndexTypeSizeInBits(global.getType()), 0);
            if (step && !step->accumulateConstantOffset(layout, offset)) continue;
            auto &points = addressPoints[&global];
            if (!is_contained(points, offset.getZExtValue())) points.push_back(offset.getZExtValue());
        }
        for (const User *user : global.users()) makers(*user, global);
        Class &found = classes[&global];
        if (const GlobalVariable *information = informationBefore(global))
            addLineage(*information, found);
        else
            found.open = true;
    }
}

/// Note who makes objects point to a table, by any of its addresses.
void VirtualTables::makers(const User &user, const GlobalVariable &table) {
    if (isa<ICmpInst>(user)) return;
    if (const auto *store = dyn_cast<StoreInst>(&user)) {
        classes[&table].stores.push_back(store);
        return;
    }
    if (const auto *variable = dyn_cast<GlobalVariable>(&user)) {
        // Other tables and type information are no objects.
        if (!variable->getName().starts_with("_ZT")) classes[&table].constants.push_back(variable);
        return;
    }
    if (isa<Constant>(user)) {
        for (const User *outer : user.users()) makers(*outer, table);
        return;
    }
    classes[&table].escapes = true;
}

void VirtualTables::addLineage(const GlobalVariable &information, Class &found) const {
    if (is_contained(found.lineage, &information)) return;
    found.lineage.push_back(&information);
    if (!information.hasInitializer()) {
        found.open = true;
        return;
    }
    for (const Use &part : information.getInitializer()->operands())
        if (const auto *base = dyn_cast<GlobalVariable>(part->stripPointerCasts());
            base && base->getName().starts_with("_ZTI"))
            addLineage(*base, found);
}

void VirtualTables::functionsAt(const GlobalVariable &table, int64_t offset,
                                function_ref<void(const Function &)> visit) const {
    const DataLayout &layout = program.getDataLayout();
    const Constant *initializer = table.getInitializer();
    const auto *groups = dyn_cast<StructType>(initializer->getType());
    auto points = addressPoints.find(&table);
    if (!groups || points == addressPoints.end()) return;
    const StructLayout &places = *layout.getStructLayout(const_cast<StructType *>(groups));
    uint64_t entryBytes = layout.getPointerSize();
    for (uint64_t point : points->second) {
        if (point >= places.getSizeInBytes()) continue;
        unsigned group = places.getElementContainingOffset(point);
        const auto *entries = dyn_cast<ConstantArray>(initializer->getAggregateElement(group));
        int64_t at = static_cast<int64_t>(point - places.getElementOffset(group).getFixedValue()) + offset;
        if (!entries || at < 0 || at % entryBytes || at / entryBytes >= entries->getNumOperands()) continue;
        const Value *entry = entries->getOperand(at / entryBytes)->stripPointerCastsAndAliases();
        if (const auto *function = dyn_cast<Function>(entry)) visit(*function);
    }
}

const Argument &objectParameter(const Function &method) { return *method.getArg(method.hasStructRetAttr() ? 1 : 0); }

const GlobalVariable *VirtualTables::classOfMethod(const Function &method) const {
    const DISubprogram *described = method.getSubprogram();
    if (!described || method.arg_size() < (method.hasStructRetAttr() ? 2u : 1u)) return nullptr;
    if (const DISubprogram *declared = described->getDeclaration()) described = declared;
    const auto *inClass = dyn_cast_or_null<DICompositeType>(described->getScope());
    if (!inClass || !inClass->getIdentifier().starts_with("_ZTS")) return nullptr;
    const DISubroutineType *type = described->getType();
    if (!type || type->getTypeArray().size() < 2) return nullptr;
    const DIType *first = type->getTypeArray()[1];
    if (!first || !(first->getFlags() & DINode::FlagObjectPointer)) return nullptr;
    std::string mangled = method.getName().str();
    ItaniumPartialDemangler name;
    if (name.partialDemangle(mangled.c_str())) return nullptr;
    if (name.isCtorOrDtor() && !described->getName().starts_with("~")) return nullptr;
    const auto *information = program.getGlobalVariable(("_ZTI" + inClass->getIdentifier().substr(4)).str(), true);
    return information && information->hasInitializer() ? information : nullptr;
}

} // namespace catena
