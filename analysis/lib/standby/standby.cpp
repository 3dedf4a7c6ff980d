// Calls into the runtime: catena_packet_end where a packet ends, catena_wrote before each update with its address,
// catena_malloc and the like instead of the library's.
#include "standby/standby.h"

#include "dependence/graph_builder.h"
#include "export/state_tables.h"
#include "program/bitcode.h"
#include "standby/packet_ends.h"
#include "tracking/instrument.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

class Standby {
public:
    explicit Standby(StateFindings &findings)
        : findings(findings), program(findings.original), context(program.getContext()),
          half(Type::getInt32Ty(context)), nothing(Type::getVoidTy(context)), pointer(PointerType::get(context, 0)) {}

    Error make() {
        auto found = packetEnds(findings);
        if (!found) return found.takeError();
        RuntimeTables tables;
        tables.sites = allocationSites(findings);
        tables.boundaries = found->receptions;
        std::vector<Update> updates = findUpdates(findings);
        for (const PacketEnd &end : found->ends) {
            IRBuilder<> builder(end.before);
            locate(builder, *end.before);
            builder.CreateCall(runtime("catena_packet_end", {half, half}),
                               {builder.getInt32(end.reception), builder.getInt32(end.receives)});
        }
        if (Error error = trackUpdates(findings, updates)) return error;
        for (const Update &update : updates) noteWrites(*update.statement);
        noteReads();
        if (Error error = addStateTables(findings, tables)) return error;
        noteSites(tables.sites);
        replaceAllocators();
        return Error::success();
    }

private:
    FunctionCallee runtime(StringRef name, ArrayRef<Type *> parameters) {
        return program.getOrInsertFunction(name, FunctionType::get(nothing, parameters, false));
    }

    /// Calls need a place in the source where their procedure has one.
    void locate(IRBuilder<> &builder, const Instruction &at) {
        if (DISubprogram *procedure = at.getFunction()->getSubprogram(); procedure && !at.getDebugLoc())
            builder.SetCurrentDebugLocation(DILocation::get(context, procedure->getLine(), 0, procedure));
    }

    /// `size` is 0 if it is not known.
    void note(IRBuilder<> &builder, Value *address, uint64_t size = 0) {
        if (!address->getType()->isPointerTy()) return;
        Value *bytes = builder.getInt32(size <= UINT32_MAX ? static_cast<uint32_t>(size) : 0);
        builder.CreateCall(runtime("catena_wrote", {pointer, half}), {address, bytes});
    }

    void noteStore(IRBuilder<> &builder, Value *address, Type *stored) {
        note(builder, address, program.getDataLayout().getTypeStoreSize(stored).getKnownMinValue());
    }

    /// Before a statement that updates state, note which memory it writes.
    void noteWrites(Instruction &statement) {
        IRBuilder<> builder(&statement);
        locate(builder, statement);
        if (auto *store = dyn_cast<StoreInst>(&statement))
            return noteStore(builder, store->getPointerOperand(), store->getValueOperand()->getType());
        if (auto *change = dyn_cast<AtomicRMWInst>(&statement))
            return noteStore(builder, change->getPointerOperand(), change->getType());
        if (auto *change = dyn_cast<AtomicCmpXchgInst>(&statement))
            return noteStore(builder, change->getPointerOperand(), change->getNewValOperand()->getType());
        auto *call = dyn_cast<CallBase>(&statement);
        if (!call) return;
        if (auto *memory = dyn_cast<MemIntrinsic>(call)) {
            auto *length = dyn_cast<ConstantInt>(memory->getLength());
            return note(builder, memory->getRawDest(), length ? length->getLimitedValue() : 0);
        }
        const Function *callee = namedCallee(*call);
        const auto *effects =
            callee && callee->isDeclaration() ? findings.pointsTo.library().find(callee->getName()) : nullptr;
        // What is called through a pointer or is in no list may write what any argument points to.
        if (!effects) {
            for (Use &argument : call->args()) note(builder, argument.get());
            return;
        }
        auto argument = [&](unsigned number) {
            if (number < call->arg_size()) note(builder, call->getArgOperand(number));
        };
        for (const Effect &effect : *effects) switch (effect.kind) {
            case Effect::Writes:
            case Effect::StoresNew:
                argument(effect.a);
                break;
            case Effect::Copies:
            case Effect::Stores:
            case Effect::GivesCopy:
            case Effect::StoresMemory:
                argument(effect.b);
                break;
            case Effect::Links:
                argument(effect.a);
                argument(effect.b);
                break;
            case Effect::WritesDeep:
                builder.CreateCall(runtime("catena_wrote_deep", {}));
                break;
            default:
                break;
            }
    }

