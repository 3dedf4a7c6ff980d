// Observations are found again by what the source calls a variable and where it declares it.
#include "tracer/misses.h"

#include "program/bitcode.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include <map>
#include <optional>
#include <tuple>

using namespace llvm;

namespace catena {

namespace {

using Key = std::tuple<std::string, std::string, std::string, unsigned, Variable::Kind>;

Key keyOf(const std::string &name, const Place &declared, Variable::Kind kind) {
    return {name, declared.file, declared.function, declared.line, kind};
}

/// Two variables can be one to the eye (a macro that declares statics): they are taken together.
std::map<Key, Observation> byName(const ObservedRun &run) {
    std::map<Key, Observation> all;
    for (const Observation &one : run.variables) {
        Observation &there = all.try_emplace(keyOf(one.name, one.declared, one.kind), one).first->second;
        there.read |= one.read, there.written |= one.written, there.leads |= one.leads;
    }
    return all;
}

} // namespace

Expected<ObservedRun> readObservations(StringRef file, StringRef text) {
    ObservedRun run;
    SmallVector<StringRef> lines;
    text.split(lines, '\n', -1, false);
    auto wrong = [&](size_t line, const Twine &expected) {
        return failure(file + ":" + Twine(line + 1) + ": expected " + expected +
                       "; the file is written by a traced program when it ends");
    };
    if (lines.empty() || !lines[0].consume_front("packets ") || lines[0].getAsInteger(10, run.packets))
        return wrong(0, "`packets N`");
    for (size_t i = 1; i < lines.size(); ++i) {
        SmallVector<StringRef, 6> words;
        lines[i].split(words, '\t');
        Observation one;
        if (words.size() != 6 || words[1].getAsInteger(10, one.declared.line))
            return wrong(i, "kind, line, file, function, name and what was seen, with tabs between");
        auto kind = StringSwitch<std::optional<Variable::Kind>>(words[0])
                        .Case("global", Variable::Global)
                        .Case("static", Variable::Static)
                        .Case("local", Variable::Local)
                        .Case("parameter", Variable::Parameter)
                        .Default(std::nullopt);
        if (!kind) return wrong(i, "global, static, local or parameter");
        one.kind = *kind;
        one.declared.file = words[2].str(), one.declared.function = words[3].str(), one.name = words[4].str();
        one.read = words[5].contains("read"), one.written = words[5].contains("written");
        one.leads = words[5].contains("leads");
        run.variables.push_back(std::move(one));
    }
    return run;
}

std::vector<Miss> findMisses(const std::vector<Variable> &analysed, const ObservedRun &run) {
    std::vector<Miss> misses;
    std::map<Key, const Variable *> known;
    for (const Variable &one : analysed) {
        const Variable *&there = known[keyOf(one.name, one.declared, one.kind)];
        if (!there || (one.topLevel() && !there->topLevel()) || (one.updateable && !there->updateable)) there = &one;
    }
    for (const auto &[key, seen] : byName(run)) {
        auto miss = [&](const char *what) { misses.push_back({seen.name, seen.declared, what}); };
        auto found = known.find(key);
        if (found == known.end()) {
            bool outlives = seen.kind == Variable::Global || seen.kind == Variable::Static;
            if (outlives && seen.written) miss("was written, but is not persistent");
            continue;
        }
        const Variable &variable = *found->second;
        if (seen.written && !variable.updateable) miss("was written, but is not updateable");
        if (seen.read && !variable.topLevel()) miss("was read, but is not top-level");
        if (seen.leads && !seen.written && variable.topLevel() && !variable.updateable)
            miss("led to what was written, but is not updateable");
    }
    return misses;
}

Precision precision(const std::vector<Variable> &analysed, const ObservedRun &run) {
    Precision figures;
    auto observed = byName(run);
    for (const Variable &variable : analysed) {
        if (!variable.updateable) continue;
        ++figures.called;
        auto seen = observed.find(keyOf(variable.name, variable.declared, variable.kind));
        figures.seen += seen != observed.end() && (seen->second.written || seen->second.leads);
    }
    return figures;
}

} // namespace catena
