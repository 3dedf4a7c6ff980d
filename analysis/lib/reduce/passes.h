// The analyses that LLVM's passes ask for.
#pragma once

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"

namespace catena {

/// All of LLVM's analyses, for one run of passes: a program changes between runs in ways that they are not told of.
struct PassAnalyses {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;

    explicit PassAnalyses(const llvm::Module &program) {
        // An allocation must stay the call that it is, by whose number its blocks are known: none is made of another,
        // as calloc is of malloc with memset.
        llvm::TargetLibraryInfoImpl library(llvm::Triple(program.getTargetTriple()));
        for (llvm::LibFunc allocator : {llvm::LibFunc_malloc, llvm::LibFunc_calloc, llvm::LibFunc_strdup})
            library.setUnavailable(allocator);
        functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(components);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, components, modules);
    }
};

} // namespace catena
