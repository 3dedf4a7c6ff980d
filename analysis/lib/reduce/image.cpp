// Two runs are compared word by word. Their globals and heaps lie at different addresses, so a word that is equal in
// both is a number; one that leads to the same place of the same object in both is a pointer; any other is not decided
// by the configuration.
#include "reduce/image.h"

#include "program/bitcode.h"
#include "reduce/runtime.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace catena {

bool ImageObject::steady(uint64_t begin, uint64_t end) const {
    if (end > bytes.size()) return false;
    for (uint64_t word = begin / 8 * 8; word < end; word += 8)
        if (unsteady.count(word) || pointers.count(word)) return false;
    return true;
}

namespace {

/// The globals and functions of a program that have an address, with their sizes, in the order of their entries.
std::vector<std::pair<GlobalValue *, uint64_t>> symbolsOf(const Module &program) {
    std::vector<std::pair<GlobalValue *, uint64_t>> symbols;
    auto &module = const_cast<Module &>(program);
    for (GlobalVariable &global : module.globals())
        if (!global.isThreadLocal() && !global.getName().starts_with("llvm.") && global.getValueType()->isSized())
            symbols.push_back(
                {&global, program.getDataLayout().getTypeAllocSize(global.getValueType()).getFixedValue()});
    for (Function &function : module)
        if (!function.isIntrinsic()) symbols.push_back({&function, 0});
    return symbols;
}

void addTable(Module &program) {
    LLVMContext &context = program.getContext();
    Type *word = Type::getInt64Ty(context);
    auto *entry = StructType::get(PointerType::getUnqual(context), word);
    std::vector<Constant *> entries;
    for (auto [symbol, size] : symbolsOf(program))
        entries.push_back(ConstantStruct::get(entry, {symbol, ConstantInt::get(word, size)}));
    auto *type = ArrayType::get(entry, entries.size());
    new GlobalVariable(program, type, true, GlobalValue::ExternalLinkage, ConstantArray::get(type, entries),
                       "catena_symbols");
    new GlobalVariable(program, word, true, GlobalValue::ExternalLinkage, ConstantInt::get(word, entries.size()),
                       "catena_symbol_count");
}

/// Let every call of a function without code say its number, so that blocks know who allocated them; and let calls of
/// the program's own allocators say theirs for as long as they last. Allocators may call back what is none, which
/// allocates for itself.
void sayCalls(Module &program) {
    Type *number = Type::getInt32Ty(program.getContext());
    auto variable = [&](const char *name) {
        return new GlobalVariable(program, number, false, GlobalValue::ExternalLinkage, nullptr, name, nullptr,
                                  GlobalValue::GeneralDynamicTLSModel);
    };
    GlobalVariable *site = variable("catena_site"), *origin = variable("catena_origin");
    auto say = [&](GlobalVariable *where, unsigned what, BasicBlock::iterator at) {
        IRBuilder<> builder(at->getParent(), at);
        builder.CreateStore(ConstantInt::get(number, what), builder.CreateThreadLocalAddress(where));
    };
    for (Function &function : program)
        for (Instruction &instruction : make_early_inc_range(instructions(function))) {
            auto *call = dyn_cast<CallBase>(&instruction);
            if (!call || isa<IntrinsicInst>(call) || call->isInlineAsm()) continue;
            const Function *callee = call->getCalledFunction();
            bool within = function.hasFnAttribute(allocatorMark);
            if (!callee || callee->isDeclaration()) {
                say(site, callNumber(*call), call->getIterator());
                if (!within) say(origin, 0, call->getIterator());
            } else if (callee->hasFnAttribute(allocatorMark) && !within && isa<CallInst>(call)) {
                say(origin, callNumber(*call), call->getIterator());
                say(origin, 0, std::next(call->getIterator()));
            }
        }
}

struct Dump {
    struct Entry {
        uint64_t address;
        unsigned site, origin;
        bool freed;
        StringRef bytes;
        bool block;
    };
    std::vector<Entry> entries;
    std::vector<unsigned> byAddress;

    /// Find the object that an address lies in or just behind.
    std::optional<ImagePointer> resolve(uint64_t address) const {
        auto after =
            upper_bound(byAddress, address, [&](uint64_t a, unsigned index) { return a < entries[index].address; });
        if (after == byAddress.begin()) return std::nullopt;
        const Entry &entry = entries[*std::prev(after)];
        uint64_t offset = address - entry.address;
        if (offset > entry.bytes.size()) return std::nullopt;
        return ImagePointer{*std::prev(after), offset};
    }
};

class DumpReader {
public:
    explicit DumpReader(StringRef text) : text(text) {}
    Expected<Dump> read() {
        Dump dump;
        uint64_t symbols = word();
        while (!text.empty() && !cut) {
            Dump::Entry entry{word(), 0, 0, false, {}, dump.entries.size() >= symbols};
            uint64_t size = word();
            if (entry.block) {
                uint64_t mark = word();
                entry.site = mark >> 32, entry.freed = mark & 1;
                entry.origin = (mark & UINT32_MAX) >> 1 ? (mark & UINT32_MAX) >> 1 : entry.site;
            }
            if (size > text.size()) cut = true;
            entry.bytes = text.take_front(size);
            text = text.drop_front(entry.bytes.size());
            dump.entries.push_back(entry);
        }
        if (cut || dump.entries.size() < symbols) return failure("the image of the program's memory is not whole");
        for (unsigned i = 0; i < dump.entries.size(); ++i) dump.byAddress.push_back(i);
        // Of two at one address the one with bytes counts.
        sort(dump.byAddress, [&](unsigned a, unsigned b) {
            const auto &first = dump.entries[a], &second = dump.entries[b];
            return std::tuple(first.address, first.bytes.size(), a) <
                   std::tuple(second.address, second.bytes.size(), b);
        });
        return dump;
    }

private:
    uint64_t word() {
        uint64_t value = 0;
        if (text.size() < sizeof value) {
            cut = true;
            text = {};
            return 0;
        }
        memcpy(&value, text.data(), sizeof value);
        text = text.drop_front(sizeof value);
        return value;
    }

