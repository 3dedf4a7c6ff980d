// One pass from left to right; what a rule or an alternative holds is expanded in its turn.
#include "grammar.h"

#include <cstdlib>

namespace catena::random {

namespace {

/// Return where the alternatives that begin at `at` end, and where they are parted, on their own level.
std::vector<size_t> borders(const std::string &text, size_t at) {
    std::vector<size_t> found{at};
    unsigned level = 1;
    for (size_t i = at + 2; i + 1 < text.size(); ++i) {
        std::string two = text.substr(i, 2);
        if (two == "(?") ++level;
        if (two == "?|" && level == 1) found.push_back(i);
        if (two == "?)" && --level == 0) {
            found.push_back(i);
            return found;
        }
    }
    abort();
}

} // namespace

std::string Grammar::expand(const std::string &text, const std::string &prefix) {
    std::string made;
    for (size_t i = 0; i < text.size(); ++i) {
        std::string two = text.substr(i, 2);
        if (two == "(?") {
            auto at = borders(text, i);
            size_t choice = depth > deepest ? 0 : below(static_cast<unsigned>(at.size() - 1));
            made += expand(text.substr(at[choice] + 2, at[choice + 1] - at[choice] - 2), prefix);
            i = at.back() + 1;
        } else if (two == "<<" && text.find(">>", i) != std::string::npos &&
                   rules.count(text.substr(i + 2, text.find(">>", i) - i - 2))) {
            size_t end = text.find(">>", i);
            ++depth;
            made += expand(rules.at(text.substr(i + 2, end - i - 2)), prefix);
            --depth;
            i = end + 1;
        } else if (two == "#(") {
            size_t middle = text.find('-', i), end = text.find(')', i);
            unsigned low = static_cast<unsigned>(std::stoul(text.substr(i + 2, middle - i - 2)));
            unsigned high = static_cast<unsigned>(std::stoul(text.substr(middle + 1, end - middle - 1)));
            made += std::to_string(low + below(high - low + 1));
            i = end;
        } else if (text[i] == '@') {
            made += prefix;
        } else {
            made += text[i];
        }
    }
    return made;
}

void Grammar::settle(const std::string &name) { rules[name] = expand(rules.at(name), ""); }

} // namespace catena::random
