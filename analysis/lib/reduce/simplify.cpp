// The passes come with analyses of the whole program, which are made anew for every run: functions change in between.
#include "reduce/simplify.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/JumpThreading.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

namespace catena {

namespace {

void runPasses(Function &function, function_ref<FunctionPassManager(PassBuilder &)> passes) {
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder builder;
    // An allocation must stay the call that it is, by whose number its blocks are known: none is made of another, as
    // calloc is of malloc with memset.
    TargetLibraryInfoImpl library(Triple(function.getParent()->getTargetTriple()));
    for (LibFunc allocator : {LibFunc_malloc, LibFunc_calloc, LibFunc_strdup}) library.setUnavailable(allocator);
    functions.registerPass([&] { return TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    passes(builder).run(function, functions);
}

} // namespace

void propagateConstants(Function &function) {
    runPasses(function, [](PassBuilder &) {
        FunctionPassManager passes;
        passes.addPass(SROAPass(SROAOptions::ModifyCFG));
        passes.addPass(EarlyCSEPass(true));
        passes.addPass(SCCPPass());
        passes.addPass(ADCEPass());
        // Loops keep their shape: those over configuration are not unrolled yet.
        passes.addPass(SimplifyCFGPass(SimplifyCFGOptions().needCanonicalLoops(true)));
        return passes;
    });
}

void propagateDecisions(Function &function) {
    propagateConstants(function);
    runPasses(function, [](PassBuilder &) {
        FunctionPassManager passes;
        passes.addPass(CorrelatedValuePropagationPass());
        passes.addPass(InstCombinePass());
        passes.addPass(JumpThreadingPass());
        passes.addPass(ADCEPass());
        passes.addPass(SimplifyCFGPass());
        return passes;
    });
}

void simplify(Function &function) {
    runPasses(function, [](PassBuilder &builder) {
        return builder.buildFunctionSimplificationPipeline(OptimizationLevel::O3, ThinOrFullLTOPhase::None);
    });
}

} // namespace catena
