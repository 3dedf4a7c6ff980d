// Reading `lists/c-library.list` and lists of its kind.
#include "library/effects.h"

#include "library/list_file.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace catena {

namespace {

/// Most arguments that a list may speak of.
constexpr unsigned mostArguments = 64;

bool number(StringRef text, unsigned &value) { return !text.getAsInteger(10, value) && value < mostArguments; }

/// Read `F(A,B)` of `call` and `thread`.
bool readCall(StringRef text, Effect &effect) {
    auto [function, rest] = text.split('(');
    if (function.consume_front("*")) effect.kind = Effect::CallsThrough;
    if (!number(function, effect.a) || !rest.consume_back(")")) return false;
    SmallVector<StringRef, 4> words;
    rest.split(words, ',', -1, false);
    for (StringRef word : words) {
        unsigned argument = 0;
        if (word == "new")
            effect.arguments.push_back(Effect::newObject);
        else if (word == "-")
            effect.arguments.push_back(Effect::noPointer);
        else if (number(word, argument))
            effect.arguments.push_back(static_cast<int>(argument));
        else
            return false;
    }
    return true;
}

bool readEffect(StringRef word, std::vector<Effect> &out) {
    auto [key, value] = word.split('=');
    Effect effect{Effect::Reads};
    auto one = [&](Effect::Kind kind) {
        effect.kind = kind;
        return number(value, effect.a);
    };
    auto two = [&](Effect::Kind kind) {
        effect.kind = kind;
        auto [a, b] = value.split(':');
        return number(a, effect.a) && number(b, effect.b);
    };
    auto call = [&](Effect::Kind kind) {
        effect.kind = kind;
        return readCall(value, effect);
    };
    auto plain = [&](Effect::Kind kind) {
        effect.kind = kind;
        return value.empty();
    };
    if (word == "pure") return true;
    bool good = key == "fresh"    ? plain(Effect::ReturnsFresh)
                : key == "opaque" ? plain(Effect::ReturnsOpaque)
                : key == "static" ? plain(Effect::ReturnsStatic)
                : key == "ret"    ? one(Effect::ReturnsArgument)
                : key == "read"   ? one(Effect::Reads)
                : key == "deep"   ? one(Effect::ReadsDeep)
                : key == "write"  ? one(Effect::Writes)
                : key == "fill"   ? one(Effect::WritesDeep)
                : key == "copy"   ? two(Effect::Copies)
                : key == "store"  ? two(Effect::Stores)
                : key == "new"    ? one(Effect::StoresNew)
                : key == "call"   ? call(Effect::Calls)
                : key == "thread" ? call(Effect::StartsThread)
                                  : false;
    if (good) out.push_back(std::move(effect));
    return good;
}

} // namespace

LibraryEffects LibraryEffects::standard() {
    LibraryEffects library;
    // A test holds that the standard list is right.
    cantFail(library.add("c-library.list", lists::c_library));
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
            if (!readEffect(word, said))
                return listError(file, line.number,
                                 "`" + word +
                                     "` is no effect; they are pure, fresh, opaque, static, ret=N, read=N, "
                                     "deep=N, write=N, fill=N, copy=S:D, store=V:D, new=N, call=F(A,..), thread=F(A)");
        if (line.rest.empty()) return listError(file, line.number, "a colon and names of functions are missing");
        for (StringRef name : line.rest) effects[name] = said;
    }
    return Error::success();
}

const std::vector<Effect> *LibraryEffects::find(StringRef name) const {
    auto found = effects.find(name);
    return found == effects.end() ? nullptr : &found->second;
}

} // namespace catena
