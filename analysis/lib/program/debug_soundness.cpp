// Every node of debug information that a program leads to, each operand held to the kind that its accessor casts it to.
#include "program/debug_soundness.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

template <typename Kind> bool isNullOr(const Metadata *operand) { return !operand || isa<Kind>(operand); }

/// Return whether a list is one, and all its elements are of a kind.
template <typename Kind> bool isListOf(const Metadata *operand) {
    if (!operand) return true;
    auto *list = dyn_cast<MDTuple>(operand);
    return list && all_of(list->operands(), [](const MDOperand &element) { return isNullOr<Kind>(element.get()); });
}

/// The most steps from a type or scope to the last that it is part of or made of.
const int longestChain = 10000;

/// Return whether following `next` from a node comes to an end.
template <typename Next> bool ends(const Metadata *node, Next next) {
    for (int steps = 0; node; ++steps, node = next(node))
        if (steps == longestChain) return false;
    return true;
}

const Metadata *madeOf(const Metadata *type) {
    auto *derived = dyn_cast<DIDerivedType>(type);
    return derived ? derived->getRawBaseType() : nullptr;
}

const Metadata *partOf(const Metadata *scope) {
    if (auto *type = dyn_cast<DIType>(scope)) return type->getRawScope();
    if (auto *function = dyn_cast<DISubprogram>(scope)) return function->getRawScope();
    if (auto *block = dyn_cast<DILexicalBlockBase>(scope)) return block->getRawScope();
    if (auto *space = dyn_cast<DINamespace>(scope)) return space->getRawScope();
    return nullptr;
}

const Metadata *inlinedAt(const Metadata *place) {
    auto *location = dyn_cast<DILocation>(place);
    return location ? location->getRawInlinedAt() : nullptr;
}

bool isSoundType(const DIType &type) {
    if (!isNullOr<DIScope>(type.getRawScope()) || !isNullOr<MDString>(type.getRawName())) return false;
    if (auto *derived = dyn_cast<DIDerivedType>(&type)) return isNullOr<DIType>(derived->getRawBaseType());
    if (auto *composite = dyn_cast<DICompositeType>(&type))
        return isNullOr<DIType>(composite->getRawBaseType()) && isListOf<DINode>(composite->getRawElements()) &&
               isNullOr<DIType>(composite->getRawVTableHolder()) &&
               isListOf<DINode>(composite->getRawTemplateParams()) && isNullOr<MDString>(composite->getRawIdentifier());
    if (auto *function = dyn_cast<DISubroutineType>(&type)) return isListOf<DIType>(function->getRawTypeArray());
    return true;
}

bool isSoundSubprogram(const DISubprogram &function) {
    return isNullOr<DIScope>(function.getRawScope()) && isNullOr<MDString>(function.getRawName()) &&
           isNullOr<MDString>(function.getRawLinkageName()) && isNullOr<DISubroutineType>(function.getRawType()) &&
           isNullOr<DICompileUnit>(function.getRawUnit()) && isNullOr<DISubprogram>(function.getRawDeclaration()) &&
           isListOf<DINode>(function.getRawRetainedNodes()) && isNullOr<DIType>(function.getRawContainingType()) &&
           isListOf<DINode>(function.getRawTemplateParams()) && isListOf<DIType>(function.getRawThrownTypes());
}

bool isSoundUnit(const DICompileUnit &unit) {
    return isNullOr<MDString>(unit.getRawProducer()) && isNullOr<MDString>(unit.getRawFlags()) &&
           isNullOr<MDString>(unit.getRawSplitDebugFilename()) && isListOf<DICompositeType>(unit.getRawEnumTypes()) &&
           isListOf<DIScope>(unit.getRawRetainedTypes()) &&
           isListOf<DIGlobalVariableExpression>(unit.getRawGlobalVariables()) &&
           isListOf<DIImportedEntity>(unit.getRawImportedEntities()) && isListOf<DIMacroNode>(unit.getRawMacros());
}

bool isSoundScope(const DIScope &scope) {
    if (auto *file = dyn_cast<DIFile>(&scope))
        return isNullOr<MDString>(file->getRawFilename()) && isNullOr<MDString>(file->getRawDirectory());
    if (!isNullOr<DIFile>(scope.getRawFile())) return false;
    if (auto *type = dyn_cast<DIType>(&scope)) return isSoundType(*type);
    if (auto *function = dyn_cast<DISubprogram>(&scope)) return isSoundSubprogram(*function);
    if (auto *unit = dyn_cast<DICompileUnit>(&scope)) return isSoundUnit(*unit);
    if (auto *block = dyn_cast<DILexicalBlockBase>(&scope)) return isa_and_nonnull<DILocalScope>(block->getRawScope());
    if (auto *space = dyn_cast<DINamespace>(&scope))
        return isNullOr<DIScope>(space->getRawScope()) && isNullOr<MDString>(space->getRawName());
    return true;
}

