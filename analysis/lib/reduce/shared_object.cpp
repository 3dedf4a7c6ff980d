// What the adapter replaces is said in its own sources, by the words REPLACES and REFUSES: there is no second list
// here.
#include "reduce/shared_object.h"

#include "program/bitcode.h"
#include "reduce/movable.h"
#include "reduce/process_state.h"
#include "reduce/runtime.h"
#include "reduce/splice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

namespace {

/// Functions of libpcap that do the same without a device.
const std::set<StringRef> harmless = {
    "pcap_close",       "pcap_compile",        "pcap_compile_nopcap",
    "pcap_datalink",    "pcap_datalink_ext",   "pcap_datalink_name_to_val",
    "pcap_findalldevs", "pcap_freealldevs",    "pcap_datalink_val_to_description",
    "pcap_freecode",    "pcap_geterr",         "pcap_datalink_val_to_name",
    "pcap_lib_version", "pcap_list_datalinks", "pcap_free_datalinks",
    "pcap_lookupdev",   "pcap_lookupnet",      "pcap_offline_filter",
    "pcap_open_dead",   "pcap_perror",         "pcap_snapshot",
    "pcap_statustostr", "pcap_strerror",       "bpf_filter",
    "pcap_set_rfmon",   "pcap_init",           "bpf_validate",
};

/// Return the names of the functions that the adapter replaces, all or those of one of its files.
std::set<std::string> replaced(StringRef file = "") {
    std::set<std::string> names;
    Regex use("RE(PLACES|FUSES)\\(([a-zA-Z_][a-zA-Z0-9_]*)\\)");
    for (unsigned i = 0; i < runtime::adapterCount; ++i) {
        if (!file.empty() && file != runtime::adapter[i].name) continue;
        SmallVector<StringRef, 3> match;
        for (StringRef text = runtime::adapter[i].text; use.match(text, &match);
             text = text.substr(match[0].end() - text.begin()))
            if (match[2] != "name") names.insert(match[2].str());
    }
    return names;
}

/// Say what of a program has no place in a chain.
Error checkCalls(const Module &program, const Reception &reception, const ReduceOptions &options,
                 const std::set<std::string> &names) {
    if (!names.count(reception.name))
        return failure("packets are received by " + reception.name +
                       ": shared objects are made of programs that receive by libpcap");
    for (const Function &function : program) {
        std::string name = function.getName().str();
        if (!function.isDeclaration() || function.use_empty() || names.count(name)) continue;
        const PacketFunction *known = options.analysis.functions.find(name);
        if (known && known->kind == PacketFunction::Send)
            return failure("packets are sent by " + name +
                           ": shared objects are made of programs that send by libpcap");
        if (function.getName().starts_with("pcap_") && !harmless.count(name))
            return failure("the program calls " + name + ", which has no counterpart in a chain");
    }
    return Error::success();
}

/// Let the program be linked into a shared object that shows nothing of it.
void makePositionIndependent(Module &program) {
    // Code for an executable takes for granted that its symbols are at fixed distances.
    if (NamedMDNode *flags = program.getModuleFlagsMetadata()) {
        std::vector<MDNode *> kept;
        for (MDNode *flag : flags->operands())
            if (auto *key = dyn_cast<MDString>(flag->getOperand(1));
                !key || (key->getString() != "PIE Level" && key->getString() != "PIC Level"))
                kept.push_back(flag);
        flags->clearOperands();
        for (MDNode *flag : kept) flags->addOperand(flag);
    }
    program.setPICLevel(PICLevel::BigPIC);
    for (GlobalValue &value : program.global_values()) {
        if (value.isDeclaration())
            value.setDSOLocal(false);
        else if (!value.hasLocalLinkage())
            value.setVisibility(GlobalValue::HiddenVisibility);
    }
}

void replace(Module &program, const std::set<std::string> &names) {
    for (const std::string &name : names) {
        Function *function = program.getFunction(name);
        if (!function || !function->isDeclaration()) continue;
        auto ours = program.getOrInsertFunction("catena_replaced_" + name, function->getFunctionType());
        function->replaceAllUsesWith(ours.getCallee());
        function->eraseFromParent();
    }
}

/// Captures for the next function of a spliced chain are never written to, so there may be several.
void openForNext(Module &program) {
    for (Function &function : program)
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction); call && call->getMetadata(nextMark))
                call->setCalledFunction(program.getOrInsertFunction("catena_open_for_next", call->getFunctionType()));
}

