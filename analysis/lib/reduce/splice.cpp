// Lines 2 and 3 of Algorithm 4 (Deng and Wu, NFReducer):
//
//     2 RENAMEVARFUNC(S1, S2)
//     3 S' <- SPLICE(S1, S2)
//
// Every function keeps its own `main`. The last one's begins; where it would wait for its first packet it calls that of
// the function before it, and so on up to the first, which alone receives. Where a function sends a packet it calls
// what the next one does with it. So all are initialized before the first packet, each by its own command line, and
// each ends when it has no more packets to expect.
#include "reduce/splice.h"

#include "pointsto/points_to.h"
#include "program/bitcode.h"
#include "reduce/delivery.h"
#include "reduce/filter.h"
#include "reduce/process_state.h"
#include "reduce/written.h"
#include "statealyzr/loop_procedures.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

const char *const thenWord = "--then";
const char *const nextMark = "catena.next";

namespace {

/// Give every symbol that a program defines a name of its own, and keep it from others.
void rename(Module &program, const std::string &prefix) {
    std::vector<GlobalValue *> defined;
    for (GlobalValue &value : program.global_values())
        if (!value.isDeclaration() && !value.getName().starts_with("llvm.")) defined.push_back(&value);
    for (GlobalValue *value : defined) {
        value->setName(prefix + (value->hasName() ? value->getName() : "anonymous"));
        value->setLinkage(GlobalValue::InternalLinkage);
        value->setVisibility(GlobalValue::DefaultVisibility);
        value->setDSOLocal(true);
        if (auto *object = dyn_cast<GlobalObject>(value)) object->setComdat(nullptr);
    }
}

std::string placeText(const Instruction &instruction) {
    Place place = placeOf(instruction);
    return place.file + ":" + std::to_string(place.line);
}

/// Let a function hand what it sends to the next one.
Error handOn(Module &program, const std::string &name, FunctionCallee deliver, const AnalysisOptions &options) {
    std::vector<CallInst *> sends;
    {
        PointsTo pointsTo(program, options.library, {false, false});
        for (const PacketCall &send : packetCalls(program, pointsTo, options.functions, PacketFunction::Send)) {
            auto *call = dyn_cast<CallInst>(const_cast<CallBase *>(send.call));
            if (send.name != "pcap_dump" || !call || call->getCalledFunction() == nullptr || call->arg_size() != 3)
                return failure(placeText(*send.call) + ": " + name + " sends by " + send.name +
                               "; what a function hands on to the next one it must send by pcap_dump, called by name");
            sends.push_back(call);
        }
    }
    if (sends.empty()) return failure(name + " sends no packet by pcap_dump, so that the function after it gets none");
    // All packets of the one file that the next function would read.
    std::string opens;
    unsigned opened = 0;
    for (const char *open : {"pcap_dump_open", "pcap_dump_fopen", "pcap_dump_open_append"})
        if (const Function *function = program.getFunction(open))
            for (const Use &use : function->uses()) {
                auto *call = dyn_cast<CallBase>(use.getUser());
                if (!call || !call->isCallee(&use)) return failure(name + " passes on the address of " + open);
                opens += (opened++ ? ", " : "") + placeText(*call);
                call->setMetadata(nextMark, MDNode::get(program.getContext(), {}));
            }
    if (opened != 1)
        return failure(name + " opens " + Twine(opened) + " captures to write (" + opens +
                       "): only functions with one are spliced, since it is the one that the next function reads");
    for (const char *asks : {"pcap_dump_ftell", "pcap_dump_ftell64", "pcap_dump_file"})
        if (const Function *function = program.getFunction(asks); function && !function->use_empty())
            return failure(name + " looks into the file that it writes, by " + asks + "; spliced it writes none");
    for (CallInst *send : sends) {
        auto *handed =
            CallInst::Create(deliver, {send->getArgOperand(1), send->getArgOperand(2)}, "", send->getIterator());
        handed->setDebugLoc(send->getDebugLoc());
        send->eraseFromParent();
    }
    return Error::success();
}

/// Return whether a program may write to the packets that it receives, or to their headers.
bool writesPackets(const Module &program, const Reception &reception, const AnalysisOptions &options) {
    PacketPhase phase = packetPhase(program, reception, options);
    auto written = phase.heap.find(callNumber(*reception.call));
    return written != phase.heap.end() && (written->second.all || !written->second.ranges.empty());
}

/// The `main` of all: parts the command line and calls the last function's. Textual, since it says more than its
/// making.
const char *const mainText = R"(
@catena.counts = global [COUNT x i32] zeroinitializer
@catena.words = global [COUNT x ptr] zeroinitializer
@catena.statuses = global [COUNT x i32] zeroinitializer
@catena.then = internal constant [THENSIZE x i8] c"THEN\00"
@catena.usage = internal constant [USAGESIZE x i8] c"USAGE\00"
declare i32 @strcmp(ptr, ptr)
declare i32 @dprintf(i32, ptr, ...)
declare ptr @calloc(i64, i64)

define i32 @main(i32 %argc, ptr %argv) {
begin:
  %name = load ptr, ptr %argv
  %room.32 = add i32 %argc, COUNT
  %room = sext i32 %room.32 to i64
  %all = call ptr @calloc(i64 %room, i64 8)
  %none = icmp eq ptr %all, null
  br i1 %none, label %wrong, label %member
member:
  %number = phi i64 [ 0, %begin ], [ %number.next, %another ]
  %taken = phi i32 [ 1, %begin ], [ %taken.next, %another ]
  %to = phi ptr [ %all, %begin ], [ %to.next, %another ]
  store ptr %name, ptr %to
  %words.at = getelementptr [COUNT x ptr], ptr @catena.words, i64 0, i64 %number
  store ptr %to, ptr %words.at
  br label %words
words:
  %at = phi i32 [ %taken, %member ], [ %at.next, %word ]
  %count = phi i32 [ 1, %member ], [ %count.next, %word ]
  %more = icmp slt i32 %at, %argc
  br i1 %more, label %look, label %ended
look:
  %at.64 = sext i32 %at to i64
  %from = getelementptr ptr, ptr %argv, i64 %at.64
  %text = load ptr, ptr %from
  %differs = call i32 @strcmp(ptr %text, ptr @catena.then)
  %is.then = icmp eq i32 %differs, 0
  br i1 %is.then, label %ended, label %word
word:
  %count.64 = sext i32 %count to i64
  %place = getelementptr ptr, ptr %to, i64 %count.64
  store ptr %text, ptr %place
  %at.next = add i32 %at, 1
  %count.next = add i32 %count, 1
  br label %words
ended:
  %counts.at = getelementptr [COUNT x i32], ptr @catena.counts, i64 0, i64 %number
  store i32 %count, ptr %counts.at
  %length = add i32 %count, 1
  %length.64 = sext i32 %length to i64
  %to.next = getelementptr ptr, ptr %to, i64 %length.64
  %number.next = add i64 %number, 1
  %taken.next = add i32 %at, 1
  %enough = icmp eq i64 %number.next, COUNT
  br i1 %enough, label %whole, label %another
another:
  br i1 %more, label %member, label %wrong
whole:
  br i1 %more, label %wrong, label %run
wrong:
  %said = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @catena.usage)
  ret i32 2
run:
  call void @catena.run.LAST()
  br label %statuses
statuses:
  %i = phi i64 [ LAST, %run ], [ %i.next, %earlier ]
  %status.at = getelementptr [COUNT x i32], ptr @catena.statuses, i64 0, i64 %i
  %status = load i32, ptr %status.at
  %bad = icmp ne i32 %status, 0
  %first = icmp eq i64 %i, 0
  %known = or i1 %bad, %first
  br i1 %known, label %end, label %earlier
earlier:
  %i.next = sub i64 %i, 1
  br label %statuses
end:
  ret i32 %status
}
)";

