// What stays of a program beside its packets: initialization before the first reception, and what comes after the last.
// Both stay one procedure. The loop between them is there twice: once as a function that runs from one reception to the
// next, and once for the time after all packets, when every reception finds the end. No value is carried in a register
// from one to the other: all lie in memory first.
#include "reduce/delivery.h"

#include "program/bitcode.h"
#include "reduce/simplify.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/Reg2Mem.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace catena {

namespace {

/// libpcap's: a struct pcap_pkthdr, where caplen is in it, the longest packet of any capture, and what pcap_next_ex
/// returns for a packet and at the end.
constexpr uint64_t headerSize = 24, caplenAt = 16, longestPacket = 262144;
constexpr int64_t gotOne = 1, endOfCapture = -2;

Error notUnderstood(const Reception &reception, const Twine &why) {
    return failure(reception.place.file + ":" + Twine(reception.place.line) +
                   ": a function that gets its packets from " +
                   "another one receives them by pcap_loop, pcap_next_ex or pcap_next, and " + why);
}

/// Makes the function that is called with a packet.
class Delivery {
public:
    Delivery(Reception &reception, FunctionCallee upstream, bool copied)
        : reception(reception), upstream(upstream), call(*reception.call), procedure(*call.getFunction()),
          program(*procedure.getParent()), pointer(PointerType::getUnqual(program.getContext())),
          word(Type::getInt32Ty(program.getContext())) {
        auto *type = FunctionType::get(Type::getVoidTy(program.getContext()), {pointer, pointer}, false);
        deliver = Function::Create(type, GlobalValue::InternalLinkage, procedure.getName() + ".deliver", program);
        builder = std::make_unique<IRBuilder<>>(BasicBlock::Create(program.getContext(), "begin", deliver));
        header = deliver->getArg(0), packet = deliver->getArg(1);
        if (copied) copyPacket();
    }

    Expected<Function *> make() {
        Error error = reception.callback ? byCallback() : byLoop();
        if (error) return std::move(error);
        return deliver;
    }

private:
    GlobalVariable *variable(Type *type, const Twine &name) {
        return new GlobalVariable(program, type, false, GlobalValue::InternalLinkage, Constant::getNullValue(type),
                                  procedure.getName() + "." + name);
    }

    void copyPacket() {
        auto *bytes = ArrayType::get(builder->getInt8Ty(), longestPacket);
        auto *headerBytes = ArrayType::get(builder->getInt8Ty(), headerSize);
        GlobalVariable *packetCopy = variable(bytes, "packet.copy"), *headerCopy = variable(headerBytes, "header.copy");
        headerCopy->setAlignment(Align(8));
        packetCopy->setAlignment(Align(16));
        Value *length = builder->CreateLoad(
            word, builder->CreateConstInBoundsGEP1_64(builder->getInt8Ty(), header, caplenAt), "caplen");
        length = builder->CreateBinaryIntrinsic(Intrinsic::umin, length, ConstantInt::get(word, longestPacket));
        builder->CreateMemCpy(packetCopy, Align(16), packet, Align(1), length);
        builder->CreateMemCpy(headerCopy, Align(8), header, Align(8), headerSize);
        header = headerCopy, packet = packetCopy;
    }

    /// pcap_loop(handle, count, callback, user)
    Error byCallback() {
        auto *count = call.arg_size() == 4 ? dyn_cast<ConstantInt>(call.getArgOperand(1)) : nullptr;
        if (reception.name != "pcap_loop" || !count || count->getSExtValue() > 0)
            return notUnderstood(reception, "by pcap_loop all of them");
        const FunctionType *type = reception.callback->getFunctionType();
        if (type->getNumParams() != 3 || !all_of(type->params(), [](Type *one) { return one->isPointerTy(); }))
            return notUnderstood(reception, "calls back a function of three pointers");
        GlobalVariable *user = variable(pointer, "user");
        builder->CreateCall(reception.callback, {builder->CreateLoad(pointer, user), header, packet});
        builder->CreateRetVoid();
        new StoreInst(call.getArgOperand(3), user, call.getIterator());
        auto *all = CallInst::Create(upstream, "", call.getIterator());
        all->setDebugLoc(call.getDebugLoc());
        call.replaceAllUsesWith(Constant::getNullValue(call.getType()));
        call.eraseFromParent();
        return Error::success();
    }

