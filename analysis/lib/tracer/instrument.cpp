// One rule for every kind of instruction that accesses memory, calls, or receives packets.
//
// The tracer shares the lists of packet functions and of what libraries read with the analysis, but nothing else: it
// knows no points-to sets, slices or loop procedures.
#include "tracer/instrument.h"

#include "program/bitcode.h"
#include "tracer/traced_objects.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace catena {

namespace {

/// Allocators of C and C++ that the runtime takes the place of, and which of its own does.
const std::pair<const char *, const char *> allocators[] = {
    {"malloc", "malloc"},
    {"calloc", "calloc"},
    {"realloc", "realloc"},
    {"reallocarray", "reallocarray"},
    {"aligned_alloc", "aligned_alloc"},
    {"memalign", "aligned_alloc"},
    {"posix_memalign", "posix_memalign"},
    {"strdup", "strdup"},
    {"__strdup", "strdup"},
    {"strndup", "strndup"},
    {"__strndup", "strndup"},
    {"free", "free"},
    {"cfree", "free"},
    {"_Znwm", "malloc"},
    {"_Znam", "malloc"},
    {"_ZdlPv", "free"},
    {"_ZdaPv", "free"},
    {"_ZdlPvm", "free"},
    {"_ZdaPvm", "free"},
};

bool isAllocator(StringRef name) {
    return any_of(allocators, [&](const auto &one) { return name == one.first; });
}

bool hasLoop(Function &function) {
    for (auto component = scc_begin(&function); !component.isAtEnd(); ++component)
        if (component.hasCycle()) return true;
    return false;
}

const Function *called(const CallBase &call) {
    return dyn_cast<Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
}

bool callsBack(const PacketFunction &function) {
    return any_of(function.packets,
                  [](const PacketPlace &place) { return place.kind == PacketPlace::CallbackParameter; });
}

class Instrumenter {
public:
    Instrumenter(Module &program, const LibraryEffects &library, const PacketFunctions &functions)
        : program(program), context(program.getContext()), library(library), functions(functions), objects(program) {}

    void run(Function &main) {
        // Handles are told by how the source's own instructions use what they load.
        for (Function &function : program)
            for (Instruction &instruction : instructions(function))
                if (onlyHandle(instruction)) handles.insert(&instruction);
        objects.addGlobals();
        std::vector<Function *> own;
        for (Function &function : program)
            if (!function.isDeclaration()) own.push_back(&function);
        for (Function *function : own) instrument(*function);
        for (const auto &[name, instead] : allocators)
            if (Function *function = program.getFunction(name); function && function->isDeclaration()) {
                std::string traced = std::string("catena_trace_") + instead;
                function->replaceAllUsesWith(
                    program.getOrInsertFunction(traced, function->getFunctionType()).getCallee());
            }
        objects.announce(main);
        StripDebugInfo(program);
    }

private:
    Module &program;
    LLVMContext &context;
    const LibraryEffects &library;
    const PacketFunctions &functions;
    TracedObjects objects;
    DenseSet<const Instruction *> handles;

    template <typename... Arguments>
    CallInst *hook(IRBuilder<> &at, const char *name, Type *result, Arguments... given) {
        FunctionCallee function = program.getOrInsertFunction(name, result, given->getType()...);
        return at.CreateCall(function, {given...});
    }

    /// Return whether what is loaded is used for nothing but handles of listed functions, over locals too.
    bool onlyHandle(const Instruction &load, unsigned depth = 0) const {
        if (!isa<LoadInst>(load) || load.use_empty() || depth > 4) return false;
        return all_of(load.uses(), [&](const Use &use) {
            if (const auto *call = dyn_cast<CallBase>(use.getUser())) {
                const Function *callee = called(*call);
                const PacketFunction *listed = callee ? functions.find(callee->getName()) : nullptr;
                return listed && call->isArgOperand(&use) && is_contained(listed->handles, call->getArgOperandNo(&use));
            }
            const auto *store = dyn_cast<StoreInst>(use.getUser());
            const auto *cell = store ? dyn_cast<AllocaInst>(store->getPointerOperand()) : nullptr;
            return cell && all_of(cell->users(), [&](const User *user) {
                       const auto *other = dyn_cast<StoreInst>(user);
                       const auto *again = dyn_cast<LoadInst>(user);
                       return (other && other->getPointerOperand() == cell) || (again && onlyHandle(*again, depth + 1));
                   });
        });
    }

