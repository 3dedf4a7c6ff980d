// "The default version of LLVM CSE optimization can only handle single variables ... a data structure field is
// represented by a base address plus an offset, which has no name" (Deng and Wu, NFReducer, section IV-B). What keeps
// LLVM from seeing that a second function reads the same bytes is not the offset but every write in between, to state
// that might be the packet. By the points-to analysis of the whole chain it is not.
#include "reduce/packet_memory.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"

using namespace llvm;

namespace catena {

namespace {

/// Return one load, at the beginning, of a variable that only the reception sets; null if that is not sure.
Value *readOnce(Function &packet, const std::string &name, const Reception &reception) {
    GlobalVariable *variable = packet.getParent()->getNamedGlobal(name);
    if (!variable || !variable->hasLocalLinkage() || !variable->getValueType()->isPointerTy()) return nullptr;
    const Function *procedure = reception.call->getFunction();
    std::vector<LoadInst *> loads;
    for (Use &use : variable->uses()) {
        auto *user = dyn_cast<Instruction>(use.getUser());
        if (!user) return nullptr;
        if (auto *load = dyn_cast<LoadInst>(user)) {
            if (!load->isSimple() || !load->getType()->isPointerTy()) return nullptr;
            if (load->getFunction() == &packet) loads.push_back(load);
        } else if (auto *store = dyn_cast<StoreInst>(user)) {
            // What the loop's procedure sets is set before the first packet, or between two.
            if (store->getFunction() != procedure || store->getValueOperand() == variable) return nullptr;
        } else if (user != reception.call) {
            return nullptr;
        }
    }
    IRBuilder<> builder(&*packet.getEntryBlock().getFirstInsertionPt());
    LoadInst *once = builder.CreateLoad(variable->getValueType(), variable, "received");
    for (LoadInst *load : loads) {
        load->replaceAllUsesWith(once);
        load->eraseFromParent();
    }
    return once;
}

} // namespace

PacketMemory holdPacket(Function &packet, const Reception &reception, const PacketPhase &phase) {
    PacketMemory memory;
    auto written = phase.heap.find(callNumber(*reception.call));
    if (written != phase.heap.end() && (written->second.all || !written->second.ranges.empty())) return memory;
    if (auto parameter = reception.packetParameter; parameter && *parameter < packet.arg_size() && reception.callback)
        return {packet.getArg(*parameter), packet.getArg(*parameter - 1)};
    if (reception.packetGlobal.empty() || reception.headerGlobal.empty()) return memory;
    memory.packet = readOnce(packet, reception.packetGlobal, reception);
    if (memory.packet) memory.header = readOnce(packet, reception.headerGlobal, reception);
    return memory;
}

void markPacketMemory(Function &packet, const PacketMemory &memory) {
    if (!memory.isKnown()) return;
    LLVMContext &context = packet.getContext();
    MDBuilder builder(context);
    MDNode *domain = builder.createAnonymousAliasScopeDomain("reception");
    MDNode *scopes = MDNode::get(context, builder.createAnonymousAliasScope(domain, "packet"));
    for (Instruction &instruction : instructions(packet)) {
        if (auto *load = dyn_cast<LoadInst>(&instruction)) {
            const Value *base = getUnderlyingObject(load->getPointerOperand(), 0);
            if (base == memory.packet || base == memory.header) load->setMetadata(LLVMContext::MD_alias_scope, scopes);
        } else if (instruction.mayWriteToMemory()) {
            instruction.setMetadata(LLVMContext::MD_noalias, scopes);
        }
    }
}

} // namespace catena
