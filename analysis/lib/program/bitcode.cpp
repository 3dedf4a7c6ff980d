// Reading bitcode: what can be wrong with it is found here, so that the analyses may trust a program.
#include "program/bitcode.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

using namespace llvm;

namespace catena {

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

namespace {

/// How bitcode that can be analysed is made; the end of several messages.
const char *const build = "build it with `clang-19 -g -O0 -Xclang -disable-O0-optnone -fno-discard-value-names "
                          "-emit-llvm -c`";

/// Remembers the first error that LLVM reports by itself.
struct FirstError : DiagnosticHandler {
    std::string *message;
    explicit FirstError(std::string *message) : message(message) {}
    bool handleDiagnostics(const DiagnosticInfo &info) override {
        if (info.getSeverity() == DS_Error && message->empty()) {
            raw_string_ostream text(*message);
            DiagnosticPrinterRawOStream printer(text);
            info.print(printer);
        }
        return true;
    }
};

std::string explain(const std::string &file, std::string message) {
    StringRef text(message);
    // LLVM says "Unknown attribute kind (97) (Producer: 'LLVM21.1.0' Reader: 'LLVM 19.1.7')".
    if (text.contains("Producer:") && !text.contains("Producer: 'LLVM19"))
        return (file + ": this bitcode is of another version of LLVM than 19 (" + text + "); " + build).str();
    return (file + ": this is not whole LLVM bitcode: " + text).str();
}

/// Keeps what LLVM's reader may ask for in proportion to the file: a damaged one can claim any number of values. An
/// allocation beyond it stops the reader like any other crash of its own.
class MemoryBound {
public:
    explicit MemoryBound(size_t fileBytes) {
        unsigned long pages = 0;
        if (FILE *statm = fopen("/proc/self/statm", "r")) {
            if (fscanf(statm, "%lu", &pages) != 1) pages = 0;
            fclose(statm);
        }
        if (!pages || getrlimit(RLIMIT_AS, &before)) return;
        rlimit bound = before;
        bound.rlim_cur =
            std::min<rlim_t>(before.rlim_cur, pages * sysconf(_SC_PAGESIZE) + (1ul << 30) + 64 * fileBytes);
        set = setrlimit(RLIMIT_AS, &bound) == 0;
    }
    ~MemoryBound() {
        if (set) setrlimit(RLIMIT_AS, &before);
    }
    MemoryBound(const MemoryBound &) = delete;
    MemoryBound &operator=(const MemoryBound &) = delete;

private:
    rlimit before = {};
    bool set = false;
};

/// LLVM drops debug information that is wrong, and says so by itself. Here it is an error like any other.
void keepDebugInformation() {
    auto option = cl::getRegisteredOptions().find("disable-auto-upgrade-debug-info");
    if (option != cl::getRegisteredOptions().end()) static_cast<cl::opt<bool> *>(option->second)->setValue(true);
}

Expected<std::unique_ptr<Module>> readOne(const std::string &file, LLVMContext &context) {
    auto buffer = MemoryBuffer::getFileOrSTDIN(file);
    if (!buffer) return failure(file + ": " + buffer.getError().message());
    const auto *bytes = reinterpret_cast<const unsigned char *>((*buffer)->getBufferStart());
    if (!isBitcode(bytes, bytes + (*buffer)->getBufferSize())) {
        const char *what = (*buffer)->getBuffer().starts_with("\x7f"
                                                              "ELF")
                               ? "an object file or executable, not bitcode"
                               : "not LLVM bitcode";
        return failure(file + ": this is " + what + "; " + build);
    }
    std::unique_ptr<Module> module;
    std::string message;
    bool broken = false;
    // LLVM's reader checks most of what it reads and stops the process at the rest: that must not be ours.
    keepDebugInformation();
    CrashRecoveryContext::Enable();
    auto disable = make_scope_exit([] { CrashRecoveryContext::Disable(); });
    CrashRecoveryContext recovery;
    MemoryBound bound((*buffer)->getBufferSize());
    bool ended = recovery.RunSafely([&] {
        auto parsed = parseBitcodeFile((*buffer)->getMemBufferRef(), context);
        if (!parsed) {
            message = toString(parsed.takeError());
            return;
        }
        module = std::move(*parsed);
        raw_string_ostream text(message);
        broken = verifyModule(*module, &text);
    });
    if (!ended) {
        // What LLVM left half built cannot be taken apart either.
        (void)module.release();
        return failure(explain(file, "LLVM's reader gave up on it"));
    }
    if (!module) return failure(explain(file, message));
    if (broken) return failure(explain(file, StringRef(message).split('\n').first.str()));
    return std::move(module);
}

bool hasDebugInformation(const Module &module) {
    bool functions = false;
    for (const Function &function : module) {
        if (function.getSubprogram()) return true;
        functions |= !function.isDeclaration();
    }
    return !functions;
}

} // namespace

Expected<std::unique_ptr<Module>> readProgram(const std::vector<std::string> &files, LLVMContext &context) {
    std::string linkError;
    auto program = std::make_unique<Module>("program", context);
    bool first = true;
    for (const std::string &file : files) {
        auto part = readOne(file, context);
        if (!part) return part.takeError();
        if (!hasDebugInformation(**part))
            return failure(file + ": there is no debug information, which names and lines come from; " + build);
        if (first) {
            program = std::move(*part);
            first = false;
            continue;
        }
        context.setDiagnosticHandler(std::make_unique<FirstError>(&linkError));
        bool failed = Linker::linkModules(*program, std::move(*part));
        context.setDiagnosticHandler(nullptr);
        if (failed) return failure(file + ": cannot be linked with the files before it: " + linkError);
    }
    bool defines = false;
    for (const Function &function : *program) defines |= !function.isDeclaration();
    if (!defines) return failure(files.front() + ": there is no function in it");
    return std::move(program);
}

} // namespace catena