    /// Before a statement that reads entries of flows, note which memory it reads: a packet's look-ups say which
    /// entries belong to its flow.
    void noteReads() {
        SparseSet entries;
        for (const Variable &variable : findings.report.variables)
            if (variable.updateable) entries.add(variable.entries);
        DenseMap<const SparseSet *, bool> known;
        for (const MemoryStatement &statement : findings.statements.all) {
            auto [meets, isNew] = known.try_emplace(statement.reads, false);
            if (isNew) meets->second = statement.reads->intersects(entries);
            Instruction *original = meets->second ? findings.inOriginal(statement.instruction) : nullptr;
            if (!original) continue;
            IRBuilder<> builder(original);
            locate(builder, *original);
            auto note = [&](Value *address, uint64_t size) {
                Value *bytes = builder.getInt32(size <= UINT32_MAX ? static_cast<uint32_t>(size) : 0);
                builder.CreateCall(runtime("catena_read", {pointer, half}), {address, bytes});
            };
            if (Value *address = getLoadStorePointerOperand(original))
                note(address, program.getDataLayout().getTypeStoreSize(getLoadStoreType(original)).getKnownMinValue());
            // What a library reads it is given, of any size.
            if (const auto *call = dyn_cast<CallBase>(statement.instruction))
                for (unsigned i = 0; i < call->arg_size(); ++i)
                    if (pointsToPart(call->getArgOperand(i), entries))
                        note(cast<CallBase>(original)->getArgOperand(i), 0);
        }
    }

    bool pointsToPart(const Value *value, const SparseSet &entries) {
        return value->getType()->isPointerTy() && findings.pointsTo.of(value).intersects(entries);
    }

    /// Say before each allocation which it is; an allocator of the program's own is asked before what it calls.
    void noteSites(const MapVector<CallBase *, AllocationSite> &sites) {
        Constant *next = program.getOrInsertGlobal("catena_site", half);
        unsigned number = 0;
        for (const auto &[call, site] : sites) {
            ++number;
            IRBuilder<> builder(call);
            Value *own = builder.getInt32(number);
            if (site.outer) {
                builder.CreateStore(own, next);
                continue;
            }
            Value *outer = builder.CreateLoad(half, next);
            Value *none = builder.CreateICmpEQ(outer, builder.getInt32(0));
            builder.CreateStore(builder.CreateSelect(none, own, outer), next);
        }
        for (const auto &[call, site] : sites) {
            auto *plain = dyn_cast<CallInst>(call);
            // It may have allocated nothing.
            if (site.outer && plain) IRBuilder<>(plain->getNextNode()).CreateStore(ConstantInt::get(half, 0), next);
        }
    }

    void replaceAllocators() {
        static const std::pair<const char *, const char *> ours[] = {
            {"malloc", "catena_malloc"},
            {"calloc", "catena_calloc"},
            {"realloc", "catena_realloc"},
            {"reallocarray", "catena_reallocarray"},
            {"free", "catena_free"},
            {"aligned_alloc", "catena_aligned_alloc"},
            {"memalign", "catena_aligned_alloc"},
            {"valloc", "catena_valloc"},
            {"posix_memalign", "catena_posix_memalign"},
            {"strdup", "catena_strdup"},
            {"__strdup", "catena_strdup"},
            {"strndup", "catena_strndup"},
            {"__strndup", "catena_strndup"},
            {"asprintf", "catena_asprintf"},
            {"vasprintf", "catena_vasprintf"},
            {"getline", "catena_getline"},
            {"getdelim", "catena_getdelim"},
            {"_Znwm", "catena_new"},
            {"_Znam", "catena_new"},
            {"_ZdlPv", "catena_free"},
            {"_ZdaPv", "catena_free"},
            {"_ZdlPvm", "catena_delete_sized"},
            {"_ZdaPvm", "catena_delete_sized"},
        };
        for (auto [theirs, mine] : ours) {
            Function *function = program.getFunction(theirs);
            if (!function || !function->isDeclaration()) continue;
            FunctionCallee replacement = program.getOrInsertFunction(mine, function->getFunctionType());
            function->replaceAllUsesWith(replacement.getCallee());
        }
    }

    StateFindings &findings;
    Module &program;
    LLVMContext &context;
    IntegerType *half;
    Type *nothing;
    PointerType *pointer;
};

} // namespace

Error makeStandby(StateFindings &findings) { return Standby(findings).make(); }

} // namespace catena