bool isSoundVariable(const DIVariable &variable) {
    if (!isNullOr<DIScope>(variable.getRawScope()) || !isNullOr<MDString>(variable.getRawName()) ||
        !isNullOr<DIFile>(variable.getRawFile()) || !isNullOr<DIType>(variable.getRawType()))
        return false;
    if (auto *global = dyn_cast<DIGlobalVariable>(&variable))
        return isNullOr<MDString>(global->getRawLinkageName()) &&
               isNullOr<DIDerivedType>(global->getRawStaticDataMemberDeclaration());
    return isa_and_nonnull<DILocalScope>(variable.getRawScope());
}

bool isSound(const MDNode &node) {
    if (auto *scope = dyn_cast<DIScope>(&node)) return isSoundScope(*scope);
    if (auto *variable = dyn_cast<DIVariable>(&node)) return isSoundVariable(*variable);
    if (auto *global = dyn_cast<DIGlobalVariableExpression>(&node))
        return isNullOr<DIGlobalVariable>(global->getRawVariable()) &&
               isNullOr<DIExpression>(global->getRawExpression());
    if (auto *place = dyn_cast<DILocation>(&node))
        return isa_and_nonnull<DILocalScope>(place->getRawScope()) && isNullOr<DILocation>(place->getRawInlinedAt());
    if (auto *label = dyn_cast<DILabel>(&node))
        return isa_and_nonnull<DILocalScope>(label->getRawScope()) && isNullOr<MDString>(label->getRawName()) &&
               isNullOr<DIFile>(label->getRawFile());
    if (auto *parameter = dyn_cast<DITemplateParameter>(&node))
        return isNullOr<MDString>(parameter->getRawName()) && isNullOr<DIType>(parameter->getRawType());
    if (auto *enumerator = dyn_cast<DIEnumerator>(&node)) return isNullOr<MDString>(enumerator->getRawName());
    if (auto *import = dyn_cast<DIImportedEntity>(&node))
        return isNullOr<DIScope>(import->getRawScope()) && isNullOr<DINode>(import->getRawEntity()) &&
               isNullOr<DIFile>(import->getRawFile()) && isNullOr<MDString>(import->getRawName());
    return true;
}

/// The kind of a node, as LLVM's assembler writes it.
StringRef kindOf(const MDNode &node) {
    switch (node.getMetadataID()) {
#define HANDLE_MDNODE_LEAF(CLASS)                                                                                      \
    case Metadata::CLASS##Kind:                                                                                        \
        return #CLASS;
#include "llvm/IR/Metadata.def"
    default:
        return "node";
    }
}

/// Return whether what describes a function or a global variable is what LLVM casts it to.
template <typename Kind> bool isDescribedBy(ArrayRef<std::pair<unsigned, MDNode *>> attachments) {
    return all_of(attachments, [](auto attachment) {
        return attachment.first != LLVMContext::MD_dbg || isa<Kind>(attachment.second);
    });
}

/// Follows metadata to every node, each once.
class Walk {
public:
    void add(const Metadata *metadata) {
        if (auto *node = dyn_cast_or_null<MDNode>(metadata))
            if (seen.insert(node).second) waiting.push_back(node);
    }

    void add(ArrayRef<std::pair<unsigned, MDNode *>> attachments) {
        for (auto [kind, node] : attachments) add(node);
    }

    void add(const Instruction &instruction) {
        SmallVector<std::pair<unsigned, MDNode *>, 4> attachments;
        instruction.getAllMetadata(attachments);
        add(attachments);
        for (const DbgRecord &record : instruction.getDbgRecordRange()) {
            add(record.getDebugLoc().getAsMDNode());
            if (auto *variable = dyn_cast<DbgVariableRecord>(&record)) add(variable->getRawVariable());
        }
        for (const Use &operand : instruction.operands())
            if (auto *wrapped = dyn_cast<MetadataAsValue>(operand)) add(wrapped->getMetadata());
    }

    const MDNode *next() { return waiting.empty() ? nullptr : waiting.pop_back_val(); }

private:
    DenseSet<const MDNode *> seen;
    SmallVector<const MDNode *, 64> waiting;
};

} // namespace

std::optional<std::string> unsoundDebugInformation(const Module &program) {
    Walk walk;
    for (const NamedMDNode &named : program.named_metadata())
        for (const MDNode *node : named.operands()) walk.add(node);
    SmallVector<std::pair<unsigned, MDNode *>, 4> attachments;
    for (const GlobalVariable &global : program.globals()) {
        attachments.clear();
        global.getAllMetadata(attachments);
        if (!isDescribedBy<DIGlobalVariableExpression>(attachments)) return "a variable is described by something else";
        walk.add(attachments);
    }
    for (const Function &function : program) {
        attachments.clear();
        function.getAllMetadata(attachments);
        if (!isDescribedBy<DISubprogram>(attachments)) return "a function is described by something else";
        walk.add(attachments);
        for (const Instruction &instruction : instructions(function)) walk.add(instruction);
    }
    while (const MDNode *node = walk.next()) {
        if (!ends(node, madeOf) || !ends(node, partOf) || !ends(node, inlinedAt))
            return ("a " + kindOf(*node) + " is part of itself").str();
        if (!isSound(*node)) return ("a " + kindOf(*node) + " has a part that is of another kind").str();
        for (const MDOperand &operand : node->operands()) walk.add(operand.get());
    }
    return std::nullopt;
}

} // namespace catena
