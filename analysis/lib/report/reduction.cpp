// Variables by label, as Table I counts them (Deng and Wu, NFReducer), then the elimination in figures.
#include "report/reduction.h"

#include "llvm/Support/Format.h"

using namespace llvm;

namespace catena {

namespace {

std::string declaredAt(const Place &place) {
    std::string at = place.file + ":" + std::to_string(place.line);
    return place.function.empty() ? at : at + " in " + place.function;
}

void printLabels(const Labels &labels, raw_ostream &to) {
    size_t nameWidth = 8, typeWidth = 4, placeWidth = 8;
    for (const LabelledVariable &variable : labels.variables) {
        nameWidth = std::max(nameWidth, variable.name.size());
        typeWidth = std::max(typeWidth, variable.type.size());
        placeWidth = std::max(placeWidth, declaredAt(variable.declared).size());
    }
    to << left_justify("label", 15) << left_justify("variable", nameWidth + 2) << left_justify("type", typeWidth + 2)
       << left_justify("declared", placeWidth + 2) << "why\n";
    for (const LabelledVariable &variable : labels.variables)
        to << left_justify(name(variable.label), 15) << left_justify(variable.name, nameWidth + 2)
           << left_justify(variable.type, typeWidth + 2) << left_justify(declaredAt(variable.declared), placeWidth + 2)
           << variable.why << "\n";
    to << "\n"
       << labels.count(Label::Packet) << " packet, " << labels.count(Label::State) << " state, "
       << labels.count(Label::Configuration) << " configuration, " << labels.count(Label::Temporary)
       << " temporary variables\n";
}

/// Statements of one purpose that name the same thing in one function stand in one line.
void printExtraction(const Extraction &extraction, raw_ostream &to) {
    using Line = std::tuple<Purpose, IrrelevantStatement::Fate, std::string, std::string, std::string>;
    std::map<Line, std::set<unsigned>> lines;
    for (const IrrelevantStatement &one : extraction.statements)
        lines[{one.purpose, one.fate, one.place.file, one.place.function, one.what}].insert(one.place.line);
    auto places = [&](const std::string &file, const std::set<unsigned> &numbers, const std::string &function) {
        std::string text = file;
        for (unsigned number : numbers) text += (number == *numbers.begin() ? ":" : ",") + std::to_string(number);
        return text + " in " + function;
    };
    to << "\nno packet depends on:" << (lines.empty() ? " (nothing was found)" : "") << "\n";
    for (const auto &[line, numbers] : lines) {
        const auto &[purpose, fate, file, function, what] = line;
        to << "  " << left_justify(name(purpose), 12)
           << left_justify(fate == IrrelevantStatement::Dropped  ? "dropped"
                           : fate == IrrelevantStatement::Needed ? "needed"
                                                                 : "kept",
                           9)
           << what << " (" << places(file, numbers, function) << ")\n";
    }
    for (const IrrelevantStatement &one : extraction.showing)
        to << "  shows what is dropped: " << one.what << " ("
           << places(one.place.file, {one.place.line}, one.place.function) << ")\n";
    if (extraction.drops())
        to << "packet-processing logic: " << extraction.instructionsAfter << " of " << extraction.instructionsBefore
           << " instructions\n";
    to << "\n";
}

} // namespace

void printReduction(const Reduction &reduction, raw_ostream &to) {
    printLabels(reduction.labels, to);
    printExtraction(reduction.extraction, to);
    const Specialised &done = reduction.specialised;
    to << "packet function: " << done.instructionsBefore << " instructions, reduced " << done.instructionsAfter << "; "
       << done.inlined << " calls inlined, " << done.loadsFolded << " loads of configuration folded\n";
    for (const UnrolledLoop &loop : done.loops) {
        to << "loop over configuration at " << loop.place.file << ":" << loop.place.line << ": ";
        if (loop.decision)
            to << "behind a decision tree over " << loop.decision->fields << " fields for " << loop.decision->entries
               << " entries (" << loop.decision->nodes << " nodes, " << loop.decision->deepest << " deep, at most "
               << loop.decision->longest << " entries in a leaf)\n";
        else
            to << (loop.kept ? "left a loop, too large to unroll (" : "unrolled (") << loop.iterations
               << " iterations)\n";
    }
    if (const Consolidated &chain = done.consolidated;
        chain.reads || chain.copies || chain.buffers || chain.sunk || chain.unread)
        to << "chain: " << chain.reads << " reads and " << chain.copies
           << " copies of copied packets became the packet's own, " << chain.buffers << " copies gone; " << chain.sunk
           << " writes done only where they are sent, " << chain.unread << " never sent\n";
    if (done.pathsSplit || done.branchesDecided || done.undecided)
        to << "paths: " << done.pathsSplit << " merges taken apart, " << done.branchesDecided
           << " branches that go one way only, " << done.undecided << " left open by the solver\n";
    for (const std::string &name : reduction.unmodelled) to << "not in the list of libraries: " << name << "\n";
}

void printEquivalence(const Equivalence &equivalence, raw_ostream &to) {
    to << "compared with the original: " << equivalence.packets << " packets in " << equivalence.captures
       << " captures, all output the same; " << equivalence.stateBytes << " bytes of state in " << equivalence.variables
       << " variables\n";
    if (equivalence.leftOut.empty()) return;
    to << "the same but for what was dropped:";
    for (const std::string &file : equivalence.leftOut) to << " " << file;
    to << "\n";
}

} // namespace catena
