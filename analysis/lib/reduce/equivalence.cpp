// Both programs are run, not argued about: whatever the analyses believed, a difference is seen here or stays unseen by
// all packets at hand.
#include "reduce/equivalence.h"

#include "program/bitcode.h"
#include "reduce/extraction.h"
#include "reduce/runtime.h"
#include "reduce/state.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

Expected<StateProgram> buildState(const Module &program, const LinkFlags &link, const Scratch &scratch) {
    auto executable = buildForImage(program, link, scratch);
    if (!executable) return executable.takeError();
    return StateProgram{program, *executable};
}

Expected<Image> stateAfter(const StateProgram &built, const CommandLine &line, const std::string &capture,
                           const std::string &prefix, const Scratch &scratch) {
    std::string dumps[2];
    for (unsigned i : {0, 1}) {
        std::string name = prefix + std::to_string(i);
        dumps[i] = scratch.file(name + ".dump");
        auto folder = scratch.folder(name);
        if (!folder) return folder.takeError();
        sys::fs::remove(dumps[i]);
        run(built.executable, line, capture, *folder, {{"CATENA_SNAPSHOT", dumps[i]}, {"CATENA_SNAPSHOT_AT", "exit"}});
    }
    return readImage(built.program, dumps[0], dumps[1]);
}

namespace {

/// Return how the ends of two runs differ.
std::string endDifference(const Run &original, const Run &reduced) {
    if (!original.failed.empty()) return "the original fails: " + original.failed;
    if (!reduced.failed.empty()) return "the reduced program fails: " + reduced.failed;
    if (original.status != reduced.status)
        return "exit status " + std::to_string(reduced.status) + " instead of " + std::to_string(original.status);
    return "";
}

/// Return the files that differ between two runs, each with how.
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

/// The original taken apart, and both programs without what was dropped; made when they are first needed.
struct Silent {
    std::string apart, original, reduced;

    Error make(const Reduction &reduction, const LinkFlags &link, const Scratch &scratch) {
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
};

} // namespace

Expected<Equivalence> compare(const Module &original, const Reduction &reduction, const std::string &executable,
                              const ReduceOptions &options,
                              const std::vector<std::pair<std::string, Capture>> &captures, const Scratch &scratch) {
    Equivalence done;
    auto plain = buildExecutable(original, "", 1, options.link, scratch);
    if (!plain) return plain.takeError();
    auto before = buildState(*reduction.unreduced, options.link, scratch);
    if (!before) return before.takeError();
    auto after = buildState(*reduction.program, options.link, scratch);
    if (!after) return after.takeError();
    Silent silent;
    for (const auto &[name, capture] : captures) {
        std::string number = std::to_string(done.captures++), file = scratch.file("capture" + number);
        done.packets += capture.packets.size();
        if (Error error = writeCapture(capture, file)) return std::move(error);
        // Both write the same files, whose names they may print and keep.
        auto folder = scratch.folder("written-" + number);
        if (!folder) return folder.takeError();
        auto onCapture = [&](const std::string &program) { return run(program, options.line, file, *folder); };
        Run original = onCapture(*plain), reduced = onCapture(executable);
        auto files = fileDifferences(original, reduced);
        if (reduction.extraction.drops() && !files.empty() && endDifference(original, reduced).empty()) {
            if (Error error = silent.make(reduction, options.link, scratch)) return std::move(error);
            done.difference = firstDifference(original, onCapture(silent.apart));
            if (done.difference.empty())
                done.difference = firstDifference(onCapture(silent.original), onCapture(silent.reduced));
            for (const auto &[name, how] : files) done.leftOut.insert(name);
        } else {
            done.difference = firstDifference(original, reduced);
        }
        bool same = done.difference.empty();
        // What comes from the clock may be the same in two runs by chance, but hardly again.
        for (unsigned tries = 0; tries < 2 && same; ++tries) {
            auto one = stateAfter(*before, options.line, file, "state-" + number + "-", scratch);
            if (!one) return one.takeError();
            auto other = stateAfter(*after, options.line, file, "state-" + number + "-", scratch);
            if (!other) {
                done.difference = "the reduced program leaves no state: " + toString(other.takeError());
                continue;
            }
            StateComparison state = compareState(*reduction.unreduced, *one, *other, reduction.specialised.privates,
                                                 reduction.ownBlocks, reduction.extraction.leftOut);
            done.difference = state.difference;
            if (!done.difference.empty()) continue;
            done.variables = state.variables;
            done.stateBytes += state.bytes;
            break;
        }
        if (!done.difference.empty()) {
            done.difference = name + ": " + done.difference;
            break;
        }
    }
    return done;
}

} // namespace catena
