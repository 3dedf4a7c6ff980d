// Taking the packet loop apart. The program is changed in place, but does the same as before.
#include "reduce/reception.h"

#include "pointsto/points_to.h"
#include "program/bitcode.h"
#include "program/promotion.h"
#include "statealyzr/loop_procedures.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"

using namespace llvm;

namespace catena {

namespace {

const char *const numberKind = "catena.call";

} // namespace

unsigned numberCalls(Module &program, unsigned last) {
    LLVMContext &context = program.getContext();
    for (Function &function : program)
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction)) last = std::max(last, callNumber(*call));
    for (Function &function : program)
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction); call && !callNumber(*call)) {
                auto *value = ConstantInt::get(Type::getInt32Ty(context), ++last);
                instruction.setMetadata(numberKind, MDNode::get(context, ConstantAsMetadata::get(value)));
            }
    return last;
}

void liftLocals(Function &function, Reception &reception) {
    std::vector<AllocaInst *> cells;
    for (Instruction &instruction : function.getEntryBlock())
        if (auto *cell = dyn_cast<AllocaInst>(&instruction);
            cell && cell->isStaticAlloca() && !cell->isArrayAllocation())
            cells.push_back(cell);
    Module &program = *function.getParent();
    for (AllocaInst *cell : cells) {
        auto *global = new GlobalVariable(program, cell->getAllocatedType(), false, GlobalValue::InternalLinkage,
                                          Constant::getNullValue(cell->getAllocatedType()),
                                          "local." + function.getName() + "." + cell->getName());
        global->setAlignment(cell->getAlign());
        if (const DILocalVariable *source = sourceLocal(*cell)) {
            LiftedLocal local{source->getName().str(), typeName(source->getType()), {}, source->isParameter()};
            local.declared = {source->getFilename().str(), source->getLine(), function.getName().str()};
            reception.locals[global->getName().str()] = local;
        }
        for (DbgVariableRecord *record : findDVRDeclares(cell)) record->eraseFromParent();
        for (DbgDeclareInst *declare : findDbgDeclares(cell)) declare->eraseFromParent();
        std::vector<Instruction *> lifetimes;
        for (User *user : cell->users())
            if (auto *marker = dyn_cast<IntrinsicInst>(user); marker && marker->isLifetimeStartOrEnd())
                lifetimes.push_back(marker);
        for (Instruction *marker : lifetimes) marker->eraseFromParent();
        cell->replaceAllUsesWith(global);
        cell->eraseFromParent();
    }
}

namespace {

Error several(const std::vector<PacketCall> &receives) {
    std::string places;
    for (const PacketCall &receive : receives) {
        Place place = placeOf(*receive.call);
        places +=
            (places.empty() ? "" : ", ") + place.file + ":" + std::to_string(place.line) + " (" + receive.name + ")";
    }
    return failure(
        "packets are received at several places: " + places +
        "; only programs with one are reduced. Take the others off by a list with `none NAME`: --functions FILE");
}

} // namespace

unsigned callNumber(const CallBase &call) {
    const MDNode *node = call.getMetadata(numberKind);
    return node ? mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue() : 0;
}

std::map<unsigned, CallBase *> numberedCalls(Module &program) {
    std::map<unsigned, CallBase *> calls;
    for (Function &function : program)
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (unsigned number = callNumber(*call)) calls[number] = call;
    return calls;
}