void substitute(std::string &text, StringRef word, const std::string &by) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
        text.replace(at, word.size(), by);
}

Expected<std::unique_ptr<Module>> mainOf(size_t count, const Module &like) {
    std::string text = mainText, word = thenWord;
    std::string usage = "a chain of " + std::to_string(count) +
                        " functions: their command lines follow one another, with " + word + " between them";
    substitute(text, "THENSIZE", std::to_string(word.size() + 1));
    substitute(text, "USAGESIZE", std::to_string(usage.size() + 2));
    substitute(text, "USAGE\\00", usage + "\\0A\\00");
    substitute(text, "THEN\\00", word + "\\00");
    substitute(text, "COUNT", std::to_string(count));
    substitute(text, "LAST", std::to_string(count - 1));
    text += "declare void @catena.run." + std::to_string(count - 1) + "()\n";
    SMDiagnostic message;
    auto program = parseAssemblyString(text, message, like.getContext());
    if (!program)
        return failure("the spliced program's main is damaged, which is an error here: " + message.getMessage());
    program->setDataLayout(like.getDataLayout());
    program->setTargetTriple(like.getTargetTriple());
    return program;
}

FunctionCallee declared(Module &program, const Twine &name, ArrayRef<Type *> parameters) {
    auto *type = FunctionType::get(Type::getVoidTy(program.getContext()), parameters, false);
    return program.getOrInsertFunction(name.str(), type);
}

