// Both programs are run, not argued about: whatever the analyses believed, a difference is seen here or stays unseen by
// all packets at hand.
#include "reduce/equivalence.h"

#include "program/bitcode.h"
#include "reduce/extraction.h"
#include "reduce/runtime.h"
#include "reduce/state.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace catena {

Expected<StateProgram> buildState(const Module &program, const Twine &name, const BuildFlags &flags,
                                  const Scratch &scratch) {
    std::string prefix = name.str();
    StateProgram built{program, {}};
    for (unsigned variant : {0, 1}) {
        built.executables[variant] = scratch.file(prefix + std::to_string(variant));
        if (Error error = buildForImage(program, flags, variant, built.executables[variant], scratch))
            return std::move(error);
    }
    return built;
}

Expected<Image> stateAfter(const StateProgram &built, const CommandLine &line, const std::string &capture,
                           const std::string &prefix, const Scratch &scratch) {
    std::string dumps[2];
    for (unsigned variant : {0, 1}) {
        std::string name = prefix + std::to_string(variant);
        dumps[variant] = scratch.file(name + ".dump");
        auto folder = scratch.folder(name);
        if (!folder) return folder.takeError();
        run(built.executables[variant], line, capture, *folder,
            {{"CATENA_SNAPSHOT", dumps[variant]}, {"CATENA_SNAPSHOT_AT", "exit"}});
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

    Error make(const Reduction &reduction, const BuildFlags &flags, const Scratch &scratch) {
        if (!apart.empty()) return Error::success();
        apart = scratch.file("apart"), original = scratch.file("silent-original");
        reduced = scratch.file("silent-reduced");
        if (Error error = buildExecutable(*reduction.unreduced, "", flags, apart, scratch)) return error;
        auto before = CloneModule(*reduction.unreduced), after = CloneModule(*reduction.program);
        silence(*before);
        silence(*after);
        if (Error error = buildExecutable(*before, "", flags, original, scratch)) return error;
        return buildExecutable(*after, runtime::enter, flags, reduced, scratch);
    }
};

} // namespace

Expected<Equivalence> compare(const Module &original, const Reduction &reduction, const std::string &executable,
                              const ReduceOptions &options,
                              const std::vector<std::pair<std::string, Capture>> &captures, const Scratch &scratch) {
    Equivalence done;
    BuildFlags flags = options.link;
    flags.push_back("-O1");
    std::string plain = scratch.file("original");
    if (Error error = buildExecutable(original, "", flags, plain, scratch)) return std::move(error);
    auto before = buildState(*reduction.unreduced, "state-original", options.link, scratch);
    if (!before) return before.takeError();
    auto after = buildState(*reduction.program, "state-reduced", options.link, scratch);
    if (!after) return after.takeError();
    Silent silent;
    for (const auto &[name, capture] : captures) {
        std::string number = std::to_string(done.captures++), file = scratch.file("capture" + number);
        done.packets += capture.packets.size();
        if (Error error = writeCapture(capture, file)) return std::move(error);
        auto left = scratch.folder("original-" + number), right = scratch.folder("reduced-" + number);
        if (!left) return joinErrors(left.takeError(), right.takeError());
        if (!right) return right.takeError();
        Run original = run(plain, options.line, file, *left), reduced = run(executable, options.line, file, *right);
        auto files = fileDifferences(original, reduced);
        if (reduction.extraction.drops() && !files.empty() && endDifference(original, reduced).empty()) {
            if (Error error = silent.make(reduction, flags, scratch)) return std::move(error);
            auto again = [&](const std::string &program, const std::string &folder) {
                return run(program, options.line, file, folder);
            };
            done.difference = firstDifference(original, again(silent.apart, *right));
            if (done.difference.empty())
                done.difference = firstDifference(again(silent.original, *left), again(silent.reduced, *right));
            for (const auto &[name, how] : files) done.leftOut.insert(name);
        } else {
            done.difference = firstDifference(original, reduced);
        }
        if (done.difference.empty()) {
            auto one = stateAfter(*before, options.line, file, "state-original-" + number + "-", scratch);
            if (!one) return one.takeError();
            auto other = stateAfter(*after, options.line, file, "state-reduced-" + number + "-", scratch);
            if (!other) return other.takeError();
            StateComparison state = compareState(*reduction.unreduced, *one, *other, reduction.specialised.privates,
                                                 reduction.ownBlocks, reduction.extraction.leftOut);
            done.variables = state.variables;
            done.stateBytes += state.bytes;
            done.difference = state.difference;
        }
        if (!done.difference.empty()) {
            done.difference = name + ": " + done.difference;
            break;
        }
    }
    return done;
}

} // namespace catena
