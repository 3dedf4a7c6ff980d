// All reasons stand in the page and are shown by what a link leads to, so that it works without its script, and a
// variable's and a line's address can be passed on. All text from outside is escaped; nothing is ever made from strings
// by the script.
#include "report/page.h"

#include "report/page_parts.h"
#include "report/source_text.h"
#include "report/table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>
#include <numeric>

using namespace llvm;

namespace catena {

namespace {

/// Files beyond this are generated, or no source.
constexpr uint64_t largest = 4 << 20;

std::string escaped(StringRef text) {
    std::string valid = json::isUTF8(text) ? text.str() : json::fixUTF8(text);
    // Other control characters than tabs have no place in HTML.
    llvm::erase_if(valid, [](unsigned char c) { return c < 32 && c != '\t'; });
    std::string result;
    raw_string_ostream out(result);
    printHTMLEscaped(valid, out);
    return result;
}

StringRef levelOf(const Variable &variable) {
    return variable.updateable ? "updateable" : variable.topLevel() ? "toplevel" : "persistent";
}

class Page {
public:
    Page(const StateReport &report, raw_ostream &out) : report(report), out(out) { findFiles(); }
    void write();

private:
    struct File {
        std::string name, path;
        std::unique_ptr<MemoryBuffer> text;
    };

    void findFiles();
    void header();
    void legend();
    void table();
    void sources();
    void source(size_t number);
    void name(StringRef name, StringRef file, unsigned line, const std::map<unsigned, std::string> &functions);
    void reasons();
    std::string link(const Place &place) const;

