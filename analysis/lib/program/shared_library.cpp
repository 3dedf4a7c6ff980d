// The loader searches the executable first and then the libraries in their order, also for what a library itself uses;
// names of hidden visibility are not found by anybody else (System V ABI, "Shared Object Dependencies" and
// "Visibility").
#include "program/shared_library.h"

using namespace llvm;

namespace catena {

namespace {

bool isDefined(const GlobalValue *value) { return value && !value->isDeclaration() && !value->hasLocalLinkage(); }

} // namespace

void giveWay(Module &library, const Module &program) {
    auto prepare = [&](GlobalValue &value) {
        if (value.isDeclaration() || value.hasLocalLinkage() || value.hasAppendingLinkage()) return false;
        if (value.hasHiddenVisibility()) {
            value.setVisibility(GlobalValue::DefaultVisibility);
            value.setLinkage(GlobalValue::InternalLinkage);
            return false;
        }
        return isDefined(program.getNamedValue(value.getName()));
    };
    for (Function &function : library)
        if (prepare(function)) {
            function.deleteBody();
            function.setComdat(nullptr);
        }
    for (GlobalVariable &variable : library.globals())
        if (prepare(variable)) {
            variable.setInitializer(nullptr);
            variable.setLinkage(GlobalValue::ExternalLinkage);
            variable.setComdat(nullptr);
        }
    SmallVector<GlobalAlias *, 4> aliases;
    for (GlobalAlias &alias : library.aliases())
        if (prepare(alias)) aliases.push_back(&alias);
    for (GlobalAlias *alias : aliases) {
        // The program's definition takes the name; until they are linked a declaration stands for it.
        GlobalValue *instead;
        if (auto *type = dyn_cast<FunctionType>(alias->getValueType()))
            instead = Function::Create(type, GlobalValue::ExternalLinkage, "", library);
        else
            instead =
                new GlobalVariable(library, alias->getValueType(), false, GlobalValue::ExternalLinkage, nullptr, "");
        alias->replaceAllUsesWith(instead);
        instead->takeName(alias);
        alias->eraseFromParent();
    }
}

} // namespace catena
