// Reading bitcode: what can be wrong with it is found here, so that the analyses may trust a program.
#include "program/bitcode.h"

#include "program/debug_soundness.h"
#include "program/elf_file.h"
#include "program/shared_library.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Config/llvm-config.h"
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

/// Return who wrote bitcode, as it says itself: `LLVM19.1.7`; empty if it does not.
std::string producerOf(MemoryBufferRef bitcode) {
    auto producer = getBitcodeProducerString(bitcode);
    if (producer) return StringRef(*producer).trim('\0').str();
    consumeError(producer.takeError());
    return "";
}

std::string explain(const std::string &file, const std::string &producer, StringRef message) {
    unsigned version = 0;
    StringRef number = StringRef(producer).drop_until(isDigit);
    if (!number.consumeInteger(10, version) && version > LLVM_VERSION_MAJOR)
        return file + ": this bitcode was written by " + producer + ", which is newer than the LLVM " +
               Twine(LLVM_VERSION_MAJOR).str() + " that reads it here (" + message.str() + "); " + build;
    return file + ": this is not whole LLVM bitcode: " + message.str();
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

/// Read one module.
Expected<std::unique_ptr<Module>> readModule(const std::string &file, MemoryBufferRef bitcode, LLVMContext &context) {
    std::unique_ptr<Module> module;
    std::string message, producer;
    bool broken = false;
    // LLVM's reader checks most of what it reads and stops the process at the rest: that must not be ours.
    keepDebugInformation();
    CrashRecoveryContext::Enable();
    auto disable = make_scope_exit([] { CrashRecoveryContext::Disable(); });
    CrashRecoveryContext recovery;
    MemoryBound bound(bitcode.getBufferSize());
    bool ended = recovery.RunSafely([&] {
        producer = producerOf(bitcode);
        auto parsed = parseBitcodeFile(bitcode, context);
        if (!parsed) {
            message = toString(parsed.takeError());
            return;
        }
        module = std::move(*parsed);
        raw_string_ostream text(message);
        // First: LLVM's verifier follows scopes that lead back to themselves without end.
        auto wrong = unsoundDebugInformation(*module);
        if (wrong) text << "its debug information is damaged: " << *wrong;
        broken = wrong || verifyModule(*module, &text);
    });
    if (!ended) {
        // What LLVM left half built cannot be taken apart either.
        (void)module.release();
        return failure(explain(file, producer, "LLVM's reader gave up on it"));
    }
    if (!module) return failure(explain(file, producer, message));
    if (broken) return failure(explain(file, producer, StringRef(message).split('\n').first));
    return std::move(module);
}

/// Return the bitcode in a file: the file itself, or what an object file, executable or library carries.
Expected<std::vector<StringRef>> bitcodeIn(const std::string &file, MemoryBufferRef buffer) {
    if (isElf(buffer.getBuffer())) {
        auto elf = readElf(buffer);
        if (!elf) return failure(file + ": this is no whole ELF file: " + toString(elf.takeError()));
        if (elf->bitcode.empty())
            return failure(file + ": this is an object file or executable that carries no bitcode; " + build +
                           ", or let `catena analyze -- make` do the building");
        return elf->bitcode;
    }
    const auto *bytes = reinterpret_cast<const unsigned char *>(buffer.getBufferStart());
    if (!isBitcode(bytes, bytes + buffer.getBufferSize()))
        return failure(file + ": this is not LLVM bitcode; " + build);
    return std::vector<StringRef>{buffer.getBuffer()};
}

bool hasDebugInformation(const Module &module) {
    bool functions = false;
    for (const Function &function : module) {
        if (function.getSubprogram()) return true;
        functions |= !function.isDeclaration();
    }
    return !functions;
}

/// Reads files one by one and links them.
class ProgramLinker {
public:
    explicit ProgramLinker(LLVMContext &context) : context(context) {}

    /// Link all bitcode of a file into `into`, which is null at first.
    Error add(const std::string &file, std::unique_ptr<Module> &into) {
        auto buffer = MemoryBuffer::getFileOrSTDIN(file);
        if (!buffer) return failure(file + ": " + buffer.getError().message());
        auto parts = bitcodeIn(file, (*buffer)->getMemBufferRef());
        if (!parts) return parts.takeError();
        bool debug = false;
        for (StringRef bitcode : *parts) {
            auto part = readModule(file, MemoryBufferRef(bitcode, file), context);
            if (!part) return part.takeError();
            debug |= hasDebugInformation(**part);
            // A program is called by what was linked, not by one of its sources nor as the linker calls its own work.
            if (parts->size() > 1 || (*part)->getSourceFileName() == "ld-temp.o") (*part)->setSourceFileName(file);
            if (Error error = link(file, into, std::move(*part))) return error;
        }
        if (!debug) return failure(file + ": there is no debug information, which names and lines come from; " + build);
        return Error::success();
    }

    Error link(const std::string &file, std::unique_ptr<Module> &into, std::unique_ptr<Module> part) {
        if (!into) {
            into = std::move(part);
            return Error::success();
        }
        std::string message;
        // Put back, since LLVM's writer asks it without looking whether there is one.
        auto before = context.getDiagnosticHandler();
        context.setDiagnosticHandler(std::make_unique<FirstError>(&message));
        bool failed = Linker::linkModules(*into, std::move(part));
        context.setDiagnosticHandler(std::move(before));
        if (failed) return failure(file + ": cannot be linked with the files before it: " + message);
        return Error::success();
    }

private:
    LLVMContext &context;
};

} // namespace

Expected<std::unique_ptr<Module>> readProgram(const std::vector<std::string> &files, LLVMContext &context,
                                              const std::vector<std::string> &libraries) {
    ProgramLinker linker(context);
    std::unique_ptr<Module> program;
    for (const std::string &file : files)
        if (Error error = linker.add(file, program)) return std::move(error);
    for (const std::string &file : libraries) {
        std::unique_ptr<Module> library;
        if (Error error = linker.add(file, library)) return std::move(error);
        giveWay(*library, *program);
        if (Error error = linker.link(file, program, std::move(library))) return std::move(error);
    }
    bool defines = false;
    for (const Function &function : *program) defines |= !function.isDeclaration();
    if (!defines) return failure(files.front() + ": there is no function in it");
    return std::move(program);
}

} // namespace catena
