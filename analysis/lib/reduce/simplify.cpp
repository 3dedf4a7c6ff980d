// Which passes run when: constants while loops are still to be unrolled, decisions along paths, and all at the end.
#include "reduce/simplify.h"

#include "reduce/passes.h"
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
    PassAnalyses analyses(*function.getParent());
    passes(analyses.builder).run(function, analyses.functions);
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
