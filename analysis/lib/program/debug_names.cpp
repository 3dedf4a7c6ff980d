// Reading debug information. Both of LLVM 19's forms of variable records are understood: intrinsics and records.
#include "program/debug_names.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace catena {

Place placeOf(const Instruction &instruction) {
    Place place;
    const DISubprogram *program = instruction.getFunction()->getSubprogram();
    place.function = program ? program->getName().str() : instruction.getFunction()->getName().str();
    if (const DILocation *at = instruction.getDebugLoc()) {
        place.file = at->getFilename().str();
        place.line = at->getLine();
    } else if (program) {
        place.file = program->getFilename().str();
    }
    return place;
}

const DIType *strip(const DIType *type) {
    while (const auto *derived = dyn_cast_or_null<DIDerivedType>(type)) {
        unsigned tag = derived->getTag();
        if (tag != dwarf::DW_TAG_typedef && tag != dwarf::DW_TAG_const_type && tag != dwarf::DW_TAG_volatile_type &&
            tag != dwarf::DW_TAG_restrict_type && tag != dwarf::DW_TAG_atomic_type)
            break;
        type = derived->getBaseType();
    }
    return type;
}

namespace {

std::string arrayName(const DICompositeType *array, std::string element) {
    for (const DINode *range : array->getElements()) {
        const auto *sub = dyn_cast<DISubrange>(range);
        auto *count = sub ? dyn_cast_if_present<ConstantInt *>(sub->getCount()) : nullptr;
        element += count && !count->isMinusOne() ? "[" + std::to_string(count->getZExtValue()) + "]" : "[]";
    }
    return element;
}

std::string compositeName(const DICompositeType *type) {
    std::string name = type->getName().empty() ? "{...}" : type->getName().str();
    switch (type->getTag()) {
    case dwarf::DW_TAG_structure_type:
        return "struct " + name;
    case dwarf::DW_TAG_union_type:
        return "union " + name;
    case dwarf::DW_TAG_enumeration_type:
        return "enum " + name;
    default:
        return name;
    }
}

std::string derivedName(const DIDerivedType *type) {
    const DIType *base = type->getBaseType();
    switch (type->getTag()) {
    case dwarf::DW_TAG_typedef:
        return type->getName().str();
    case dwarf::DW_TAG_const_type:
        return "const " + typeName(base);
    case dwarf::DW_TAG_volatile_type:
        return "volatile " + typeName(base);
    case dwarf::DW_TAG_pointer_type: {
        if (isa_and_nonnull<DISubroutineType>(base)) return "function *";
        std::string name = typeName(base);
        return name + (StringRef(name).ends_with("*") ? "*" : " *");
    }
    default:
        return typeName(base);
    }
}

/// Call `visit` with every record that says a variable lives in a cell or a value.
template <typename Visit> void forVariables(const Function &function, Visit visit) {
    for (const BasicBlock &block : function)
        for (const Instruction &instruction : block) {
            for (const DbgVariableRecord &record : filterDbgVars(instruction.getDbgRecordRange()))
                visit(record.getVariable());
            if (const auto *intrinsic = dyn_cast<DbgVariableIntrinsic>(&instruction)) visit(intrinsic->getVariable());
        }
}

} // namespace

std::string typeName(const DIType *type) {
    if (!type) return "void";
    if (const auto *composite = dyn_cast<DICompositeType>(type)) {
        if (composite->getTag() == dwarf::DW_TAG_array_type)
            return arrayName(composite, typeName(composite->getBaseType()));
        return compositeName(composite);
    }
    if (const auto *derived = dyn_cast<DIDerivedType>(type)) return derivedName(derived);
    if (isa<DISubroutineType>(type)) return "function";
    return type->getName().str();
}

const DIGlobalVariable *sourceVariable(const GlobalVariable &global) {
    SmallVector<DIGlobalVariableExpression *, 1> expressions;
    global.getDebugInfo(expressions);
    return expressions.empty() ? nullptr : expressions.front()->getVariable();
}

const DILocalVariable *sourceLocal(const Value &cell) {
    auto *value = const_cast<Value *>(&cell);
    for (DbgVariableRecord *record : findDVRDeclares(value)) return record->getVariable();
    for (DbgDeclareInst *declare : findDbgDeclares(value)) return declare->getVariable();
    return nullptr;
}

