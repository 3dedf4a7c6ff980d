// Just enough of C's lexical rules (C17, 6.4) to tell names from what only looks like them.
#include "report/source_text.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace catena {

std::vector<std::vector<Piece>> cutSource(StringRef text) {
    std::vector<std::vector<Piece>> lines;
    bool inComment = false;
    SmallVector<StringRef, 0> all;
    text.split(all, '\n');
    if (!all.empty() && all.back().empty()) all.pop_back();
    for (StringRef line : all) {
        line.consume_back("\r");
        std::vector<Piece> pieces;
        size_t begin = 0, at = 0;
        auto between = [&] {
            if (at > begin) pieces.push_back({line.slice(begin, at), false});
            begin = at;
        };
        while (at < line.size()) {
            StringRef rest = line.substr(at);
            if (inComment) {
                size_t end = rest.find("*/");
                inComment = end == StringRef::npos;
                at = inComment ? line.size() : at + end + 2;
            } else if (rest.starts_with("//")) {
                at = line.size();
            } else if (rest.starts_with("/*")) {
                inComment = true;
                at += 2;
            } else if (rest.front() == '"' || rest.front() == '\'') {
                char quote = rest.front();
                for (++at; at < line.size() && line[at] != quote; ++at)
                    if (line[at] == '\\') ++at;
                at = std::min(at + 1, line.size());
            } else if (isAlpha(rest.front()) || rest.front() == '_') {
                between();
                at += rest.take_while([](char c) { return isAlnum(c) || c == '_'; }).size();
                pieces.push_back({line.slice(begin, at), true});
                begin = at;
            } else if (isDigit(rest.front())) {
                // The letters in 0xff and 10UL are none of a name.
                at += rest.take_while([](char c) { return isAlnum(c) || c == '_'; }).size();
            } else {
                ++at;
            }
        }
        between();
        lines.push_back(std::move(pieces));
    }
    return lines;
}

} // namespace catena
