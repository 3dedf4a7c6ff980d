// Reading `lists/c-library.list`, `lists/cxx-library.list` and lists of their kind.
#include "library/effects.h"

#include "library/list_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace catena {

namespace {

/// Most arguments that a list may speak of.
constexpr unsigned mostArguments = 64;

bool number(StringRef text, unsigned &value) { return !text.getAsInteger(10, value) && value < mostArguments; }

/// Read the name of a library's own memory; new ones are numbered as they come.
bool readMemory(StringRef text, StringMap<int> &memories, int &memory) {
    if (text.empty() || !all_of(text, [](char c) { return isAlpha(c) || c == '_'; })) return false;
    memory = memories.try_emplace(text, static_cast<int>(memories.size())).first->second;
    return true;
}

/// Read `F(A,B)` of `call` and `thread`.
bool readCall(StringRef text, StringMap<int> &memories, Effect &effect) {
    auto [function, rest] = text.split('(');
    for (; function.consume_front("*"); ++effect.b) effect.kind = Effect::CallsThrough;
    if (effect.kind != Effect::StartsThread && readMemory(function, memories, effect.memory))
        effect.kind = Effect::CallsKept;
    if ((effect.kind != Effect::CallsKept && !number(function, effect.a)) || !rest.consume_back(")")) return false;
    SmallVector<StringRef, 4> words;
    rest.split(words, ',', -1, false);
    for (StringRef word : words) {
        unsigned argument = 0;
        int memory = 0;
        if (word == "new")
            effect.arguments.push_back(Effect::newObject);
        else if (word == "-")
            effect.arguments.push_back(Effect::noPointer);
        else if (number(word, argument))
            effect.arguments.push_back(static_cast<int>(argument));
        else if (readMemory(word, memories, memory))
            effect.arguments.push_back(Effect::firstKept - memory);
        else
            return false;
    }
    return true;
}

bool readEffect(StringRef word, StringMap<int> &memories, std::vector<Effect> &out) {
    StringRef key, value;
    std::tie(key, value) = word.split('=');
    Effect effect{Effect::Reads};
    auto one = [&](Effect::Kind kind) {
        effect.kind = kind;
        bool rest = value.consume_back("+");
        if (!number(value, effect.a)) return false;
        for (Effect next = effect; rest && ++next.a < mostArguments;) out.push_back(next);
        return true;
    };
    auto two = [&](Effect::Kind kind) {
        effect.kind = kind;
        auto [a, b] = value.split(':');
        return number(a, effect.a) && number(b, effect.b);
    };
    auto call = [&](Effect::Kind kind) {
        effect.kind = kind;
        return readCall(value, memories, effect);
    };
    auto remember = [&](Effect::Kind kind) {
        effect.kind = kind;
        auto [argument, memory] = value.split(':');
        return number(argument, effect.a) && readMemory(memory, memories, effect.memory);
    };
    auto recall = [&](Effect::Kind returned, Effect::Kind stored) {
        auto [memory, argument] = value.split(':');
        effect.kind = argument.empty() ? returned : stored;
        return readMemory(memory, memories, effect.memory) && (argument.empty() || number(argument, effect.b));
    };
    if (key == "thread" && value.contains(':')) {
        // What the thread returns is kept.
        StringRef memory;
        std::tie(value, memory) = value.split(':');
        if (!readMemory(memory, memories, effect.memory)) return false;
        effect.b = 1;
    }
    auto plain = [&](Effect::Kind kind) {
        effect.kind = kind;
        return value.empty();
    };
    if (word == "pure") return true;
    bool good = key == "fresh"    ? plain(Effect::ReturnsFresh)
                : key == "opaque" ? plain(Effect::ReturnsOpaque)
                : key == "static" ? plain(Effect::ReturnsStatic)
                : key == "ret"    ? one(Effect::ReturnsArgument)
                : key == "into"   ? one(Effect::ReturnsInto)
                : key == "cast"   ? two(Effect::ReturnsCast)
                : key == "load"   ? one(Effect::ReturnsPointee)
                : key == "walk"   ? one(Effect::ReturnsReached)
                : key == "read"   ? one(Effect::Reads)
                : key == "deep"   ? one(Effect::ReadsDeep)
                : key == "write"  ? one(Effect::Writes)
                : key == "fill"   ? one(Effect::WritesDeep)
                : key == "copy"   ? two(Effect::Copies)
                : key == "store"  ? two(Effect::Stores)
                : key == "link"   ? two(Effect::Links)
                : key == "new"    ? one(Effect::StoresNew)
                : key == "keep"   ? remember(Effect::Keeps)
                : key == "hold"   ? remember(Effect::KeepsCopy)
                : key == "give"   ? recall(Effect::ReturnsKept, Effect::GivesCopy)
                : key == "lend"   ? recall(Effect::ReturnsMemory, Effect::StoresMemory)
                : key == "call"   ? call(Effect::Calls)
                : key == "thread" ? call(Effect::StartsThread)
                                  : false;
    if (good) out.push_back(std::move(effect));
    return good;
}

} // namespace

LibraryEffects LibraryEffects::standard() {
    LibraryEffects library;
    // A test holds that the standard lists are right.
    cantFail(library.add("c-library.list", lists::c_library));
    cantFail(library.add("cxx-library.list", lists::cxx_library));
    for (StringRef name : library.effects.keys()) library.ofStandard.insert(name);
    return library;
}

void LibraryEffects::replaceCode(Module &program) const {
    for (StringRef name : effects.keys())
        if (Function *function = ofStandard.contains(name) ? nullptr : program.getFunction(name))
            if (!function->isDeclaration()) function->deleteBody();
}

Error LibraryEffects::add(StringRef file, StringRef text) {
    for (const ListLine &line : parseList(text)) {
        std::vector<Effect> said;
        for (StringRef word : line.words)
            if (!readEffect(word, memories, said))
                return listError(file, line.number,
                                 "`" + word +
                                     "` is no effect; they are pure, fresh, opaque, static, ret=N, into=N, cast=N:C, "
                                     "load=N, walk=N, read=N, deep=N, write=N, fill=N, copy=S:D, store=V:D, link=A:B, "
                                     "new=N, keep=V:M, hold=S:M, give=M, give=M:D, lend=M, lend=M:D, call=F(A,..), "
                                     "thread=F(A)");
        if (line.rest.empty()) return listError(file, line.number, "a colon and names of functions are missing");
        for (StringRef name : line.rest) effects[name] = said;
    }
    return Error::success();
}

const std::vector<Effect> *LibraryEffects::find(StringRef name) const {
    auto found = effects.find(name);
    return found == effects.end() ? nullptr : &found->second;
}

std::vector<StringRef> LibraryEffects::names() const {
    std::vector<StringRef> names(effects.keys().begin(), effects.keys().end());
    sort(names);
    return names;
}

} // namespace catena