namespace {

/// Call with the files that debug information names, and where they are. Those of types come last.
void forFiles(const Module &program, function_ref<void(const DIFile &, const std::string &)> use) {
    auto add = [&](const DIScope *scope) {
        const DIFile *file = scope ? scope->getFile() : nullptr;
        if (!file || file->getFilename().empty()) return;
        SmallString<128> path(file->getFilename());
        if (sys::path::is_relative(path)) path = (file->getDirectory() + "/" + file->getFilename()).str();
        use(*file, path.str().str());
    };
    DebugInfoFinder finder;
    finder.processModule(program);
    for (const DISubprogram *procedure : finder.subprograms()) add(procedure);
    for (const DIScope *scope : finder.scopes()) add(scope);
    for (const DICompileUnit *unit : finder.compile_units()) add(unit);
    for (const DIGlobalVariableExpression *variable : finder.global_variables())
        if (const DIFile *file = variable->getVariable()->getFile()) add(file);
    for (const DIType *type : finder.types()) add(type);
}

} // namespace

std::map<std::string, std::string> sourcePaths(const Module &program) {
    std::map<std::string, std::string> paths;
    forFiles(program,
             [&](const DIFile &file, const std::string &path) { paths.try_emplace(file.getFilename().str(), path); });
    return paths;
}

std::set<std::string> sourceFiles(const Module &program) {
    std::set<std::string> paths;
    forFiles(program, [&](const DIFile &file, const std::string &path) {
        paths.insert(path);
        paths.insert(file.getFilename().str());
    });
    return paths;
}

unsigned countVariables(const Module &program) {
    DenseSet<const DIVariable *> variables;
    for (const GlobalVariable &global : program.globals())
        if (const auto *variable = sourceVariable(global)) variables.insert(variable);
    for (const Function &function : program)
        forVariables(function, [&](const DILocalVariable *variable) { variables.insert(variable); });
    return variables.size();
}

namespace {

const DIDerivedType *memberOf(const DICompositeType *type, uint64_t byte) {
    for (const DINode *node : type->getElements()) {
        const auto *member = dyn_cast<DIDerivedType>(node);
        if (!member || member->getTag() != dwarf::DW_TAG_member) continue;
        uint64_t begin = member->getOffsetInBits() / 8;
        uint64_t size = std::max<uint64_t>(1, (member->getSizeInBits() + 7) / 8);
        if (byte >= begin && byte < begin + size) return member;
    }
    return nullptr;
}

const DICompositeType *structure(const DIType *type) {
    const auto *inner = dyn_cast_or_null<DICompositeType>(strip(type));
    bool aggregate =
        inner && (inner->getTag() == dwarf::DW_TAG_structure_type || inner->getTag() == dwarf::DW_TAG_union_type);
    return aggregate ? inner : nullptr;
}

} // namespace

const DICompositeType *memberType(const DICompositeType *type, uint64_t &byte) {
    const DIDerivedType *member = memberOf(type, byte);
    const DICompositeType *inner = member ? structure(member->getBaseType()) : nullptr;
    if (inner) byte -= member->getOffsetInBits() / 8;
    return inner;
}

bool holdsPointers(const DICompositeType *type) {
    return any_of(type->getElements(), [](const DINode *node) {
        const auto *member = dyn_cast<DIDerivedType>(node);
        if (!member || member->getTag() != dwarf::DW_TAG_member) return false;
        const DIType *held = strip(member->getBaseType());
        const auto *pointer = dyn_cast_or_null<DIDerivedType>(held);
        if (pointer && pointer->getTag() == dwarf::DW_TAG_pointer_type) return true;
        const DICompositeType *inner = structure(held);
        return inner && holdsPointers(inner);
    });
}

std::string memberAt(const DICompositeType *type, uint64_t byte) {
    std::string path;
    while (type) {
        const DIDerivedType *found = memberOf(type, byte);
        if (!found) break;
        if (!found->getName().empty()) path += (path.empty() ? "" : ".") + found->getName().str();
        byte -= found->getOffsetInBits() / 8;
        const DICompositeType *inner = structure(found->getBaseType());
        // Addresses are structs of one member too, and nobody means that member.
        type = inner && (found->getSizeInBits() > 32 || found->getName().empty()) ? inner : nullptr;
    }
    return path;
}

StructNames::StructNames(const Module &program) {
    DebugInfoFinder finder;
    finder.processModule(program);
    auto add = [&](StringRef name, const DIType *type) {
        const auto *composite = dyn_cast_or_null<DICompositeType>(strip(type));
        if (composite && !name.empty() && !composite->isForwardDecl()) types.try_emplace(name, composite);
    };
    for (const DIType *type : finder.types()) add(type->getName(), type);
}

const DICompositeType *StructNames::find(const StructType *type) const {
    if (!type || !type->hasName()) return nullptr;
    StringRef name = type->getName();
    if (!name.consume_front("struct.") && !name.consume_front("union.")) name.consume_front("class.");
    if (const auto *found = types.lookup(name)) return found;
    // Linking bitcode numbers structs of one name: host, host.12.
    auto [front, number] = name.rsplit('.');
    unsigned ignored;
    return number.getAsInteger(10, ignored) ? nullptr : types.lookup(front);
}

} // namespace catena