    Error byLoop() {
        bool gives = reception.name == "pcap_next";
        if ((!gives && reception.name != "pcap_next_ex") || call.arg_size() != (gives ? 2u : 3u))
            return notUnderstood(reception, "not by " + reception.name);
        for (unsigned i = 1; i < call.arg_size(); ++i)
            if (!isa<Constant>(call.getArgOperand(i)))
                return notUnderstood(reception, "gives them the address of a variable of its own");
        if (procedure.hasPersonalityFn()) return notUnderstood(reception, "in a procedure that catches no exceptions");
        if (!call.getType()->isPointerTy() && !call.getType()->isIntegerTy(32))
            return notUnderstood(reception, "takes its result for what it is");
        at = call.getParent()->splitBasicBlock(call.getIterator(), "reception");
        at->splitBasicBlock(std::next(call.getIterator()), "received");
        toMemory();
        for (Instruction &instruction : instructions(procedure))
            if (isa<AllocaInst>(instruction))
                return notUnderstood(reception, "has no variable of changing size in the procedure of its loop");
        DominatorTree tree(procedure);
        LoopInfo loops(tree);
        const Loop *loop = loops.getLoopFor(at);
        if (!loop) return notUnderstood(reception, "does so in a loop");
        while (loop->getParentLoop()) loop = loop->getParentLoop();
        std::vector<BasicBlock *> blocks(loop->block_begin(), loop->block_end());
        for (BasicBlock *block : blocks)
            for (BasicBlock *next : successors(block))
                if (!loop->contains(next)) exits.push_back({block, next});
        given = gives ? variable(pointer, "given") : nullptr;
        ended = variable(word, "ended");
        Function *step = oneStep();
        if (gives)
            builder->CreateMemCpy(call.getArgOperand(1), Align(8), header, Align(8), headerSize);
        else
            builder->CreateStore(header, call.getArgOperand(1));
        builder->CreateStore(packet, gives ? static_cast<Value *>(given) : call.getArgOperand(2));
        std::vector<Value *> none;
        for (Argument &argument : step->args()) none.push_back(Constant::getNullValue(argument.getType()));
        builder->CreateCall(step, none);
        builder->CreateRetVoid();
        onlyUntilEnd();
        afterAll(blocks);
        removeUnread();
        return Error::success();
    }

    /// Put all values that outlive a block into global variables.
    void toMemory() {
        BasicBlock &entry = procedure.getEntryBlock();
        for (Argument &argument : procedure.args()) {
            if (argument.use_empty()) continue;
            IRBuilder<> begin(&entry, entry.begin());
            AllocaInst *cell = begin.CreateAlloca(argument.getType(), nullptr, argument.getName() + ".given");
            std::vector<Use *> uses;
            for (Use &use : argument.uses()) uses.push_back(&use);
            for (Use *use : uses) {
                auto *user = cast<Instruction>(use->getUser());
                auto *phi = dyn_cast<PHINode>(user);
                IRBuilder<> before(phi ? phi->getIncomingBlock(*use)->getTerminator() : user);
                use->set(before.CreateLoad(argument.getType(), cell));
            }
            begin.SetInsertPoint(cell->getNextNode());
            begin.CreateStore(&argument, cell);
        }
        FunctionAnalysisManager analyses;
        PassBuilder passes;
        passes.registerFunctionAnalyses(analyses);
        RegToMemPass().run(procedure, analyses);
        liftLocals(procedure, reception);
    }

    /// The loop from one reception to the next, as a function.
    Function *oneStep() {
        ValueToValueMapTy map;
        Function *step = CloneFunction(&procedure, map);
        step->setName(procedure.getName() + ".step");
        step->setLinkage(GlobalValue::InternalLinkage);
        auto *received = cast<BasicBlock>(map[at]);
        auto *done = BasicBlock::Create(program.getContext(), "next", step);
        Type *type = step->getReturnType();
        ReturnInst::Create(program.getContext(), type->isVoidTy() ? nullptr : Constant::getNullValue(type), done);
        std::vector<BasicBlock *> before(pred_begin(received), pred_end(received));
        for (BasicBlock *block : before) block->getTerminator()->replaceSuccessorWith(received, done);
        for (size_t i = 0; i < exits.size(); ++i) {
            auto *leave = BasicBlock::Create(program.getContext(), "leave", step);
            new StoreInst(ConstantInt::get(word, i + 1), ended, leave);
            BranchInst::Create(done, leave);
            auto *end = cast<BasicBlock>(map[exits[i].first])->getTerminator();
            end->replaceSuccessorWith(cast<BasicBlock>(map[exits[i].second]), leave);
        }
        auto *begin = BasicBlock::Create(program.getContext(), "begin", step, &step->getEntryBlock());
        BranchInst::Create(received, begin);
        auto *got = cast<CallBase>(map[&call]);
        Value *result = given ? static_cast<Value *>(new LoadInst(pointer, given, "packet", got->getIterator()))
                              : ConstantInt::getSigned(got->getType(), gotOne);
        got->replaceAllUsesWith(result);
        got->eraseFromParent();
        removeUnreachableBlocks(*step);
        propagateConstants(*step);
        return step;
    }