Expected<Reception> findReception(Module &program, const AnalysisOptions &options,
                                  std::map<std::string, LiftedLocal> lifted) {
    numberCalls(program, 0);
    Reception reception;
    reception.locals = std::move(lifted);
    auto copy = CloneModule(program);
    promoteLocals(*copy, {});
    PointsTo pointsTo(*copy, options.library, {false, false});
    auto receives = packetCalls(*copy, pointsTo, options.functions, PacketFunction::Receive);
    if (receives.empty())
        return failure("no packet is received: the program calls none of the functions that are known to; name its "
                       "own with --receive NAME");
    if (receives.size() > 1) return several(receives);
    CallGraph calls(*copy, pointsTo);
    auto loops = loopProcedures(*copy, calls, receives);
    if (loops.empty() || loops[0].receives.empty())
        return failure("packets are received by " + receives[0].name + ", but in no loop");
    const CallBase *call = loops[0].receives[0];
    reception.name = receives[0].name;
    reception.place = placeOf(*call);
    reception.call = numberedCalls(program).at(callNumber(*call));
    reception.call->setMetadata("catena.reception", MDNode::get(program.getContext(), {}));
    for (const PacketPlace &place : receives[0].function->packets) {
        if (place.kind != PacketPlace::CallbackParameter) continue;
        const Value *given = call->getArgOperand(place.argument)->stripPointerCasts();
        if (!isa<Function>(given) || cast<Function>(given)->isDeclaration())
            return failure(reception.name + " calls back a function that is not named at its call; only named ones are "
                                            "reduced");
        reception.callback = program.getFunction(given->getName());
    }
    liftLocals(*reception.call->getFunction(), reception);
    if (reception.callback) {
        // The callback's own parameters are gone with every packet, but they are where it is.
        for (const Instruction &instruction : instructions(*reception.callback))
            if (const auto *cell = dyn_cast<AllocaInst>(&instruction))
                if (const DILocalVariable *source = sourceLocal(*cell); source && source->isParameter())
                    for (const PacketPlace &place : receives[0].function->packets)
                        if (place.parameter + 1 == source->getArg())
                            reception.callbackParameters.push_back(
                                {source->getName().str(),
                                 typeName(source->getType()),
                                 {source->getFilename().str(), source->getLine(), reception.callback->getName().str()},
                                 true});
    }
    for (const PacketPlace &place : receives[0].function->packets) {
        if (!StringRef(reception.name).starts_with("pcap_")) break;
        if (place.kind == PacketPlace::CallbackParameter && place.parameter)
            reception.packetParameter = place.parameter;
        if (place.kind != PacketPlace::ThroughArgument || !place.argument) continue;
        reception.packetGlobal = reception.call->getArgOperand(place.argument)->getName();
        reception.headerGlobal = reception.call->getArgOperand(place.argument - 1)->getName();
    }
    for (const Use &argument : reception.call->args())
        if (reception.locals.count(argument->getName().str()))
            reception.packetVariables.push_back(argument->getName().str());
    return reception;
}

namespace {

Expected<Function *> cloneCallback(Reception &reception) {
    ValueToValueMapTy map;
    Function *clone = CloneFunction(reception.callback, map);
    clone->setLinkage(GlobalValue::InternalLinkage);
    clone->setName(reception.callback->getName() + ".reduced");
    Module &program = *clone->getParent();
    for (unsigned i = 0; i < reception.call->arg_size(); ++i)
        if (reception.call->getArgOperand(i)->stripPointerCasts() == reception.callback)
            reception.call->setArgOperand(i, clone);
    // What the library passes on unchanged: libpcap's last argument, to the first parameter.
    if (reception.name == "pcap_loop" || reception.name == "pcap_dispatch") {
        Argument *user = clone->getArg(0);
        auto *global = new GlobalVariable(program, user->getType(), false, GlobalValue::InternalLinkage,
                                          Constant::getNullValue(user->getType()), "local.user");
        new StoreInst(reception.call->getArgOperand(3), global, reception.call->getIterator());
        auto *load = new LoadInst(user->getType(), global, "user", clone->getEntryBlock().getFirstInsertionPt());
        user->replaceAllUsesWith(load);
    }
    return clone;
}

} // namespace

Expected<Function *> outlinePacketFunction(Reception &reception) {
    if (reception.callback) return cloneCallback(reception);
    Function &procedure = *reception.call->getFunction();
    BasicBlock *body = reception.call->getParent()->splitBasicBlock(std::next(reception.call->getIterator()), "packet");
    DominatorTree tree(procedure);
    LoopInfo loops(tree);
    const Loop *loop = loops.getLoopFor(body);
    if (!loop) return failure("the loop around " + reception.name + " ends with the first packet");
    std::vector<BasicBlock *> blocks{body};
    for (BasicBlock *block : loop->blocks())
        if (block != body && tree.dominates(body, block)) blocks.push_back(block);
    CodeExtractorAnalysisCache cache(procedure);
    CodeExtractor extractor(blocks, &tree, false, nullptr, nullptr, nullptr, false, true, nullptr, "reduced");
    Function *packet = extractor.isEligible() ? extractor.extractCodeRegion(cache) : nullptr;
    if (!packet)
        return failure("the body of the loop around " + reception.name + " in " + procedure.getName() +
                       " cannot be made a function of its own");
    packet->setLinkage(GlobalValue::InternalLinkage);
    return packet;
}

} // namespace catena
