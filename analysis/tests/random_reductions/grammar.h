// Random text by a grammar: templates with alternatives, rules by name, and numbers.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace catena::random {

/// Expands templates. In them
///
///     (?a?|b?|c?)   is one of a, b and c, which may be empty,
///     <<name>>      is what the rule of that name expands to, anew each time,
///     #(1-9)        is a number from 1 to 9,
///     @             is a prefix for names, which keeps the parts of a program apart.
class Grammar {
public:
    Grammar(uint64_t seed, std::map<std::string, std::string> rules) : random(seed), rules(std::move(rules)) {}

    std::string expand(const std::string &text, const std::string &prefix);
    /// Let a rule be what one expansion of it comes to, from here on.
    void settle(const std::string &name);
    /// Return a number from 0 to below `limit`.
    unsigned below(unsigned limit) { return static_cast<unsigned>(random() % limit); }

private:
    /// Deeper than this, rules take their first alternative.
    static constexpr unsigned deepest = 12;

    std::mt19937_64 random;
    std::map<std::string, std::string> rules;
    unsigned depth = 0;
};

} // namespace catena::random
