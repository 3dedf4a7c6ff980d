// Both programs are run, not argued about: whatever the analyses believed, a difference is seen here or stays unseen by
// all packets at hand.
#include "reduce/equivalence.h"

#include "program/bitcode.h"
#include "reduce/silent.h"
#include "reduce/state.h"
#include "llvm/Support/FileSystem.h"

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
