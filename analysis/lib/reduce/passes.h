// The analyses that LLVM's passes ask for.
#pragma once

#include "llvm/Passes/PassBuilder.h"

namespace catena {

/// All of LLVM's analyses, for one run of passes: a program changes between runs in ways that they are not told of.
struct PassAnalyses {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;

    PassAnalyses() {
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(components);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, components, modules);
    }
};

} // namespace catena