    const StateReport &report;
    raw_ostream &out;
    std::vector<File> files;
    std::map<std::string, size_t, std::less<>> numbers;
    /// Variables by name; several may have the same one.
    std::map<std::string, std::vector<size_t>, std::less<>> byName;
    /// Lines that reasons pass through, by file.
    std::map<std::string, std::set<unsigned>, std::less<>> passed;
};

void Page::findFiles() {
    auto need = [&](const Place &place) {
        if (place.file.empty() || !numbers.try_emplace(place.file, files.size()).second) return;
        auto known = report.sources.find(place.file);
        std::string path = known == report.sources.end() ? place.file : known->second;
        auto text = MemoryBuffer::getFile(path, true);
        bool usable = text && (*text)->getBufferSize() <= largest;
        files.push_back({place.file, path, usable ? std::move(*text) : nullptr});
    };
    for (size_t i = 0; i < report.variables.size(); ++i) {
        const Variable &variable = report.variables[i];
        byName[variable.name].push_back(i);
        need(variable.declared);
        for (const Step &step : variable.why) {
            need(step.place);
            passed[step.place.file].insert(step.place.line);
        }
    }
    for (const auto *calls : {&report.receives, &report.sends, &report.logs})
        for (const PacketPlaceFound &call : *calls) need(call.place);
}

/// A link to a line, or its name alone if the file is not there.
std::string Page::link(const Place &place) const {
    std::string text = escaped(sys::path::filename(place.file)) + ":" + std::to_string(place.line);
    auto file = numbers.find(place.file);
    if (file == numbers.end() || !files[file->second].text) return text;
    return "<a href=\"#f" + std::to_string(file->second) + "-" + std::to_string(place.line) + "\">" + text + "</a>";
}

void Page::header() {
    unsigned top = 0, updateable = 0, unread = 0;
    for (const Variable &variable : report.variables)
        top += variable.topLevel(), updateable += variable.updateable, unread += variable.unread;
    out << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>State of "
        << escaped(sys::path::filename(report.program)) << "</title>\n<style>\n"
        << page::css << "</style>\n</head>\n<body>\n<header>\n<h1>State of " << escaped(report.program) << "</h1>\n<p>"
        << report.allVariables << " variables, of them " << report.variables.size()
        << " <mark class=\"persistent\">persistent</mark>, " << top << " <mark class=\"toplevel\">top-level</mark>, "
        << updateable << " <mark class=\"updateable\">updateable</mark>; " << unread << " unread. "
        << report.packetProcedures.size() << " of " << report.procedures << " procedures process packets.</p>\n";
    legend();
    for (const auto &[what, calls] :
         {std::pair("Packets are received", &report.receives), std::pair("Packets are sent", &report.sends),
          std::pair("Logs are written", &report.logs)}) {
        if (calls->empty()) continue;
        out << "<p class=\"note\">" << what << " by";
        // A hundred places of logging are no use to anybody.
        for (const PacketPlaceFound &call : ArrayRef(*calls).take_front(12))
            out << (&call == calls->data() ? " " : ", ") << escaped(call.name) << " (" << link(call.place) << ")";
        if (calls->size() > 12) out << " and " << calls->size() - 12 << " others";
        out << "</p>\n";
    }
    out << "</header>\n";
}

/// What the words of the table mean, for who has not read the paper.
void Page::legend() {
    out << "<dl>\n";
    for (const auto &[term, meaning] :
         {std::pair("<mark class=\"persistent\">persistent</mark>", "keeps its value from one packet to the next"),
          std::pair("<mark class=\"toplevel\">top-level</mark>", "and is used by code that processes packets"),
          std::pair("<mark class=\"updateable\">updateable</mark>", "and may be changed by it: the state"),
          std::pair("scope", "- one value; * entries for all flows; else the header fields by which entries are found"),
          std::pair("output", "whether what is sent or logged depends on it")})
        out << "<dt>" << term << "</dt><dd>" << meaning << "</dd>\n";
    out << "</dl>\n";
}

void Page::table() {
    out << "<div class=\"scroll\"><table>\n<thead><tr>";
    for (StringRef column : {"variable", "type", "declared", "level", "scope", "access", "output"})
        out << "<th scope=\"col\">" << column << "</th>";
    out << "</tr></thead>\n<tbody>\n";
    // State first: of a large program only few variables are.
    std::vector<size_t> order(report.variables.size());
    std::iota(order.begin(), order.end(), 0);
    auto key = [&](size_t i) {
        return std::tuple(!report.variables[i].updateable, !report.variables[i].topLevel(), i);
    };
    llvm::sort(order, [&](size_t a, size_t b) { return key(a) < key(b); });
    for (size_t i : order) {
        const Variable &variable = report.variables[i];
        StringRef level = levelOf(variable);
        out << "<tr><td><a href=\"#v" << i << "\">" << escaped(variable.name) << "</a></td><td>"
            << escaped(variable.type) << "</td><td>" << link(variable.declared);
        if (!variable.declared.function.empty()) out << " in " << escaped(variable.declared.function);
        out << "</td><td><mark class=\"" << level << "\">" << (level == "toplevel" ? "top-level" : level)
            << "</mark></td><td>" << (variable.topLevel() ? escaped(scopeOf(variable)) : "-") << "</td><td>"
            << accessPattern(variable.reads, variable.writes) << "</td><td>" << outputOf(variable) << "</td></tr>\n";
    }
    out << "</tbody>\n</table></div>\n";
}

void Page::name(StringRef name, StringRef file, unsigned line, const std::map<unsigned, std::string> &functions) {
    auto found = byName.find(name);
    if (found == byName.end()) {
        out << escaped(name);
        return;
    }
    // The procedure that the line stands in: the last that begins before.
    auto after = functions.upper_bound(line);
    StringRef function = after == functions.begin() ? StringRef() : StringRef(std::prev(after)->second);
    const Variable *best = nullptr;
    size_t number = 0;
    for (size_t i : found->second) {
        const Variable &one = report.variables[i];
        bool here = one.declared.file == file && one.declared.function == function;
        if (!one.declared.function.empty() && !here) continue;
        // What is declared within a procedure hides what is declared outside.
        if (!best || !one.declared.function.empty()) best = &one, number = i;
    }
    if (!best)
        out << escaped(name);
    else
        out << "<a class=\"name " << levelOf(*best) << "\" href=\"#v" << number << "\">" << escaped(name) << "</a>";
}

void Page::source(size_t number) {
    const File &file = files[number];
    out << "<h2 id=\"f" << number << "\">" << escaped(file.name) << "</h2>\n";
    if (!file.text) {
        out << "<p class=\"note\">The source is not at " << escaped(file.path)
            << ": it was there when the program was compiled.</p>\n";
        return;
    }
    std::map<unsigned, std::string> functions;
    for (const Place &begin : report.procedurePlaces)
        if (begin.file == file.name) functions[begin.line] = begin.function;
    const std::set<unsigned> &reasonLines = passed[file.name];
    out << "<pre>";
    unsigned line = 0;
    for (const std::vector<Piece> &pieces : cutSource(file.text->getBuffer())) {
        ++line;
        out << "<span class=\"line" << (reasonLines.count(line) ? " reason" : "") << "\" id=\"f" << number << "-"
            << line << "\"><a class=\"number\" href=\"#f" << number << "-" << line << "\">" << line << "</a>";
        for (const Piece &piece : pieces)
            if (piece.isName)
                name(piece.text, file.name, line, functions);
            else
                out << escaped(piece.text);
        out << "\n</span>";
        // What stands behind a procedure's end may be in no program: a brace in the first column ends one.
        if (!pieces.empty() && pieces.front().text.starts_with("}")) functions.try_emplace(line + 1, "");
    }
    out << "</pre>\n";
}

void Page::sources() {
    for (size_t i = 0; i < files.size(); ++i) source(i);
}

void Page::reasons() {
    out << "<aside aria-label=\"Reasons\" aria-live=\"polite\">\n<p class=\"note\">Click on a coloured name, or on a "
           "line "
           "number in colour, for the reasons; Escape closes them.</p>\n";
    for (size_t i = 0; i < report.variables.size(); ++i) {
        const Variable &variable = report.variables[i];
        StringRef level = levelOf(variable);
        out << "<section id=\"v" << i << "\">\n<h2>" << escaped(variable.name) << "</h2>\n<p>" << escaped(variable.type)
            << ", " << link(variable.declared) << ": <mark class=\"" << level << "\">"
            << (level == "toplevel" ? "top-level" : level) << "</mark></p>\n";
        if (variable.unread) out << "<p>Nothing reads it but to update it.</p>\n";
        if (variable.why.empty())
            out << (variable.topLevel() ? "<p>Code that processes packets uses it and never changes it.</p>\n"
                                        : "<p>No code that processes packets uses it.</p>\n");
        if (!variable.why.empty()) {
            out << "<ol>\n";
            for (const Step &step : variable.why) {
                out << "<li>" << link(step.place);
                if (!step.place.function.empty()) out << " in " << escaped(step.place.function);
                out << ": " << escaped(step.what) << "</li>\n";
            }
            out << "</ol>\n";
        }
        out << "</section>\n";
    }
    out << "</aside>\n";
}

void Page::write() {
    header();
    out << "<main>\n";
    table();
    out << "<div class=\"sides\">\n<div>\n";
    sources();
    out << "</div>\n";
    reasons();
    out << "</div>\n</main>\n<script>\n" << page::js << "</script>\n</body>\n</html>\n";
}

} // namespace

void writePage(const StateReport &report, raw_ostream &out) { Page(report, out).write(); }

} // namespace catena
