// Source files are read where they were compiled; what is not there any more is shown without its text.
#include "report/removal.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace catena {

namespace {

StringRef reasonText(RemovalReason reason) {
    switch (reason) {
    case RemovalReason::Dropped:
        return "dropped by choice";
    case RemovalReason::Configuration:
        return "decided by the configuration";
    case RemovalReason::Layer:
        return "no rule asks for it";
    case RemovalReason::Path:
        return "no packet comes there, as the solver says";
    case RemovalReason::Duplicated:
        return "another function of the chain did it already";
    case RemovalReason::Overwritten:
        return "written anew or dropped further on";
    }
    return "";
}

StringRef reasonName(RemovalReason reason) {
    switch (reason) {
    case RemovalReason::Dropped:
        return "dropped";
    case RemovalReason::Configuration:
        return "configuration";
    case RemovalReason::Layer:
        return "layer";
    case RemovalReason::Path:
        return "path";
    case RemovalReason::Duplicated:
        return "duplicated";
    case RemovalReason::Overwritten:
        return "overwritten";
    }
    return "";
}

/// The lines of source files, by the names that debug information has for these.
class Sources {
public:
    explicit Sources(const Module &program) : paths(sourcePaths(program)) {}

    StringRef line(const std::string &file, unsigned number) {
        auto [known, isNew] = lines.try_emplace(file);
        if (isNew) {
            auto path = paths.find(file);
            if (auto buffer = MemoryBuffer::getFile(path == paths.end() ? file : path->second)) {
                texts.push_back(std::move(*buffer));
                SmallVector<StringRef, 0> cut;
                texts.back()->getBuffer().split(cut, '\n');
                known->second.assign(cut.begin(), cut.end());
            }
        }
        return number && number <= known->second.size() ? known->second[number - 1].trim() : StringRef();
    }

private:
    std::map<std::string, std::string> paths;
    std::map<std::string, std::vector<StringRef>> lines;
    std::vector<std::unique_ptr<MemoryBuffer>> texts;
};

unsigned count(const Specialised &done, RemovalReason reason) {
    return count_if(done.removed, [&](const RemovedLine &line) { return line.reason == reason; });
}

std::string utf8(StringRef bytes) { return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes); }

} // namespace

void writeRemovalText(const Reduction &reduction, const ReductionSizes &sizes, raw_ostream &to) {
    const Specialised &done = reduction.specialised;
    to << done.removed.size() << " of " << done.lines << " lines that process packets are gone:\n";
    for (RemovalReason reason : {RemovalReason::Dropped, RemovalReason::Duplicated, RemovalReason::Overwritten,
                                 RemovalReason::Configuration, RemovalReason::Layer, RemovalReason::Path})
        to << format("%6u ", count(done, reason)) << reasonText(reason) << "\n";
    to << "\ninstructions of the packet function: " << done.instructionsBefore << ", reduced " << done.instructionsAfter
       << "\nbytes of the program: " << sizes.original << ", reduced " << sizes.reduced;
    if (sizes.shared) to << ", shared object " << sizes.shared;
    to << "\n";
    for (const auto &[name, seconds] : reduction.seconds) to << format("%8.3f s  ", seconds) << name << "\n";
    Sources sources(*reduction.unreduced);
    const RemovedLine *last = nullptr;
    for (const RemovedLine &removed : done.removed) {
        const SourceLine &line = removed.line;
        if (!last || last->line.function != line.function || last->line.file != line.file)
            to << "\n" << line.file << ", " << line.function << ":\n";
        to << format("%6u  ", line.line) << left_justify(reasonName(removed.reason), 14)
           << sources.line(line.file, line.line) << "\n";
        last = &removed;
    }
}

void writeRemovalJson(const Reduction &reduction, const ReductionSizes &sizes, raw_ostream &to) {
    const Specialised &done = reduction.specialised;
    Sources sources(*reduction.unreduced);
    json::Array removed;
    for (const RemovedLine &one : done.removed)
        removed.push_back(json::Object{{"file", utf8(one.line.file)},
                                       {"line", one.line.line},
                                       {"function", utf8(one.line.function)},
                                       {"reason", reasonName(one.reason)},
                                       {"instructions", one.instructions},
                                       {"text", utf8(sources.line(one.line.file, one.line.line))}});
    json::Object seconds;
    for (const auto &[name, value] : reduction.seconds) seconds[name] = value;
    json::Object root{
        {"schema", 1},
        {"packet_function", utf8(reduction.packetFunction)},
        {"lines", done.lines},
        {"instructions", json::Object{{"original", done.instructionsBefore}, {"reduced", done.instructionsAfter}}},
        {"bytes", json::Object{{"original", sizes.original}, {"reduced", sizes.reduced}, {"shared", sizes.shared}}},
        {"seconds", std::move(seconds)},
        {"removed", std::move(removed)}};
    to << formatv("{0:2}", json::Value(std::move(root))) << "\n";
}

} // namespace catena