    /// A program that left its loop takes no more packets.
    void onlyUntilEnd() {
        BasicBlock *work = &deliver->getEntryBlock();
        auto *check = BasicBlock::Create(program.getContext(), "check", deliver, work);
        auto *no = BasicBlock::Create(program.getContext(), "no", deliver);
        IRBuilder<> first(check);
        first.CreateCondBr(first.CreateIsNull(first.CreateLoad(word, ended)), work, no);
        ReturnInst::Create(program.getContext(), no);
    }

    /// In place of the first reception all packets are delivered; then the loop is there once more, and finds the end.
    void afterAll(const std::vector<BasicBlock *> &blocks) {
        ValueToValueMapTy map;
        std::vector<BasicBlock *> copies;
        for (BasicBlock *block : blocks) {
            BasicBlock *copy = CloneBasicBlock(block, map, ".end", &procedure);
            map[block] = copy;
            copies.push_back(copy);
        }
        for (BasicBlock *copy : copies)
            for (Instruction &instruction : *copy) {
                RemapInstruction(&instruction, map, RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
                RemapDbgRecordRange(&program, instruction.getDbgRecordRange(), map,
                                    RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
            }
        auto *found = cast<CallBase>(map[&call]);
        found->replaceAllUsesWith(given ? static_cast<Value *>(ConstantPointerNull::get(pointer))
                                        : ConstantInt::getSigned(found->getType(), endOfCapture));
        found->eraseFromParent();
        IRBuilder<> first(&call);
        first.CreateCall(upstream);
        auto *where = first.CreateSwitch(first.CreateLoad(word, ended), cast<BasicBlock>(map[at]), exits.size());
        for (size_t i = 0; i < exits.size(); ++i)
            where->addCase(ConstantInt::get(cast<IntegerType>(word), i + 1), exits[i].second);
        call.replaceAllUsesWith(PoisonValue::get(call.getType()));
        while (&at->back() != where) at->back().eraseFromParent();
        removeUnreachableBlocks(procedure);
        // At the end it is known which way is taken; what the loop did with packets must not stay as if it were done
        // here.
        propagateConstants(procedure);
    }

    /// Remove variables of the procedure that are set but never read any more: results of the reception, and what was
    /// handed to it.
    void removeUnread() {
        std::string prefix = ("local." + procedure.getName() + ".").str();
        for (GlobalVariable &global : make_early_inc_range(program.globals())) {
            global.removeDeadConstantUsers();
            bool unread = all_of(global.users(), [&](const User *user) {
                const auto *store = dyn_cast<StoreInst>(user);
                return store && store->isSimple() && store->getPointerOperand() == &global;
            });
            if (!unread || !(global.getName().starts_with(prefix) || reception.locals.count(global.getName().str())))
                continue;
            while (!global.use_empty()) cast<StoreInst>(*global.user_begin())->eraseFromParent();
            reception.locals.erase(global.getName().str());
            global.eraseFromParent();
        }
    }

    Reception &reception;
    FunctionCallee upstream;
    CallBase &call;
    Function &procedure;
    Module &program;
    PointerType *pointer;
    Type *word;
    Function *deliver;
    std::unique_ptr<IRBuilder<>> builder;
    Value *header, *packet;
    BasicBlock *at = nullptr;
    /// Edges that leave the loop.
    std::vector<std::pair<BasicBlock *, BasicBlock *>> exits;
    /// The number of the edge by which the loop was left, or 0; and what pcap_next returns.
    GlobalVariable *ended = nullptr, *given = nullptr;
};

} // namespace

Expected<Function *> takeDeliveries(Reception &reception, FunctionCallee upstream, bool copied) {
    if (!isa<CallInst>(reception.call)) return notUnderstood(reception, "where no exception is caught");
    return Delivery(reception, upstream, copied).make();
}

} // namespace catena
