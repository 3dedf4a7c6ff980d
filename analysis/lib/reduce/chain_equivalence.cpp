// The chain runs as its functions were written: as processes, each of which reads the capture that the one before
// wrote.
#include "reduce/chain_equivalence.h"

#include "program/bitcode.h"
#include "reduce/silent.h"
#include "reduce/state.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace catena {

bool isMixOf(StringRef text, const std::vector<StringRef> &parts) {
    // How much of each part may be used up after some of the text: few ways, unless the parts resemble one another.
    constexpr size_t mostWays = 4096;
    std::set<std::vector<size_t>> ways{std::vector<size_t>(parts.size(), 0)};
    for (char letter : text) {
        std::set<std::vector<size_t>> next;
        for (const std::vector<size_t> &used : ways)
            for (size_t i = 0; i < parts.size(); ++i)
                if (used[i] < parts[i].size() && parts[i][used[i]] == letter) {
                    std::vector<size_t> more = used;
                    ++more[i];
                    next.insert(std::move(more));
                }
        if (next.empty() || next.size() > mostWays) return false;
        ways = std::move(next);
    }
    std::vector<size_t> whole;
    for (StringRef part : parts) whole.push_back(part.size());
    return ways.count(whole);
}

namespace {

/// What the functions of a chain came to, and what each read.
struct PipelineRun {
    std::vector<Run> runs;
    std::vector<std::string> captures;
};

class ChainComparison {
public:
    ChainComparison(const ChainOriginals &originals, const Reduction &reduction, const std::string &executable,
                    const ReduceOptions &options, const Scratch &scratch)
        : originals(originals), reduction(reduction), executable(executable), options(options), scratch(scratch) {}

    Error build() {
        for (size_t i = 0; i < originals.programs.size(); ++i) {
            auto made = buildExecutable(*originals.programs[i], "", 1, options.link, scratch);
            if (!made) return made.takeError();
            plain.push_back(*made);
            if (Error error = addState(*originals.members[i].program)) return error;
        }
        if (Error error = addState(*reduction.unreduced)) return error;
        return addState(*reduction.program);
    }

    Error compareOn(const Capture &capture, Equivalence &done) {
        std::string number = std::to_string(done.captures++), file = scratch.file("capture" + number);
        done.packets += capture.packets.size();
        if (Error error = writeCapture(capture, file)) return error;
        PipelineRun pipeline;
        for (size_t i = 0; i < plain.size(); ++i) {
            auto folder = scratch.folder("original-" + Twine(i) + "-" + number);
            if (!folder) return folder.takeError();
            pipeline.captures.push_back(i ? scratch.file("original-" + Twine(i - 1) + "-" + number) + "/next" : file);
            pipeline.runs.push_back(run(plain[i], originals.lines[i], pipeline.captures[i], *folder));
        }
        auto folder = scratch.folder("reduced-" + number);
        if (!folder) return folder.takeError();
        auto onCapture = [&](const std::string &program) { return run(program, options.line, file, *folder); };
        Run reduced = onCapture(executable);
        done.difference = endOfAll(pipeline, reduced);
        auto files = filesOfAll(pipeline, reduced);
        if (reduction.extraction.drops() && !files.empty() && done.difference.empty()) {
            if (Error error = silent.make(reduction, options.link, scratch)) return error;
            done.difference = firstOfAll(pipeline, onCapture(silent.apart));
            if (done.difference.empty())
                done.difference = firstDifference(onCapture(silent.original), onCapture(silent.reduced));
            for (const auto &[name, how] : files) done.leftOut.insert(name);
        } else if (done.difference.empty() && !files.empty()) {
            done.difference = files.begin()->second;
        }
        return done.difference.empty() ? compareStates(pipeline, file, number, done) : Error::success();
    }

private:
    Error addState(const Module &program) {
        auto built = buildState(program, options.link, scratch);
        if (!built) return built.takeError();
        states.push_back(std::move(*built));
        return Error::success();
    }