    bool receivesByCallback(Function &function) const {
        for (const Instruction &instruction : instructions(function))
            if (const auto *call = dyn_cast<CallBase>(&instruction))
                if (const Function *callee = called(*call))
                    if (const PacketFunction *listed = functions.find(callee->getName()))
                        if (listed->kind == PacketFunction::Receive && callsBack(*listed)) return true;
        return false;
    }

    void instrument(Function &function) {
        std::vector<Instruction *> work;
        for (Instruction &instruction : instructions(function))
            if (!isa<AllocaInst>(instruction)) work.push_back(&instruction);
        objects.addCells(function, hasLoop(function) || receivesByCallback(function));
        for (Instruction *instruction : work) visit(*instruction);
        frame(function);
    }

    /// The function's beginning and ends.
    void frame(Function &function) {
        IRBuilder<> at(&*function.getEntryBlock().begin());
        bool given = function.hasAddressTaken();
        if (given) hook(at, "catena_trace_called", at.getVoidTy(), static_cast<Value *>(&function));
        CallInst *mark = at.CreateCall(program.getOrInsertFunction("catena_trace_enter", at.getInt64Ty()));
        for (BasicBlock &block : function) {
            Instruction *end = block.getTerminator();
            if (!isa<ReturnInst>(end) && !isa<ResumeInst>(end)) continue;
            // A call that must be the last one stays next to the return.
            if (CallInst *last = block.getTerminatingMustTailCall()) end = last;
            IRBuilder<> before(end);
            if (given) hook(before, "catena_trace_returned", at.getVoidTy(), static_cast<Value *>(&function));
            hook(before, "catena_trace_leave", at.getVoidTy(), static_cast<Value *>(mark));
        }
    }

    bool isSeen(const Value *address) const {
        const auto *cell = dyn_cast<AllocaInst>(address->stripInBoundsOffsets());
        return !cell || objects.isTraced(*cell);
    }

    void access(IRBuilder<> &at, const char *name, Value *address, Value *size) {
        if (address->getType()->getPointerAddressSpace() || !isSeen(address)) return;
        hook(at, name, at.getVoidTy(), address, at.CreateZExtOrTrunc(size, at.getInt64Ty()));
    }

    void visit(Instruction &instruction) {
        IRBuilder<> at(&instruction);
        const DataLayout &layout = program.getDataLayout();
        auto size = [&](Type *type) -> Value * {
            return at.getInt64(layout.getTypeStoreSize(type).getKnownMinValue());
        };
        if (auto *load = dyn_cast<LoadInst>(&instruction)) {
            if (!handles.contains(load))
                access(at, "catena_trace_read", load->getPointerOperand(), size(load->getType()));
        } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
            access(at, "catena_trace_write", store->getPointerOperand(), size(store->getValueOperand()->getType()));
        } else if (auto *change = dyn_cast<AtomicRMWInst>(&instruction)) {
            access(at, "catena_trace_read", change->getPointerOperand(), size(change->getType()));
            access(at, "catena_trace_write", change->getPointerOperand(), size(change->getType()));
        } else if (auto *change = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
            access(at, "catena_trace_read", change->getPointerOperand(), size(change->getNewValOperand()->getType()));
            access(at, "catena_trace_write", change->getPointerOperand(), size(change->getNewValOperand()->getType()));
        } else if (auto *memory = dyn_cast<MemIntrinsic>(&instruction)) {
            if (auto *copy = dyn_cast<MemTransferInst>(memory))
                access(at, "catena_trace_read", copy->getSource(), copy->getLength());
            access(at, "catena_trace_write", memory->getDest(), memory->getLength());
        } else if (auto *call = dyn_cast<CallBase>(&instruction)) {
            visitCall(*call);
        }
    }

