// libpcap keeps a copy of the filter beside the device; here there is no device between two functions. What
// pcap_compile made is kept instead, so pcap_freecode only makes the program forget it, as it does anyway.
#include "reduce/filter.h"

#include "program/bitcode.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace catena {

namespace {

Expected<std::vector<CallInst *>> callsOf(Module &program, StringRef name) {
    std::vector<CallInst *> calls;
    Function *function = program.getFunction(name);
    if (!function || !function->isDeclaration()) return calls;
    for (Use &use : function->uses()) {
        auto *call = dyn_cast<CallInst>(use.getUser());
        if (!call || !call->isCallee(&use))
            return failure("a function that gets its packets from another one passes on the address of " + name);
        calls.push_back(call);
    }
    return calls;
}

} // namespace

Error keepFilter(Module &program, Function &deliver) {
    auto sets = callsOf(program, "pcap_setfilter");
    if (!sets) return sets.takeError();
    if (sets->empty()) return Error::success();
    auto frees = callsOf(program, "pcap_freecode");
    if (!frees) return frees.takeError();
    LLVMContext &context = program.getContext();
    auto *pointer = PointerType::getUnqual(context);
    auto *word = Type::getInt32Ty(context);
    // A struct bpf_program: how many instructions, and where they are.
    auto *type = StructType::get(context, {word, pointer});
    auto *filter = new GlobalVariable(program, type, false, GlobalValue::InternalLinkage, Constant::getNullValue(type),
                                      deliver.getName() + ".filter");
    for (CallInst *set : *sets) {
        IRBuilder<> builder(set);
        Value *given = set->getArgOperand(1);
        for (unsigned member : {0, 1})
            builder.CreateStore(
                builder.CreateLoad(type->getElementType(member), builder.CreateStructGEP(type, given, member)),
                builder.CreateStructGEP(type, filter, member));
        // What pcap_compile makes is never refused.
        set->replaceAllUsesWith(Constant::getNullValue(set->getType()));
        set->eraseFromParent();
    }
    for (CallInst *free : *frees) {
        IRBuilder<> builder(free);
        for (unsigned member : {0, 1})
            builder.CreateStore(Constant::getNullValue(type->getElementType(member)),
                                builder.CreateStructGEP(type, free->getArgOperand(0), member));
        free->eraseFromParent();
    }
    BasicBlock *delivered = &deliver.getEntryBlock();
    auto *begin = BasicBlock::Create(context, "filter", &deliver, delivered);
    auto *asked = BasicBlock::Create(context, "filtered", &deliver, delivered);
    auto *refused = BasicBlock::Create(context, "refused", &deliver);
    IRBuilder<> builder(begin);
    Value *instructions = builder.CreateLoad(pointer, builder.CreateStructGEP(type, filter, 1));
    builder.CreateCondBr(builder.CreateIsNull(instructions), delivered, asked);
    builder.SetInsertPoint(asked);
    auto matches = program.getOrInsertFunction("pcap_offline_filter", word, pointer, pointer, pointer);
    Value *matched = builder.CreateCall(matches, {filter, deliver.getArg(0), deliver.getArg(1)});
    builder.CreateCondBr(builder.CreateIsNull(matched), refused, delivered);
    ReturnInst::Create(context, refused);
    return Error::success();
}

} // namespace catena
