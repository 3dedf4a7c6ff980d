// Both programs are run, not argued about: whatever the analyses believed, a difference is seen here or stays unseen by
// all packets at hand.
#include "reduce/equivalence.h"

#include "program/bitcode.h"
#include "reduce/state.h"

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

std::string firstDifference(const Run &original, const Run &reduced) {
    if (!original.failed.empty()) return "the original fails: " + original.failed;
    if (!reduced.failed.empty()) return "the reduced program fails: " + reduced.failed;
    if (original.status != reduced.status)
        return "exit status " + std::to_string(reduced.status) + " instead of " + std::to_string(original.status);
    for (const auto &[name, text] : original.written) {
        auto other = reduced.written.find(name);
        if (other == reduced.written.end()) return name + " is not written";
        if (text == other->second) continue;
        auto [at, ignored] = std::mismatch(text.begin(), text.end(), other->second.begin(), other->second.end());
        return name + " differs from byte " + std::to_string(at - text.begin()) + " on";
    }
    return original.written.size() == reduced.written.size() ? "" : "other files are written";
}

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
    for (const auto &[name, capture] : captures) {
        std::string number = std::to_string(done.captures++), file = scratch.file("capture" + number);
        done.packets += capture.packets.size();
        if (Error error = writeCapture(capture, file)) return std::move(error);
        auto left = scratch.folder("original-" + number), right = scratch.folder("reduced-" + number);
        if (!left) return joinErrors(left.takeError(), right.takeError());
        if (!right) return right.takeError();
        done.difference =
            firstDifference(run(plain, options.line, file, *left), run(executable, options.line, file, *right));
        if (done.difference.empty()) {
            auto one = stateAfter(*before, options.line, file, "state-original-" + number + "-", scratch);
            if (!one) return one.takeError();
            auto other = stateAfter(*after, options.line, file, "state-reduced-" + number + "-", scratch);
            if (!other) return other.takeError();
            StateComparison state =
                compareState(*reduction.unreduced, *one, *other, reduction.specialised.privates, reduction.ownBlocks);
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