    void visitCall(CallBase &call) {
        IRBuilder<> at(&call);
        const DataLayout &layout = program.getDataLayout();
        for (unsigned i = 0; i < call.arg_size(); ++i)
            if (call.isByValArgument(i))
                access(at, "catena_trace_read", call.getArgOperand(i),
                       at.getInt64(layout.getTypeStoreSize(call.getParamByValType(i)).getKnownMinValue()));
        const Function *callee = called(call);
        if (!callee || callee->isIntrinsic()) return;
        const PacketFunction *listed = functions.find(callee->getName());
        bool receives = listed && listed->kind == PacketFunction::Receive;
        bool returns = !call.hasFnAttr(Attribute::ReturnsTwice) && !call.doesNotReturn();
        if (callee->isDeclaration()) readsOf(at, call, *callee);
        Value *asked = receives ? beginReception(at, call, *listed) : nullptr;
        if (!returns) return;
        CallInst *mark = callee->isDeclaration() ? lend(at, call, *callee) : nullptr;
        IRBuilder<> after(behind(call));
        if (mark) hook(after, "catena_trace_take_back", at.getVoidTy(), static_cast<Value *>(mark));
        if (asked) endReception(after, call, asked);
    }

    /// Return where a call has returned, without an exception.
    static Instruction *behind(CallBase &call) {
        auto *invoke = dyn_cast<InvokeInst>(&call);
        if (!invoke) return call.getNextNode();
        return &*SplitEdge(invoke->getParent(), invoke->getNormalDest())->getFirstInsertionPt();
    }

    void readsOf(IRBuilder<> &at, CallBase &call, const Function &callee) {
        const std::vector<Effect> *effects = library.find(callee.getName());
        auto reads = [&](unsigned i, bool deep) {
            if (i >= call.arg_size() || !call.getArgOperand(i)->getType()->isPointerTy()) return;
            if (deep)
                hook(at, "catena_trace_read_deep", at.getVoidTy(), call.getArgOperand(i));
            else
                access(at, "catena_trace_read", call.getArgOperand(i), at.getInt64(1));
        };
        if (!effects)
            for (unsigned i = 0; i < call.arg_size(); ++i) reads(i, false);
        else
            for (const Effect &effect : *effects) {
                if (effect.kind == Effect::Reads || effect.kind == Effect::CallsThrough ||
                    effect.kind == Effect::Copies)
                    reads(effect.a, false);
                // Printing reads strings; messages lead to buffers.
                if (effect.kind == Effect::ReadsDeep) reads(effect.a, !callee.isVarArg());
            }
    }

    /// Tell the runtime what a library function could write.
    CallInst *lend(IRBuilder<> &at, CallBase &call, const Function &callee) {
        if (isAllocator(callee.getName())) return nullptr;
        CallInst *mark = nullptr;
        for (Use &given : call.args()) {
            if (!given->getType()->isPointerTy() || (isa<Constant>(given) && !isa<GlobalVariable, ConstantExpr>(given)))
                continue;
            if (!mark) mark = at.CreateCall(program.getOrInsertFunction("catena_trace_lend", at.getInt64Ty()));
            hook(at, "catena_trace_lend_object", at.getVoidTy(), given.get());
        }
        return mark;
    }

    /// Return what is to be given to the end of the reception; null where a callback begins and ends it.
    Value *beginReception(IRBuilder<> &at, CallBase &call, const PacketFunction &listed) {
        if (!callsBack(listed))
            return at.CreateCall(program.getOrInsertFunction("catena_trace_receiving", at.getInt64Ty()));
        for (const PacketPlace &place : listed.packets)
            if (place.kind == PacketPlace::CallbackParameter && place.argument < call.arg_size())
                hook(at, "catena_trace_calls_back", at.getVoidTy(), call.getArgOperand(place.argument));
        return nullptr;
    }

    void endReception(IRBuilder<> &at, CallBase &call, Value *asked) {
        Value *answer = at.getInt64(1);
        if (call.getType()->isPointerTy())
            answer = at.CreateZExt(at.CreateIsNotNull(&call), at.getInt64Ty());
        else if (call.getType()->isIntegerTy())
            answer = at.CreateSExtOrTrunc(&call, at.getInt64Ty());
        hook(at, "catena_trace_received", at.getVoidTy(), answer, asked);
    }
};

} // namespace

Error instrumentForTrace(Module &program, const LibraryEffects &library, const PacketFunctions &functions) {
    Function *main = program.getFunction("main");
    if (!main || main->isDeclaration())
        return failure(program.getSourceFileName() + ": there is no main in it; name all bitcode files of the program");
    for (Function &function : program)
        if (!function.isDeclaration()) removeUnreachableBlocks(function);
    Instrumenter(program, library, functions).run(*main);
    return Error::success();
}

} // namespace catena
