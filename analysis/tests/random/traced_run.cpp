// The program is compiled in memory (LLVM's ORC) in a child that has the tracer's runtime; a pipe brings back what it
// saw.
#include "traced_run.h"

#include "../../runtime/trace/trace.h"
#include "program/bitcode.h"
#include "tracer/instrument.h"
#include "types.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace catena::random {

namespace {

Random *source;
unsigned left;
unsigned char bytes[64];

const unsigned char *nextPacket() {
    if (!left) return nullptr;
    --left;
    for (unsigned char &byte : bytes) byte = static_cast<unsigned char>(source->below(256));
    return bytes;
}

// What the program calls to receive and send.
long give(int, void *buffer, unsigned long size, int) {
    const unsigned char *packet = nextPacket();
    if (!packet) return 0;
    memcpy(buffer, packet, std::min<unsigned long>(size, sizeof bytes));
    return static_cast<long>(sizeof bytes);
}

long take(int, const void *, unsigned long size, int) { return static_cast<long>(size); }

const unsigned char *giveCaptured(void *, void *header) {
    memset(header, 0, 24);
    return nextPacket();
}

int callBack(void *, int, void (*handler)(unsigned char *, const void *, const unsigned char *), unsigned char *user) {
    static const unsigned char header[24] = {};
    while (const unsigned char *packet = nextPacket()) handler(user, header, packet);
    return 0;
}

template <typename Function> orc::ExecutorSymbolDef symbol(Function *function) {
    return {orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported | JITSymbolFlags::Callable};
}

Error define(orc::LLJIT &machine) {
    orc::SymbolMap symbols;
    auto add = [&](const char *name, auto *function) { symbols[machine.mangleAndIntern(name)] = symbol(function); };
    add("recv", give), add("send", take), add("pcap_next", giveCaptured), add("pcap_loop", callBack);
    add("catena_trace_program", catena_trace_program), add("catena_trace_enter", catena_trace_enter);
    add("catena_trace_leave", catena_trace_leave), add("catena_trace_local", catena_trace_local);
    add("catena_trace_read", catena_trace_read), add("catena_trace_write", catena_trace_write);
    add("catena_trace_read_deep", catena_trace_read_deep), add("catena_trace_lend", catena_trace_lend);
    add("catena_trace_lend_object", catena_trace_lend_object), add("catena_trace_take_back", catena_trace_take_back);
    add("catena_trace_receiving", catena_trace_receiving), add("catena_trace_received", catena_trace_received);
    add("catena_trace_calls_back", catena_trace_calls_back), add("catena_trace_called", catena_trace_called);
    add("catena_trace_returned", catena_trace_returned), add("catena_trace_malloc", catena_trace_malloc);
    add("catena_trace_calloc", catena_trace_calloc), add("catena_trace_realloc", catena_trace_realloc);
    add("catena_trace_free", catena_trace_free), add("_setjmp", _setjmp);
    return machine.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

/// Run a program here and write what it did to a file: its variables' names go with it.
Error runHere(StringRef bitcode, int report) {
    auto context = std::make_unique<LLVMContext>();
    auto program = parseBitcodeFile(MemoryBufferRef(bitcode, "program"), *context);
    if (!program) return program.takeError();
    if (Error error = instrumentForTrace(**program, LibraryEffects::standard(), PacketFunctions::standard()))
        return error;
    auto host = orc::JITTargetMachineBuilder::detectHost();
    if (!host) return host.takeError();
    host->setCodeGenOptLevel(CodeGenOptLevel::None);
    auto machine = orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*host)).create();
    if (!machine) return machine.takeError();
    if (Error error = define(**machine)) return error;
    (*program)->setDataLayout((*machine)->getDataLayout());
    if (Error error = (*machine)->addIRModule({std::move(*program), std::move(context)})) return error;
    auto main = (*machine)->lookup("main");
    if (!main) return main.takeError();
    main->toPtr<int()>()();
    catena_trace_report(report);
    return Error::success();
}

} // namespace

Expected<ObservedRun> runTraced(StringRef bitcode, uint64_t seed, unsigned packets) {
    int ends[2];
    if (pipe(ends)) return failure("no pipe: " + Twine(strerror(errno)));
    pid_t child = fork();
    if (child < 0) return failure("no process: " + Twine(strerror(errno)));
    if (!child) {
        close(ends[0]);
        alarm(10);
        for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE}) signal(number, SIG_DFL);
        Random random(seed);
        source = &random, left = packets;
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        setenv("CATENA_TRACE", "", 1);
        if (Error error = runHere(bitcode, ends[1])) {
            dprintf(STDERR_FILENO, "%s\n", toString(std::move(error)).c_str());
            _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    std::string seen;
    char buffer[65536];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) seen.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return failure("the program ended by signal " + Twine(WTERMSIG(status)));
    if (WEXITSTATUS(status)) return failure("the program could not be run");
    return readObservations("trace", seen);
}

} // namespace catena::random
