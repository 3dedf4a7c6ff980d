// Starting a compiler takes longer than compiling a small function, and one that is compared is compiled several times.
#include "reduce/compile.h"

#include "program/bitcode.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

namespace {

void optimize(Module &program, TargetMachine &machine, unsigned level) {
    // What clang sets beside the defaults.
    PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = level > 1;
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder builder(&machine, tuning);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    const OptimizationLevel levels[] = {OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
                                        OptimizationLevel::O3};
    builder.buildPerModuleDefaultPipeline(levels[level]).run(program, modules);
}

} // namespace

Expected<SmallVector<char, 0>> objectCode(const Module &program, unsigned level) {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
    auto copy = CloneModule(program);
    std::string triple = copy->getTargetTriple(), message;
    if (triple.empty()) copy->setTargetTriple(triple = sys::getDefaultTargetTriple());
    const Target *target = TargetRegistry::lookupTarget(triple, message);
    if (!target || Triple(triple).getArch() != Triple(sys::getProcessTriple()).getArch())
        return failure("the bitcode is for " + triple + ", and only programs for this machine (" +
                       sys::getProcessTriple() + ") can be run: compile it for that");
    const CodeGenOptLevel levels[] = {CodeGenOptLevel::None, CodeGenOptLevel::Less, CodeGenOptLevel::Default,
                                      CodeGenOptLevel::Aggressive};
    std::unique_ptr<TargetMachine> machine(
        target->createTargetMachine(triple, "x86-64", "", TargetOptions(), Reloc::PIC_, std::nullopt, levels[level]));
    copy->setDataLayout(machine->createDataLayout());
    if (level) optimize(*copy, *machine, level);
    SmallVector<char, 0> object;
    raw_svector_ostream stream(object);
    legacy::PassManager passes;
    passes.add(new TargetLibraryInfoWrapperPass(Triple(triple)));
    if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
        return failure("no object code can be made for " + triple);
    passes.run(*copy);
    return object;
}

} // namespace catena
