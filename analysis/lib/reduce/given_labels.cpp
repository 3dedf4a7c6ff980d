// "One author identifies all the variables following the methods in half an hour. An NF program only needs this manual
// labeling once" (Deng and Wu, NFReducer, section VI-D): here only what Algorithm 1 gets wrong is said, and what is
// said is taken at its word. The comparison with the original notices a wrong one.
#include "reduce/given_labels.h"

#include "library/list_file.h"
#include "program/bitcode.h"

using namespace llvm;

namespace catena {

StringRef name(Label label) {
    switch (label) {
    case Label::Packet:
        return "packet";
    case Label::State:
        return "state";
    case Label::Configuration:
        return "configuration";
    case Label::Temporary:
        return "temporary";
    }
    return "";
}

std::set<std::string> temporaries(const GivenLabels &given) {
    std::set<std::string> found;
    for (const auto &[symbol, label] : given)
        if (label.label == Label::Temporary) found.insert(symbol);
    return found;
}

Expected<std::vector<GivenLabel>> readLabels(StringRef file, StringRef text) {
    std::vector<GivenLabel> labels;
    for (const ListLine &line : parseList(text)) {
        bool placed = line.words.size() == 4 && line.words[2] == "in";
        if ((line.words.size() != 2 && !placed) || !line.rest.empty())
            return listError(file, line.number, "a line is: LABEL VARIABLE [in FUNCTION|FILE]");
        const auto *label = find_if(allLabels, [&](Label one) { return name(one) == line.words[0]; });
        if (label == std::end(allLabels))
            return listError(file, line.number,
                             "`" + line.words[0] + "` is none of packet, state, configuration, temporary");
        labels.push_back({*label, line.words[1].str(), placed ? line.words[3].str() : "",
                          file.str() + ":" + std::to_string(line.number)});
    }
    return labels;
}

namespace {

/// A variable of the source, with the global variable that it is.
struct Candidate {
    std::string symbol, name;
    Place declared;
    bool used;
};

std::vector<Candidate> candidates(const Module &program, const Reception &reception, const PacketPhase &phase) {
    std::vector<Candidate> found;
    for (const GlobalVariable &global : program.globals()) {
        if (global.isDeclaration() || global.isConstant()) continue;
        std::string symbol = global.getName().str();
        bool used = phase.used.count(symbol) || phase.globals.count(symbol);
        if (auto local = reception.locals.find(symbol); local != reception.locals.end())
            found.push_back({symbol, local->second.name, local->second.declared, used});
        else if (const DIGlobalVariable *source = sourceVariable(global))
            found.push_back(
                {symbol, source->getName().str(), {source->getFilename().str(), source->getLine(), ""}, used});
    }
    return found;
}

bool isIn(const Place &declared, StringRef where) {
    return where.empty() || declared.function == where || declared.file == where ||
           StringRef(declared.file).ends_with("/" + where.str());
}

Error wrong(const GivenLabel &label, const Twine &what) { return failure(label.where + ": " + what); }

} // namespace

Expected<GivenLabels> applyLabels(const std::vector<GivenLabel> &labels, const Module &program,
                                  const Reception &reception, PacketPhase &phase) {
    GivenLabels given;
    auto all = candidates(program, reception, phase);
    for (const GivenLabel &label : labels) {
        std::vector<const Candidate *> meant;
        for (const Candidate &one : all)
            if (one.name == label.variable && isIn(one.declared, label.in)) meant.push_back(&one);
        if (meant.empty()) {
            std::string known;
            for (const Candidate &one : all)
                if (one.used) known += (known.empty() ? "" : ", ") + one.name;
            return wrong(label, "the program has no variable `" + label.variable + "`" +
                                    (label.in.empty() ? "" : " in " + label.in) + "; packet processing uses " + known);
        }
        if (meant.size() > 1) {
            std::string places;
            for (const Candidate *one : meant)
                places += (places.empty() ? "" : ", ") + one->declared.file + ":" + std::to_string(one->declared.line);
            return wrong(label, "several variables are called `" + label.variable + "` (" + places +
                                    "): say which by `in FUNCTION` or `in FILE`");
        }
        const Candidate &one = *meant[0];
        if (!one.used) return wrong(label, "packet processing does not use `" + label.variable + "`");
        auto [at, isNew] = given.try_emplace(one.symbol, label);
        if (!isNew) return wrong(label, "`" + label.variable + "` has a label already (" + at->second.where + ")");
        if (label.label == Label::Configuration)
            phase.globals.erase(one.symbol), phase.used.insert(one.symbol);
        else
            phase.globals[one.symbol].all = true;
    }
    return given;
}

} // namespace catena
