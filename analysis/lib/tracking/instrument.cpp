// One byte for each set of variables that statements update together, and a store of 1 there before every update that
// is not pruned altogether: where strings or tables cannot be told apart one statement updates many variables. The
// bytes are the program's own: no pointer leads to them, so the stores stand in no optimization's way.
#include "tracking/instrument.h"

#include "program/bitcode.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"

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

void define(Module &program, const char *name, Constant *value) {
    new GlobalVariable(program, value->getType(), true, GlobalValue::ExternalLinkage, value, name);
}

/// The sets of variables that statements update, each with its byte.
class Bytes {
public:
    Bytes(Module &program, const std::vector<Update> &updates) : program(program), context(program.getContext()) {
        for (const Update &update : updates)
            if (update.pruned.size() < update.bits.size()) byteOf.insert({update.bits, byteOf.size()});
        type = ArrayType::get(byte, std::max<size_t>(1, byteOf.size()));
        bytes = new GlobalVariable(program, type, false, GlobalValue::InternalLinkage, ConstantAggregateZero::get(type),
                                   "catena_updated");
    }

    void set(const Update &update) {
        auto found = byteOf.find(update.bits);
        if (found == byteOf.end() || update.pruned.size() == update.bits.size()) return;
        IRBuilder<> builder(update.statement);
        builder.CreateStore(ConstantInt::get(byte, 1), at(builder, found->second));
    }

    /// Define `void catena_take_updated(char *bits)`.
    void addTaking() {
        auto *signature = FunctionType::get(Type::getVoidTy(context), {PointerType::get(context, 0)}, false);
        auto *function = Function::Create(signature, GlobalValue::ExternalLinkage, "catena_take_updated", program);
        auto *block = BasicBlock::Create(context, "", function);
        for (const auto &[variables, number] : byteOf) {
            IRBuilder<> builder(block);
            auto *isSet = BasicBlock::Create(context, "", function), *next = BasicBlock::Create(context, "", function);
            Value *there = at(builder, number);
            builder.CreateCondBr(builder.CreateIsNotNull(builder.CreateLoad(byte, there)), isSet, next);
            builder.SetInsertPoint(isSet);
            builder.CreateStore(ConstantInt::get(byte, 0), there);
            for (unsigned variable : variables)
                builder.CreateStore(ConstantInt::get(byte, 1),
                                    builder.CreateConstInBoundsGEP1_32(byte, function->getArg(0), variable));
            builder.CreateBr(next);
            block = next;
        }
        IRBuilder<>(block).CreateRetVoid();
    }

private:
    Value *at(IRBuilder<> &builder, uint64_t number) {
        return builder.CreateConstInBoundsGEP2_64(type, bytes, 0, number);
    }

    Module &program;
    LLVMContext &context;
    IntegerType *byte = Type::getInt8Ty(context);
    MapVector<std::vector<unsigned>, uint64_t, std::map<std::vector<unsigned>, unsigned>> byteOf;
    ArrayType *type;
    GlobalVariable *bytes;
};

} // namespace

Error trackUpdates(StateFindings &findings, const std::vector<Update> &updates) {
    Module &program = findings.original;
    if (program.getNamedValue("catena_take_updated"))
        return failure("the program has updated bits already: give the bitcode that they were added to");
    LLVMContext &context = program.getContext();
    std::vector<Constant *> names;
    for (const Variable &variable : findings.report.variables)
        if (variable.updateable) names.push_back(text(program, variable.name));
    define(program, "catena_updated_names",
           ConstantArray::get(ArrayType::get(PointerType::get(context, 0), names.size()), names));
    define(program, "catena_updated_count", ConstantInt::get(Type::getInt32Ty(context), names.size()));
    Bytes bytes(program, updates);
    bytes.addTaking();
    for (const Update &update : updates) {
        bytes.set(update);
        findings.report.updates.push_back({placeOf(*update.statement), update.bits, update.pruned});
    }
    return Error::success();
}

Error writeProgram(const Module &program, const std::string &file, OutputFiles &outputs) {
    std::string wrong;
    raw_string_ostream message(wrong);
    if (verifyModule(program, &message)) return failure(file + ": the program would not be whole: " + wrong);
    return outputs.write(file, [&](raw_ostream &out) { WriteBitcodeToFile(program, out); });
}

} // namespace catena