    /// Return how the end of a program of all functions differs from the functions' own.
    std::string endOfAll(const PipelineRun &pipeline, const Run &all) const {
        if (!all.failed.empty()) return "the reduced program fails: " + all.failed;
        int status = 0;
        for (size_t i = 0; i < pipeline.runs.size(); ++i) {
            const Run &original = pipeline.runs[i];
            if (!original.failed.empty()) return originals.members[i].name + " fails: " + original.failed;
            if (original.status) status = original.status;
        }
        return all.status == status
                   ? ""
                   : "exit status " + std::to_string(all.status) + " instead of " + std::to_string(status);
    }

    /// Return the files that differ, by the names that they have in the program of all functions, each with how.
    std::map<std::string, std::string> filesOfAll(const PipelineRun &pipeline, const Run &all) const {
        std::map<std::string, std::string> found;
        for (size_t i = 0; i < pipeline.runs.size(); ++i) {
            const std::string &name = originals.members[i].name;
            for (const auto &[file, text] : pipeline.runs[i].written) {
                if (file == "next" || file == "stdout" || file == "stderr") continue;
                std::string of = name + "." + file;
                auto other = all.written.find(of);
                if (other == all.written.end()) {
                    found[of] = name + "'s " + file + " is not written";
                } else if (other->second != text) {
                    auto [at, ignored] =
                        std::mismatch(text.begin(), text.end(), other->second.begin(), other->second.end());
                    found[of] = name + "'s " + file + " differs from byte " + std::to_string(at - text.begin()) + " on";
                }
            }
        }
        for (const char *stream : {"stdout", "stderr"}) {
            std::vector<StringRef> parts;
            for (const Run &original : pipeline.runs)
                if (auto text = original.written.find(stream); text != original.written.end())
                    parts.push_back(text->second);
            auto text = all.written.find(stream);
            if (text == all.written.end() || !isMixOf(text->second, parts))
                found[stream] = std::string(stream) + " is not what the functions print together";
        }
        return found;
    }

    std::string firstOfAll(const PipelineRun &pipeline, const Run &all) const {
        std::string end = endOfAll(pipeline, all);
        if (!end.empty()) return end;
        auto files = filesOfAll(pipeline, all);
        return files.empty() ? "" : files.begin()->second;
    }

    Error compareStates(const PipelineRun &pipeline, const std::string &file, const std::string &number,
                        Equivalence &done) {
        size_t count = plain.size();
        std::vector<Image> images;
        for (size_t i = 0; i < states.size(); ++i) {
            bool alone = i < count;
            auto image =
                stateAfter(states[i], alone ? originals.lines[i] : options.line, alone ? pipeline.captures[i] : file,
                           "state-" + std::to_string(i) + "-" + number + "-", scratch);
            if (!image) return image.takeError();
            images.push_back(std::move(*image));
        }
        StateComparison state =
            compareState(*reduction.unreduced, images[count], images[count + 1], reduction.specialised.privates,
                         reduction.ownBlocks, reduction.extraction.leftOut);
        done.variables = state.variables;
        done.stateBytes += state.bytes;
        done.difference = state.difference;
        for (size_t i = 0; i < count && done.difference.empty(); ++i)
            done.difference =
                compareState(states[i].program, images[i], images[count], {}, reduction.ownBlocks, {}, false)
                    .difference;
        return Error::success();
    }

    const ChainOriginals &originals;
    const Reduction &reduction;
    const std::string &executable;
    const ReduceOptions &options;
    const Scratch &scratch;
    std::vector<std::string> plain;
    /// Of each function, then of the spliced program before and after it was reduced.
    std::vector<StateProgram> states;
    Silent silent;
};

} // namespace

Expected<Equivalence> compareChain(const ChainOriginals &originals, const Reduction &reduction,
                                   const std::string &executable, const ReduceOptions &options,
                                   const std::vector<std::pair<std::string, Capture>> &captures,
                                   const Scratch &scratch) {
    Equivalence done;
    ChainComparison comparison(originals, reduction, executable, options, scratch);
    if (Error error = comparison.build()) return std::move(error);
    for (const auto &[name, capture] : captures) {
        if (Error error = comparison.compareOn(capture, done)) return std::move(error);
        if (done.difference.empty()) continue;
        done.difference = name + ": " + done.difference;
        break;
    }
    return done;
}

} // namespace catena
