// The steps in their order (Deng and Wu, NFReducer, Figure 4): the packet-processing function, the configuration, the
// elimination, and a program that can be deployed.
#include "reduce/reduce.h"

#include "program/bitcode.h"
#include "reduce/callees.h"
#include "reduce/extraction.h"
#include "reduce/feasible.h"
#include "reduce/passes.h"
#include "reduce/runtime.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/NameAnonGlobals.h"
#include <chrono>

using namespace llvm;

namespace catena {

namespace {

/// Make everything but `main` the program's own, and remove what nothing uses.
void closeProgram(Module &program) {
    PassAnalyses analyses(program);
    ModulePassManager passes;
    passes.addPass(InternalizePass([](const GlobalValue &value) { return value.getName() == "main"; }));
    passes.addPass(GlobalDCEPass());
    passes.addPass(NameAnonGlobalPass());
    passes.run(program, analyses.modules);
    // clang marks all functions of bitcode for analyses so, and without `-disable-O0-optnone` in the other way too,
    // which does not go without the first.
    for (Function &function : program) {
        function.removeFnAttr(Attribute::NoInline);
        function.removeFnAttr(Attribute::OptimizeNone);
    }
}

} // namespace

Expected<Reduction> reduce(std::unique_ptr<Module> program, const ReduceOptions &options, const Scratch &scratch) {
    Reduction done;
    auto last = std::chrono::steady_clock::now();
    auto step = [&](const char *name) {
        auto now = std::chrono::steady_clock::now();
        done.seconds.push_back({name, std::chrono::duration<double>(now - last).count()});
        last = now;
    };
    auto reception = findReception(*program, options.analysis, options.at, options.lifted);
    if (!reception) return reception.takeError();
    auto packet = outlinePacketFunction(*reception);
    if (!packet) return packet.takeError();
    closeProgram(*program);
    done.packetFunction = (*packet)->getName().str();
    RemovedLines lines(**packet);
    done.specialised.lines = lines.total();
    done.specialised.inlined = inlineCalls(**packet);
    done.specialised.instructionsBefore = instructionsWithCallees(**packet);
    removeUncalled(*program);
    prepareExtraction(**packet);
    step("packet function");
    auto logic = findPacketLogic(**packet, *reception, options.analysis, options.extraction);
    if (!logic) return logic.takeError();
    done.unreduced = CloneModule(*program);
    done.extraction = logic->found;
    done.extraction.instructionsBefore = (*packet)->getInstructionCount();
    auto whole = lines.linesOf(**packet);
    extract(**packet, *logic);
    if (done.extraction.drops()) lines.step(whole, **packet, RemovalReason::Dropped);
    done.extraction.instructionsAfter = (*packet)->getInstructionCount();
    step("extraction");
    PacketPhase phase = packetPhase(*program, *reception, options.analysis);
    done.unmodelled = phase.unmodelled;
    for (Module *one : {program.get(), done.unreduced.get()})
        for (const std::string &name : phase.allocators) one->getFunction(name)->addFnAttr(allocatorMark);
    auto given = applyLabels(options.labels, *program, *reception, phase);
    if (!given) return given.takeError();
    step("labels");
    auto image = imageAtReception(*program, options.link, options.line, options.capture, scratch);
    if (!image) return image.takeError();
    step("configuration");
    Frozen frozen(*program, *image, phase, options.analysis.library);
    done.ownBlocks = frozen.blocks();
    ChainKnowledge chain{*reception, phase, options.analysis.library};
    specialise(**packet, frozen, options.level, options.limits, temporaries(*given),
               options.consolidate ? &chain : nullptr, lines, done.specialised);
    step("elimination");
    done.labels = labelVariables(*program, *reception, phase, frozen, done.specialised.privates, *given);
    frozen.finish(*reception->call);
    done.reception = *reception;
    done.phase = std::move(phase);
    std::string message;
    raw_string_ostream text(message);
    if (verifyModule(*program, &text))
        return failure("the reduced program is damaged, which is an error here: " + message);
    done.program = std::move(program);
    return done;
}

namespace {

/// Where the packet is that the reception returns, and fills in the header for: what the packet function is given.
PacketBases returnedBases(const Function &packet) {
    for (const User *user : packet.users()) {
        const auto *call = dyn_cast<CallBase>(user);
        for (unsigned i = 0; call && i < call->arg_size(); ++i)
            if (const auto *reception = dyn_cast<CallBase>(call->getArgOperand(i));
                reception && reception->getMetadata("catena.reception"))
                return {packet.getArg(i), reception->getArgOperand(1)};
    }
    return {};
}

std::vector<std::string> solvedPackets(const Module &program, const Reduction &reduction) {
    const Reception &reception = reduction.reception;
    const Function &packet = *program.getFunction(reduction.packetFunction);
    PacketBases bases;
    if (auto parameter = reception.packetParameter; parameter && *parameter < packet.arg_size())
        bases = {packet.getArg(*parameter), packet.getArg(*parameter - 1)};
    else if (!reception.packetGlobal.empty())
        bases = {program.getNamedGlobal(reception.packetGlobal), program.getNamedGlobal(reception.headerGlobal)};
    else if (reception.name == "pcap_next")
        bases = returnedBases(packet);
    if (!bases.packet || !bases.header) return {};
    return packetsForBranches(packet, bases);
}

} // namespace

std::vector<std::string> packetsOfOriginal(const Reduction &reduction) {
    auto whole = CloneModule(*reduction.unreduced);
    inlineAll(*whole->getFunction(reduction.packetFunction));
    return solvedPackets(*whole, reduction);
}

std::vector<std::string> packetsOfReduced(const Reduction &reduction) {
    return solvedPackets(*reduction.program, reduction);
}

Expected<std::string> buildReduced(const Module &program, const LinkFlags &link, const Scratch &scratch) {
    return buildExecutable(program, runtime::enter, 3, link, scratch);
}

} // namespace catena