    StringRef text;
    bool cut = false;
};

/// Compare one object's words in both dumps.
void compare(const Dump &first, const Dump &second, unsigned index, ImageObject &object) {
    StringRef one = first.entries[index].bytes, other = second.entries[index].bytes;
    object.bytes.assign(one.bytes_begin(), one.bytes_end());
    for (uint64_t at = 0; at < one.size(); at += 8) {
        if (one.substr(at, 8) == other.substr(at, 8)) continue;
        if (one.size() - at >= 8) {
            uint64_t a = 0, b = 0;
            memcpy(&a, one.data() + at, 8), memcpy(&b, other.data() + at, 8);
            auto left = first.resolve(a), right = second.resolve(b);
            if (left && right && *left == *right) {
                object.pointers[at] = *left;
                continue;
            }
        }
        object.unsteady.insert(at);
    }
}

} // namespace

Expected<std::string> buildForImage(const Module &program, const LinkFlags &link, const Scratch &scratch) {
    auto copy = CloneModule(program);
    StripDebugInfo(*copy);
    addTable(*copy);
    sayCalls(*copy);
    auto hook = copy->getOrInsertFunction("catena_first_reception", Type::getVoidTy(copy->getContext()));
    for (auto &[number, call] : numberedCalls(*copy))
        if (call->getMetadata("catena.reception")) CallInst::Create(hook, "", call->getIterator());
    // A reduced program checks its configuration as well.
    std::string source = runtime::snapshot;
    if (copy->getFunction("catena_enter")) source += runtime::enter;
    return buildExecutable(*copy, source, 0, link, scratch);
}

Expected<Image> readImage(const Module &program, const std::string &first, const std::string &second) {
    auto one = readFile(first), other = readFile(second);
    if (!one) return joinErrors(one.takeError(), other.takeError());
    if (!other) return other.takeError();
    auto left = DumpReader(*one).read(), right = DumpReader(*other).read();
    if (!left) return joinErrors(left.takeError(), right.takeError());
    if (!right) return right.takeError();
    Image image;
    auto symbols = symbolsOf(program);
    for (unsigned i = 0; i < symbols.size() && i < left->entries.size() && i < right->entries.size(); ++i)
        if (!symbols[i].first->isDeclaration() && left->entries[i].address == right->entries[i].address)
            return failure("addresses are not randomized here, so that pointers cannot be told from numbers: set "
                           "/proc/sys/kernel/randomize_va_space to 2, and start this without `setarch -R`");
    for (unsigned i = 0; i < left->entries.size(); ++i) {
        ImageObject object;
        const Dump::Entry &entry = left->entries[i];
        if (i < symbols.size()) {
            object.symbol = symbols[i].first->getName().str();
            image.symbols[object.symbol] = i;
        }
        object.site = entry.site, object.origin = entry.origin, object.freed = entry.freed;
        // From where the runs took different ways on, blocks cannot be told to be the same.
        if (i >= right->entries.size() || right->entries[i].bytes.size() != entry.bytes.size() ||
            right->entries[i].site != entry.site)
            break;
        compare(*left, *right, i, object);
        image.objects.push_back(std::move(object));
    }
    for (ImageObject &object : image.objects)
        for (auto at = object.pointers.begin(); at != object.pointers.end();) {
            bool known = at->second.object < image.objects.size();
            if (!known) object.unsteady.insert(at->first);
            at = known ? std::next(at) : object.pointers.erase(at);
        }
    return image;
}

Expected<Image> imageAtReception(const Module &program, const LinkFlags &link, const CommandLine &line,
                                 const std::string &capture, const Scratch &scratch) {
    auto executable = buildForImage(program, link, scratch);
    if (!executable) return executable.takeError();
    std::string dumps[2];
    for (unsigned i : {0, 1}) {
        std::string name = "image" + std::to_string(i);
        dumps[i] = scratch.file(name + ".dump");
        auto folder = scratch.folder(name);
        if (!folder) return folder.takeError();
        sys::fs::remove(dumps[i]);
        Run done = run(*executable, line, capture, *folder,
                       {{"CATENA_SNAPSHOT", dumps[i]}, {"CATENA_SNAPSHOT_AT", "reception"}});
        if (done.status != 0 || !done.failed.empty())
            return failure(
                "the program does not come to its first packet; after `--` stands its command line, {in} for a "
                "capture. It says: " +
                done.failed + done.written["stderr"] + done.written["stdout"]);
        if (!sys::fs::exists(dumps[i]))
            return failure("the program ended before it received a packet; after `--` stands its command line, {in} "
                           "for a capture");
    }
    return readImage(program, dumps[0], dumps[1]);
}

} // namespace catena
