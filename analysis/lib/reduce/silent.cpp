// What was dropped may only be missing: with the calls that write it taken out of both programs, they write the same.
#include "reduce/silent.h"

#include "reduce/extraction.h"
#include "reduce/runtime.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

Error Silent::make(const Reduction &reduction, const LinkFlags &link, const Scratch &scratch) {
    if (!apart.empty()) return Error::success();
    auto before = CloneModule(*reduction.unreduced), after = CloneModule(*reduction.program);
    silence(*before);
    silence(*after);
    auto build = [&](const Module &program, StringRef source, std::string &to) -> Error {
        auto made = buildExecutable(program, source, 1, link, scratch);
        if (!made) return made.takeError();
        to = *made;
        return Error::success();
    };
    if (Error error = build(*reduction.unreduced, "", apart)) return error;
    if (Error error = build(*before, "", original)) return error;
    return build(*after, runtime::enter, reduced);
}

std::string endDifference(const Run &original, const Run &reduced) {
    if (!original.failed.empty()) return "the original fails: " + original.failed;
    if (!reduced.failed.empty()) return "the reduced program fails: " + reduced.failed;
    if (original.status != reduced.status)
        return "exit status " + std::to_string(reduced.status) + " instead of " + std::to_string(original.status);
    return "";
}

std::map<std::string, std::string> fileDifferences(const Run &original, const Run &reduced) {
    std::map<std::string, std::string> found;
    for (const auto &[name, text] : original.written) {
        auto other = reduced.written.find(name);
        if (other == reduced.written.end()) {
            found[name] = name + " is not written";
            continue;
        }
        if (text == other->second) continue;
        auto [at, ignored] = std::mismatch(text.begin(), text.end(), other->second.begin(), other->second.end());
        found[name] = name + " differs from byte " + std::to_string(at - text.begin()) + " on";
    }
    for (const auto &[name, text] : reduced.written)
        if (!original.written.count(name)) found[name] = "other files are written";
    return found;
}

std::string firstDifference(const Run &original, const Run &reduced) {
    if (std::string end = endDifference(original, reduced); !end.empty()) return end;
    auto files = fileDifferences(original, reduced);
    return files.empty() ? "" : files.begin()->second;
}

} // namespace catena
