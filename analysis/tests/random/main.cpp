// catena-random-programs: writes random packet loops, runs them traced, and holds the analysis against what they did.
//
// Programs are compiled in files of many and taken apart again: starting a compiler takes longer than all the rest.
#include "program.h"
#include "program/bitcode.h"
#include "statealyzr/analysis.h"
#include "traced_run.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory category("Options");
cl::opt<unsigned> programCount("count", cl::desc("How many programs"), cl::init(100), cl::cat(category));
cl::opt<unsigned long long> seed("seed", cl::desc("The first program's seed; the others follow"), cl::init(1),
                                 cl::cat(category));
cl::opt<unsigned> packetCount("packets", cl::desc("Packets that each receives"), cl::init(12), cl::cat(category));
cl::opt<bool> show("show", cl::desc("Print the programs"), cl::cat(category));

constexpr unsigned perFile = 12;

std::string prefixOf(unsigned number) { return "p" + std::to_string(number) + "_"; }

/// Compile text to bitcode.
Expected<std::unique_ptr<MemoryBuffer>> compile(const std::string &text) {
    SmallString<128> source, bitcode;
    if (std::error_code code = sys::fs::createTemporaryFile("random", "c", source)) return failure(code.message());
    if (std::error_code code = sys::fs::createTemporaryFile("random", "bc", bitcode)) return failure(code.message());
    FileRemover removeSource(source), removeBitcode(bitcode);
    std::error_code code;
    {
        raw_fd_ostream file(source, code);
        if (code) return failure(source + ": " + code.message());
        file << text;
    }
    auto clang = sys::findProgramByName("clang-19");
    if (!clang) return failure("clang-19 is not there: apt-get install clang-19");
    std::string message;
    int status = sys::ExecuteAndWait(*clang,
                                     {*clang, "-g", "-O0", "-Xclang", "-disable-O0-optnone", "-fno-discard-value-names",
                                      "-fwrapv", "-emit-llvm", "-w", "-c", source, "-o", bitcode},
                                     {}, {}, 60, 0, &message);
    if (status) return failure("a random program cannot be compiled " + message);
    auto buffer = MemoryBuffer::getFile(bitcode);
    if (!buffer) return failure(bitcode + ": " + buffer.getError().message());
    return std::move(*buffer);
}

/// Return the bitcode of one program out of a file of many.
SmallVector<char, 0> takeOut(const Module &all, const std::string &prefix) {
    ValueToValueMapTy map;
    auto one = CloneModule(all, map, [&](const GlobalValue *value) {
        return value->getName().starts_with(prefix) || value->hasPrivateLinkage();
    });
    std::vector<GlobalValue *> unused;
    for (GlobalVariable &global : one->globals()) {
        global.removeDeadConstantUsers();
        if (global.use_empty() && !global.getName().starts_with(prefix)) unused.push_back(&global);
    }
    for (Function &function : *one)
        if (function.isDeclaration() && function.use_empty()) unused.push_back(&function);
    for (GlobalValue *value : unused) value->eraseFromParent();
    one->getFunction(prefix + "main")->setName("main");
    // The other programs' variables, and the types that only they have, are still in the file's debug information.
    SmallVector<Metadata *> described;
    for (GlobalVariable &global : one->globals()) {
        SmallVector<DIGlobalVariableExpression *, 1> own;
        global.getDebugInfo(own);
        append_range(described, own);
    }
    for (DICompileUnit *unit : one->debug_compile_units()) {
        unit->replaceGlobalVariables(MDTuple::get(one->getContext(), described));
        unit->replaceRetainedTypes(MDTuple::get(one->getContext(), {}));
    }
    SmallVector<char, 0> bytes;
    raw_svector_ostream stream(bytes);
    WriteBitcodeToFile(*one, stream);
    return bytes;
}

struct Figures {
    unsigned programs = 0, misses = 0, broken = 0;
    Precision plain, fields;
};

Error check(StringRef bitcode, uint64_t programSeed, Figures &figures) {
    ++figures.programs;
    auto run = random::runTraced(bitcode, programSeed, packetCount);
    if (!run) {
        ++figures.broken;
        outs() << "program " << programSeed << ": " << toString(run.takeError()) << "\n";
        return Error::success();
    }
    for (bool fields : {false, true}) {
        LLVMContext context;
        AnalysisOptions options;
        options.fields = fields;
        auto report =
            findState([&] { return parseBitcodeFile(MemoryBufferRef(bitcode, "program"), context); }, options);
        if (!report) return report.takeError();
        for (const Miss &miss : findMisses(report->variables, *run)) {
            ++figures.misses;
            outs() << "program " << programSeed << (fields ? " with fields: " : ": ") << miss.variable;
            if (!miss.declared.function.empty()) outs() << " of " << miss.declared.function;
            outs() << " " << miss.what << "\n";
        }
        Precision found = precision(report->variables, *run);
        Precision &sum = fields ? figures.fields : figures.plain;
        sum.called += found.called, sum.seen += found.seen;
    }
    outs().flush();
    return Error::success();
}

Error checkFile(uint64_t firstSeed, unsigned programs, Figures &figures) {
    std::string text = random::preamble();
    for (unsigned i = 0; i < programs; ++i) text += random::program(firstSeed + i, prefixOf(i));
    if (show) outs() << text;
    auto bitcode = compile(text);
    if (!bitcode) return bitcode.takeError();
    LLVMContext context;
    auto all = parseBitcodeFile((*bitcode)->getMemBufferRef(), context);
    if (!all) return all.takeError();
    for (unsigned i = 0; i < programs; ++i) {
        SmallVector<char, 0> one = takeOut(**all, prefixOf(i));
        if (Error error = check(StringRef(one.data(), one.size()), firstSeed + i, figures)) return error;
    }
    return Error::success();
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(argc, argv, "Holds the analysis against random packet loops that run traced.\n");
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    Figures figures;
    for (unsigned done = 0; done < programCount; done += perFile)
        if (Error error = checkFile(seed + done, std::min(perFile, programCount - done), figures)) {
            errs() << toString(std::move(error)) << "\n";
            return 1;
        }
    outs() << figures.programs << " programs, " << figures.misses << " misses, " << figures.broken
           << " that did not run; " << figures.plain.seen << " of " << figures.plain.called
           << " variables called updateable were updated, with fields " << figures.fields.seen << " of "
           << figures.fields.called << "\n";
    return figures.misses || figures.broken ? 1 : 0;
}