/// Return a command line as a chain file can fill it in: names there have no dots.
Expected<std::vector<std::string>> fillable(const CommandLine &line) {
    std::map<std::string, std::string> from;
    auto argument = [](std::string name) {
        for (char &letter : name)
            if (!isAlnum(letter)) letter = '_';
        return name;
    };
    for (const std::string &name : line.outputs()) {
        auto [known, isNew] = from.try_emplace(argument(name), name);
        if (!isNew && known->second != name)
            return failure("{" + name + "} and {" + known->second + "} would both be the argument " + known->first +
                           " of a chain file: name one of them otherwise");
    }
    std::vector<std::string> words;
    for (StringRef word : line.words) {
        std::string filled;
        for (size_t open; (open = word.find('{')) != StringRef::npos;) {
            size_t close = word.find('}', open);
            if (close == StringRef::npos) break;
            filled += word.take_front(open + 1).str() + argument(word.slice(open + 1, close).str()) + "}";
            word = word.drop_front(close + 1);
        }
        words.push_back(filled + word.str());
    }
    return words;
}

void addWords(Module &program, const std::string &name, const std::vector<std::string> &words) {
    LLVMContext &context = program.getContext();
    auto text = [&](StringRef bytes) {
        Constant *value = ConstantDataArray::getString(context, bytes);
        return new GlobalVariable(program, value->getType(), true, GlobalValue::PrivateLinkage, value, "word");
    };
    std::vector<Constant *> all;
    for (const std::string &word : words) all.push_back(text(word));
    auto external = [&](Constant *value, const char *symbol) {
        new GlobalVariable(program, value->getType(), true, GlobalValue::ExternalLinkage, value, symbol);
    };
    external(ConstantArray::get(ArrayType::get(PointerType::getUnqual(context), all.size()), all),
             "catena_program_words");
    external(ConstantInt::get(Type::getInt64Ty(context), all.size()), "catena_program_word_count");
    external(ConstantDataArray::getString(context, name), "catena_program_name");
}

} // namespace

Expected<std::string> buildSharedObject(const Reduction &reduction, const ReduceOptions &options,
                                        const std::string &name, const Scratch &scratch) {
    std::set<std::string> names = replaced();
    auto program = CloneModule(*reduction.program);
    openForNext(*program);
    if (Error error = checkCalls(*program, reduction.reception, options, names)) return std::move(error);
    auto words = fillable(options.line);
    if (!words) return words.takeError();
    // Other objects are in the same process. Of a spliced program each function has its own already.
    if (!is_contained(options.line.words, thenWord)) ownLibraryState(*program, "own.");
    Function *begin = program->getFunction("main");
    begin->setName("catena_program_main");
    addMovableState(*program, reduction, replaced("heap.c"));
    replace(*program, names);
    addWords(*program, name, *words);
    makePositionIndependent(*program);
    auto folder = scratch.folder("adapter");
    if (!folder) return folder.takeError();
    if (std::error_code code = sys::fs::create_directory(*folder + "/catena"))
        return failure(*folder + ": " + code.message());
    LinkFlags flags{"-shared", "-fPIC", "-O3", "-fvisibility=hidden", "-Wl,-Bsymbolic", "-I" + *folder,
                    // What the program's checks call to end it.
                    "-Dexit=catena_replaced_exit"};
    for (unsigned i = 0; i < runtime::adapterCount; ++i) {
        StringRef file = runtime::adapter[i].name;
        std::string path = *folder + (file == "nf.h" ? "/catena/" : "/") + file.str();
        std::error_code code;
        raw_fd_ostream stream(path, code);
        if (code) return failure(path + ": " + code.message());
        stream << runtime::adapter[i].text;
        if (file.ends_with(".c")) flags.push_back(path);
    }
    flags.insert(flags.end(), options.link.begin(), options.link.end());
    return buildExecutable(*program, "", 3, flags, scratch);
}

} // namespace catena
