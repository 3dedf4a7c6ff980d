// Laying the table out: columns as wide as their widest cell.
#include "report/table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace catena {

std::string scopeOf(const Variable &variable) {
    if (!variable.keyed) return "-";
    if (variable.flowspace.empty()) return "*";
    std::string text;
    for (const std::string &field : variable.flowspace) text += (text.empty() ? "" : ", ") + field;
    return text;
}

std::string accessPattern(unsigned reads, unsigned writes) {
    if (!writes) return reads ? "read" : "-";
    if (!reads) return "write";
    // Twice as many statements of one kind make it "mostly".
    if (reads >= 2 * writes) return "read mostly";
    return writes >= 2 * reads ? "write mostly" : "both";
}

std::string outputOf(const Variable &variable) {
    if (variable.packetOutput) return variable.logOutput ? "packets, logs" : "packets";
    if (variable.logOutput) return "logs";
    return variable.unread ? "unread" : "-";
}

namespace {

std::string shortFile(StringRef path) {
    return path.rsplit('/').second.empty() ? path.str() : path.rsplit('/').second.str();
}

std::string placeText(const Place &place) {
    std::string text = shortFile(place.file) + ":" + std::to_string(place.line);
    return place.function.empty() ? text : text + " in " + place.function;
}

/// A table has no room for a scope of many fields; JSON has.
std::string shorten(std::string text) {
    constexpr size_t most = 48;
    return text.size() <= most ? text : text.substr(0, text.rfind(", ", most)) + ", ...";
}

void printWhy(const Variable &variable, raw_ostream &out) {
    out << "\n" << variable.name << ":\n";
    for (const Step &step : variable.why) out << "    " << placeText(step.place) << "  " << step.what << "\n";
}

} // namespace

void printTable(const StateReport &report, bool all, bool why, raw_ostream &out) {
    std::vector<std::vector<std::string>> rows{
        {"variable", "type", "declared", "top-level", "updateable", "scope", "access", "output"}};
    unsigned top = 0, updateable = 0, packets = 0, logs = 0, unread = 0;
    for (const Variable &variable : report.variables) {
        top += variable.topLevel(), updateable += variable.updateable;
        packets += variable.packetOutput, logs += variable.logOutput, unread += variable.unread;
        if (!variable.topLevel() && !all) continue;
        rows.push_back({variable.name, variable.type, placeText(variable.declared),
                        variable.use == Variable::Named            ? "yes"
                        : variable.use == Variable::ThroughPointer ? "by pointer"
                                                                   : "no",
                        variable.updateable ? "yes" : "no", variable.topLevel() ? shorten(scopeOf(variable)) : "-",
                        accessPattern(variable.reads, variable.writes), outputOf(variable)});
    }
    std::vector<size_t> widths(rows.front().size(), 0);
    for (const auto &row : rows)
        for (auto [width, cell] : zip(widths, row)) width = std::max(width, cell.size());
    for (const auto &row : rows) {
        std::string line;
        for (auto [width, cell] : zip(widths, row)) line += cell + std::string(width - cell.size() + 2, ' ');
        out << StringRef(line).rtrim() << "\n";
    }
    out << "\nvariables: " << report.allVariables << " in all, " << report.variables.size() << " persistent, " << top
        << " top-level, " << updateable << " updateable, " << packets << " impact packets, " << logs << " impact logs, "
        << unread << " unread\n";
    out << "procedures: " << report.procedures << ", of them " << report.packetProcedures.size()
        << " process packets; packet loop in";
    for (const std::string &name : report.loopProcedures) out << " " << name;
    out << "\n";
    if (!report.unmodelled.empty()) {
        out << "not in a library list, so taken to do anything with what their arguments point to:";
        for (const std::string &name : report.unmodelled) out << " " << name;
        out << "\n";
    }
    if (why)
        for (const Variable &variable : report.variables)
            if (variable.updateable) printWhy(variable, out);
}

} // namespace catena