/// Add the function that runs the `main` of member `number`.
Error addRun(Module &program, Function *main, size_t number, size_t count, const std::string &name) {
    if (!main || main->arg_size() > 2 || !main->getReturnType()->isIntegerTy(32))
        return failure(name + " has no main() or main(argc, argv); only such programs are spliced");
    auto &run = *cast<Function>(declared(program, "catena.run." + Twine(number), {}).getCallee());
    IRBuilder<> builder(BasicBlock::Create(program.getContext(), "begin", &run));
    auto element = [&](const char *array, Type *type) {
        auto *all = program.getOrInsertGlobal(array, ArrayType::get(type, count));
        return builder.CreateConstInBoundsGEP2_64(ArrayType::get(type, count), all, 0, number);
    };
    std::vector<Value *> arguments;
    if (main->arg_size() > 0)
        arguments.push_back(builder.CreateLoad(builder.getInt32Ty(), element("catena.counts", builder.getInt32Ty())));
    if (main->arg_size() > 1)
        arguments.push_back(builder.CreateLoad(builder.getPtrTy(), element("catena.words", builder.getPtrTy())));
    Value *status = builder.CreateCall(main, arguments);
    builder.CreateStore(status, element("catena.statuses", builder.getInt32Ty()));
    builder.CreateRetVoid();
    return Error::success();
}

Error checkLines(const std::vector<ChainMember> &members) {
    for (size_t i = 0; i < members.size(); ++i) {
        const auto &[name, program, line] = members[i];
        bool hands = is_contained(line.outputs(), "next"), last = i + 1 == members.size();
        if (!hands && !last)
            return failure(name +
                           ": its command line has no {next}, the capture that it writes for the function after it");
        if (hands && last)
            return failure(name + ": {next} stands in the command line of the last function, which has none after it");
        if (is_contained(line.words, thenWord))
            return failure(name + ": a command line cannot have the word " + thenWord);
    }
    return Error::success();
}

CommandLine lineOf(const std::vector<ChainMember> &members) {
    CommandLine all;
    for (const ChainMember &member : members) {
        if (&member != &members.front()) all.words.push_back(thenWord);
        for (std::string word : member.line.words) {
            for (const std::string &output : member.line.outputs())
                substitute(word, "{" + output + "}", "{" + member.name + "." + output + "}");
            all.words.push_back(word);
        }
    }
    return all;
}

} // namespace

Expected<Splice> splice(std::vector<ChainMember> &members, const AnalysisOptions &options) {
    if (Error error = checkLines(members)) return std::move(error);
    std::vector<const Module *> programs;
    std::vector<std::string> names;
    for (const ChainMember &member : members) {
        programs.push_back(member.program.get());
        names.push_back(member.name);
    }
    if (Error error = mayShareProcess(programs, names)) return std::move(error);
    Splice done;
    done.line = lineOf(members);
    auto main = mainOf(members.size(), *members.front().program);
    if (!main) return main.takeError();
    done.program = std::move(*main);
    unsigned lastCall = 0;
    for (size_t i = 0; i < members.size(); ++i) {
        ChainMember &member = members[i];
        Module &program = *member.program;
        lastCall = numberCalls(program, lastCall);
        auto reception = findReception(program, options, "");
        if (!reception) return failure(member.name + ": " + toString(reception.takeError()));
        bool copied = i && writesPackets(program, *reception, options);
        Function *begin = program.getFunction("main");
        rename(program, member.name + ".");
        std::map<std::string, LiftedLocal> locals;
        for (auto &[name, local] : reception->locals) locals[member.name + "." + name] = local;
        reception->locals = std::move(locals);
        auto alone = CloneModule(program);
        if (Error error = addRun(program, begin, i, members.size(), member.name)) return std::move(error);
        if (i) {
            auto deliver = takeDeliveries(*reception, declared(program, "catena.run." + Twine(i - 1), {}), copied);
            if (!deliver) return failure(member.name + ": " + toString(deliver.takeError()));
            if (Error error = keepFilter(program, **deliver))
                return failure(member.name + ": " + toString(std::move(error)));
            (*deliver)->setName("catena.deliver." + Twine(i));
            (*deliver)->setLinkage(GlobalValue::ExternalLinkage);
        }
        auto *pointer = PointerType::getUnqual(program.getContext());
        if (i + 1 < members.size())
            if (Error error = handOn(program, member.name,
                                     declared(program, "catena.deliver." + Twine(i + 1), {pointer, pointer}), options))
                return std::move(error);
        ownLibraryState(program, member.name + ".");
        done.locals.merge(reception->locals);
        if (Linker::linkModules(*done.program, std::move(member.program)))
            return failure(member.name + " cannot be linked with the functions before it");
        Function *main = alone->getFunction(member.name + ".main");
        main->setName("main");
        main->setLinkage(GlobalValue::ExternalLinkage);
        member.program = std::move(alone);
    }
    std::string message;
    raw_string_ostream text(message);
    if (verifyModule(*done.program, &text))
        return failure("the spliced program is damaged, which is an error here: " + message);
    return done;
}

} // namespace catena
