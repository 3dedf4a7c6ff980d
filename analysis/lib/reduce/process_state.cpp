// "Variables and functions must be renamed to avoid conflicts" (Deng and Wu, NFReducer, section IV-B): those of
// libraries cannot be. What libraries keep between calls is exchanged at the calls, or kept apart, or is a reason to
// refuse.
#include "reduce/process_state.h"

#include "program/bitcode.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include <set>

using namespace llvm;

namespace catena {

namespace {

std::vector<CallInst *> callsOf(Module &program, const std::set<StringRef> &names) {
    std::vector<CallInst *> calls;
    for (Function &function : program)
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallInst>(&instruction))
                if (const Function *callee = call->getCalledFunction();
                    callee && callee->isDeclaration() && names.count(callee->getName()))
                    calls.push_back(call);
    return calls;
}

/// getopt's variables are the program's own; before each call the library gets them, and after it they come back. 0
/// tells the library to begin anew, which by itself it does once.
void ownOptions(Module &program, StringRef name) {
    std::vector<CallInst *> calls = callsOf(program, {"getopt", "getopt_long", "getopt_long_only"});
    if (calls.empty()) return;
    Type *number = Type::getInt32Ty(program.getContext()), *pointer = PointerType::getUnqual(program.getContext());
    std::vector<std::pair<GlobalVariable *, GlobalVariable *>> pairs;
    for (auto [variable, type, begin] : {std::tuple("optind", number, 1), std::tuple("opterr", number, 1),
                                         std::tuple("optopt", number, int('?')), std::tuple("optarg", pointer, 0)}) {
        auto *library = cast<GlobalVariable>(program.getOrInsertGlobal(variable, type));
        Constant *value = type == pointer ? Constant::getNullValue(type) : ConstantInt::get(type, begin);
        auto *own = new GlobalVariable(program, type, false, GlobalValue::InternalLinkage, value, name + variable);
        library->replaceAllUsesWith(own);
        pairs.push_back({own, library});
    }
    auto *begun =
        new GlobalVariable(program, Type::getInt1Ty(program.getContext()), false, GlobalValue::InternalLinkage,
                           ConstantInt::getFalse(program.getContext()), name + "getopt.begun");
    for (CallInst *call : calls) {
        IRBuilder<> before(call);
        Value *again = before.CreateLoad(before.getInt1Ty(), begun);
        before.CreateStore(before.getTrue(), begun);
        for (auto [own, library] : pairs) {
            Value *value = before.CreateLoad(own->getValueType(), own);
            if (own == pairs[0].first) {
                Value *fresh = before.CreateICmpEQ(value, ConstantInt::get(number, 1));
                value = before.CreateSelect(before.CreateAnd(before.CreateNot(again), fresh),
                                            ConstantInt::get(number, 0), value);
            }
            before.CreateStore(value, library);
        }
        IRBuilder<> after(call->getNextNode());
        for (auto [own, library] : pairs) after.CreateStore(after.CreateLoad(own->getValueType(), library), own);
    }
}

void ownTokens(Module &program, StringRef name) {
    std::vector<CallInst *> calls = callsOf(program, {"strtok"});
    if (calls.empty()) return;
    auto *pointer = PointerType::getUnqual(program.getContext());
    auto *rest = new GlobalVariable(program, pointer, false, GlobalValue::InternalLinkage,
                                    ConstantPointerNull::get(pointer), name + "strtok.rest");
    auto function = program.getOrInsertFunction("strtok_r", pointer, pointer, pointer, pointer);
    for (CallInst *call : calls) {
        IRBuilder<> builder(call);
        auto *token = builder.CreateCall(function, {call->getArgOperand(0), call->getArgOperand(1), rest});
        call->replaceAllUsesWith(token);
        call->eraseFromParent();
    }
}

/// What a process has once. What changes the whole process is not for one function to do; of the others one function
/// may use each.
struct Shared {
    const char *what;
    bool byNone;
    std::set<StringRef> symbols;
};

const std::vector<Shared> &sharedState() {
    static const std::vector<Shared> shared = {
        {"the process itself",
         true,
         {"fork", "vfork", "daemon", "execv", "execve", "execvp", "chdir", "fchdir", "chroot", "setlocale", "umask",
          "setuid", "setgid", "setrlimit", "pthread_create", "longjmp", "siglongjmp"}},
        {"signals and timers",
         false,
         {"signal", "sigaction", "bsd_signal", "sigset", "alarm", "setitimer", "ualarm", "sigprocmask"}},
        {"random numbers of the C library",
         false,
         {"rand", "srand", "random", "srandom", "drand48", "lrand48", "mrand48", "srand48"}},
        {"standard input", false, {"stdin", "getchar", "scanf", "__isoc99_scanf"}},
        {"the system's log", false, {"openlog"}},
        {"the environment", false, {"setenv", "unsetenv", "putenv", "clearenv"}},
    };
    return shared;
}

} // namespace

void ownLibraryState(Module &program, StringRef name) {
    ownOptions(program, name);
    ownTokens(program, name);
}

Error mayShareProcess(const std::vector<const Module *> &programs, const std::vector<std::string> &names) {
    for (const Shared &shared : sharedState()) {
        size_t users = 0;
        std::string by;
        for (size_t i = 0; i < programs.size(); ++i)
            for (StringRef symbol : shared.symbols)
                if (const GlobalValue *used = programs[i]->getNamedValue(symbol);
                    used && used->isDeclaration() && !used->use_empty()) {
                    ++users;
                    by += (by.empty() ? "" : ", ") + names[i] + " by " + symbol.str();
                    break;
                }
        if (users < (shared.byNone ? 1 : 2)) continue;
        return failure("functions in one process share " + Twine(shared.what) + " (" + by +
                       "): leave them in processes of their own");
    }
    return Error::success();
}

} // namespace catena
