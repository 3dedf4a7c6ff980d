// Taking lists apart.
#include "library/list_file.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace catena {

std::vector<ListLine> parseList(StringRef text) {
    std::vector<ListLine> lines;
    unsigned number = 0;
    while (!text.empty()) {
        StringRef line;
        std::tie(line, text) = text.split('\n');
        ++number;
        line = line.split('#').first;
        bool continues = line.starts_with(" ") || line.starts_with("\t");
        SmallVector<StringRef, 16> words;
        bool colon = line.contains(':');
        // A colon within a word (copy=1:0) is no separator: the one that counts stands before white space or the end.
        size_t at = StringRef::npos;
        for (size_t i = 0; colon && i < line.size(); ++i)
            if (line[i] == ':' && (i + 1 == line.size() || line[i + 1] == ' ')) {
                at = i;
                break;
            }
        StringRef front = at == StringRef::npos ? line : line.take_front(at);
        StringRef back = at == StringRef::npos ? StringRef() : line.drop_front(at + 1);
        front.split(words, ' ', -1, false);
        if (words.empty() && back.trim().empty()) continue;
        if (continues && !lines.empty()) {
            for (StringRef word : words) lines.back().rest.push_back(word.trim());
            continue;
        }
        ListLine parsed{number, {}, {}};
        for (StringRef word : words) parsed.words.push_back(word.trim());
        words.clear();
        back.split(words, ' ', -1, false);
        for (StringRef word : words) parsed.rest.push_back(word.trim());
        lines.push_back(std::move(parsed));
    }
    return lines;
}

Error listError(StringRef file, unsigned line, const Twine &what) {
    return createStringError(inconvertibleErrorCode(), Twine(file) + ":" + Twine(line) + ": " + what);
}

} // namespace catena
