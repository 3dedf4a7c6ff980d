// One array of bytes, and a store of 1 before every update that is not pruned.
#include "tracking/instrument.h"

#include "program/bitcode.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace llvm;

namespace catena {

namespace {

Constant *text(Module &program, StringRef bytes) {
    Constant *value = ConstantDataArray::getString(program.getContext(), bytes);
    auto *global =
        new GlobalVariable(program, value->getType(), true, GlobalValue::PrivateLinkage, value, "catena_name");
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return global;
}

GlobalVariable *define(Module &program, const char *name, Constant *value, bool constant) {
    return new GlobalVariable(program, value->getType(), constant, GlobalValue::ExternalLinkage, value, name);
}

} // namespace

Error trackUpdates(StateFindings &findings, const std::vector<Update> &updates) {
    Module &program = findings.original;
    if (program.getNamedValue("catena_updated"))
        return failure("the program has updated bits already: give the bitcode that they were added to");
    LLVMContext &context = program.getContext();
    std::vector<Constant *> names;
    for (const Variable &variable : findings.report.variables)
        if (variable.updateable) names.push_back(text(program, variable.name));
    auto *bits = ArrayType::get(Type::getInt8Ty(context), std::max<size_t>(1, names.size()));
    GlobalVariable *updated = define(program, "catena_updated", ConstantAggregateZero::get(bits), false);
    define(program, "catena_updated_names",
           ConstantArray::get(ArrayType::get(PointerType::get(context, 0), names.size()), names), true);
    define(program, "catena_updated_count", ConstantInt::get(Type::getInt32Ty(context), names.size()), true);
    for (const Update &update : updates) {
        IRBuilder<> builder(update.statement);
        for (unsigned bit : update.bits)
            if (!is_contained(update.pruned, bit))
                builder.CreateStore(builder.getInt8(1), builder.CreateConstInBoundsGEP2_32(bits, updated, 0, bit));
        findings.report.updates.push_back({placeOf(*update.statement), update.bits, update.pruned});
    }
    return Error::success();
}

Error writeProgram(const Module &program, const std::string &file) {
    std::string wrong;
    raw_string_ostream message(wrong);
    if (verifyModule(program, &message)) return failure(file + ": the program would not be whole: " + wrong);
    std::error_code error;
    ToolOutputFile out(file, error, sys::fs::OF_None);
    if (error) return failure(file + ": " + error.message());
    WriteBitcodeToFile(program, out.os());
    out.os().flush();
    if (out.os().has_error()) {
        error = out.os().error();
        out.os().clear_error();
        return failure(file + ": " + error.message());
    }
    out.keep();
    return Error::success();
}

} // namespace catena
