// The steps in their order (Deng and Wu, NFReducer, Figure 4): the packet-processing function, the configuration, the
// elimination, and a program that can be deployed.
#include "reduce/reduce.h"

#include "program/bitcode.h"
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
    PassAnalyses analyses;
    ModulePassManager passes;
    passes.addPass(InternalizePass([](const GlobalValue &value) { return value.getName() == "main"; }));
    passes.addPass(GlobalDCEPass());
    passes.addPass(NameAnonGlobalPass());
    passes.run(program, analyses.modules);
    // clang marks all functions of bitcode for analyses so.
    for (Function &function : program) function.removeFnAttr(Attribute::NoInline);
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
    auto reception = findReception(*program, options.analysis, options.lifted);
    if (!reception) return reception.takeError();
    auto packet = outlinePacketFunction(*reception);
    if (!packet) return packet.takeError();
    closeProgram(*program);
    done.packetFunction = (*packet)->getName().str();
    done.specialised.inlined = inlineCalls(**packet);
    done.specialised.instructionsBefore = (*packet)->getInstructionCount();
    removeUncalled(*program);
    prepareExtraction(**packet);
    step("packet function");
    auto logic = findPacketLogic(**packet, *reception, options.analysis, options.extraction);
    if (!logic) return logic.takeError();
    done.unreduced = CloneModule(*program);
    done.extraction = logic->found;
    done.extraction.instructionsBefore = (*packet)->getInstructionCount();
    extract(**packet, *logic);
    done.extraction.instructionsAfter = (*packet)->getInstructionCount();
    step("extraction");
    PacketPhase phase = packetPhase(*program, *reception, options.analysis);
    done.unmodelled = phase.unmodelled;
    auto given = applyLabels(options.labels, *program, *reception, phase);
    if (!given) return given.takeError();
    step("labels");
    auto image = imageAtReception(*program, options.link, options.line, options.capture, scratch);
    if (!image) return image.takeError();
    step("configuration");
    Frozen frozen(*program, *image, phase, options.analysis.library);
    done.ownBlocks = frozen.blocks();
    ChainKnowledge chain{*reception, phase, options.analysis.library};
    specialise(**packet, frozen, options.level, options.limits, temporaries(*given), options.isChain ? &chain : nullptr,
               done.specialised);
    step("elimination");
    done.labels = labelVariables(*program, *reception, phase, frozen, done.specialised.privates, *given);
    frozen.finish(*reception->call);
    done.reception = *reception;
    std::string message;
    raw_string_ostream text(message);
    if (verifyModule(*program, &text))
        return failure("the reduced program is damaged, which is an error here: " + message);
    done.program = std::move(program);
    return done;
}

Capture solvedPackets(const Reduction &reduction, uint32_t linkType) {
    Capture made;
    made.linkType = linkType;
    const Reception &reception = reduction.reception;
    // As it was: every decision of the packet function, whatever the configuration makes of it.
    auto whole = CloneModule(*reduction.unreduced);
    inlineAll(*whole->getFunction(reduction.packetFunction));
    for (const Module *program :
         {static_cast<const Module *>(whole.get()), static_cast<const Module *>(reduction.program.get())}) {
        const Function &packet = *program->getFunction(reduction.packetFunction);
        PacketBases bases;
        if (auto parameter = reception.packetParameter; parameter && *parameter < packet.arg_size())
            bases = {packet.getArg(*parameter), packet.getArg(*parameter - 1)};
        else if (!reception.packetGlobal.empty())
            bases = {program->getNamedGlobal(reception.packetGlobal), program->getNamedGlobal(reception.headerGlobal)};
        if (!bases.packet || !bases.header) continue;
        for (std::string &one : packetsForBranches(packet, bases)) made.packets.push_back(std::move(one));
    }
    return made;
}

Error buildReduced(const Module &program, const BuildFlags &link, const std::string &to, const Scratch &scratch) {
    BuildFlags flags = link;
    flags.push_back("-O3");
    return buildExecutable(program, runtime::enter, flags, to, scratch);
}

} // namespace catena
