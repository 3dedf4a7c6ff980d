// The parts go through a cell on the stack: read in at the beginning, written back at the end. Register promotion then
// shows what the values read in are used for.
#include "reduce/private.h"

#include "reduce/passes.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Scalar/SROA.h"

using namespace llvm;

namespace catena {

namespace {

constexpr unsigned mostParts = 128;

/// Return whether a pointer is used in plain ways only, within one function; volatile and atomic accesses are not.
bool isPlain(const Value *pointer, const Function &within) {
    for (const User *user : pointer->users()) {
        const auto *instruction = dyn_cast<Instruction>(user);
        if (!instruction || instruction->getFunction() != &within) return false;
        if (const auto *load = dyn_cast<LoadInst>(instruction)) {
            if (!load->isSimple()) return false;
        } else if (const auto *store = dyn_cast<StoreInst>(instruction)) {
            if (!store->isSimple() || store->getValueOperand() == pointer) return false;
        } else if (const auto *memory = dyn_cast<MemIntrinsic>(instruction)) {
            if (memory->isVolatile() || !isa<ConstantInt>(memory->getLength())) return false;
        } else if (const auto *step = dyn_cast<GetElementPtrInst>(instruction)) {
            if (!step->hasAllConstantIndices() || !isPlain(step, within)) return false;
        } else {
            return false;
        }
    }
    return true;
}

/// The scalars of a type by their offsets; false if there are too many.
bool scalars(const DataLayout &layout, Type *type, uint64_t base, std::vector<std::pair<uint64_t, Type *>> &found) {
    if (found.size() > mostParts) return false;
    if (auto *structure = dyn_cast<StructType>(type)) {
        const StructLayout *inside = layout.getStructLayout(structure);
        for (unsigned i = 0; i < structure->getNumElements(); ++i)
            if (!scalars(layout, structure->getElementType(i), base + inside->getElementOffset(i).getFixedValue(),
                         found))
                return false;
        return true;
    }
    if (auto *array = dyn_cast<ArrayType>(type)) {
        uint64_t step = layout.getTypeAllocSize(array->getElementType()).getFixedValue();
        if (array->getNumElements() > mostParts) return false;
        for (uint64_t i = 0; i < array->getNumElements(); ++i)
            if (!scalars(layout, array->getElementType(), base + i * step, found)) return false;
        return true;
    }
    found.push_back({base, type});
    return found.size() <= mostParts;
}

struct Part {
    std::string global;
    LoadInst *in;
    std::vector<StoreInst *> out;
};

/// Return whether a value is used for nothing but to be stored by some stores.
bool onlyPasses(Value *value, const std::vector<StoreInst *> &stores) {
    std::vector<Value *> work{value};
    SmallPtrSet<Value *, 16> seen;
    while (!work.empty()) {
        Value *at = work.back();
        work.pop_back();
        if (!seen.insert(at).second) continue;
        for (User *user : at->users()) {
            auto *store = dyn_cast<StoreInst>(user);
            if (store && store->getValueOperand() == at && is_contained(stores, store)) continue;
            auto *select = dyn_cast<SelectInst>(user);
            if (isa<PHINode>(user) || (select && select->getCondition() != at) || isa<FreezeInst>(user))
                work.push_back(user);
            else
                return false;
        }
    }
    return true;
}

/// Let the packet function use a cell for a global, and return its parts.
std::vector<Part> moveToCell(GlobalVariable &global, Function &packet,
                             const std::vector<std::pair<uint64_t, Type *>> &scalars) {
    std::vector<Part> parts;
    IRBuilder<> builder(&*packet.getEntryBlock().getFirstInsertionPt());
    AllocaInst *cell = builder.CreateAlloca(global.getValueType(), nullptr, global.getName());
    cell->setAlignment(std::max(cell->getAlign(), global.getAlign().valueOrOne()));
    global.replaceUsesWithIf(cell, [&](Use &use) { return isa<Instruction>(use.getUser()); });
    for (auto [offset, type] : scalars) {
        LoadInst *in =
            builder.CreateLoad(type, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), &global, offset));
        builder.CreateStore(in, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cell, offset));
        parts.push_back({global.getName().str(), in, {}});
    }
    for (BasicBlock &block : packet) {
        auto *end = dyn_cast<ReturnInst>(block.getTerminator());
        if (!end) continue;
        builder.SetInsertPoint(end);
        for (size_t i = 0; i < scalars.size(); ++i) {
            auto [offset, type] = scalars[i];
            Value *left =
                builder.CreateLoad(type, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cell, offset));
            parts[i].out.push_back(
                builder.CreateStore(left, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), &global, offset)));
        }
    }
    return parts;
}

} // namespace

std::map<std::string, PrivateParts> makePrivate(Function &packet, const std::set<std::string> &temporaries,
                                                bool pointersOnly) {
    std::map<std::string, PrivateParts> done;
    Module &program = *packet.getParent();
    std::vector<Part> parts;
    std::vector<Constant *> candidates;
    for (GlobalVariable &global : program.globals())
        if ((!pointersOnly || global.getValueType()->isPointerTy()) && global.hasLocalLinkage() &&
            !global.isConstant() && !global.isThreadLocal() && !global.use_empty())
            candidates.push_back(&global);
    convertUsersOfConstantsToInstructions(candidates, &packet);
    for (Constant *candidate : candidates) {
        auto &global = *cast<GlobalVariable>(candidate);
        global.removeDeadConstantUsers();
        std::vector<std::pair<uint64_t, Type *>> found;
        if (!isPlain(&global, packet) || !scalars(program.getDataLayout(), global.getValueType(), 0, found)) continue;
        append_range(parts, moveToCell(global, packet, found));
        done[global.getName().str()].parts = found.size();
    }
    PassAnalyses analyses(*packet.getParent());
    SROAPass(SROAOptions::PreserveCFG).run(packet, analyses.functions);
    for (Part &part : parts) {
        bool passes = onlyPasses(part.in, part.out);
        if (!passes && !temporaries.count(part.global)) continue;
        ++done[part.global].ofOnePacket;
        for (StoreInst *store : part.out) store->eraseFromParent();
        // Where the user is wrong, what was there before the first packet is read.
        if (!passes) continue;
        part.in->replaceAllUsesWith(PoisonValue::get(part.in->getType()));
        part.in->eraseFromParent();
    }
    return done;
}

} // namespace catena
