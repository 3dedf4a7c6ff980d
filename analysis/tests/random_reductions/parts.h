// What random network functions are made of.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace catena::random {

/// One kind of configuration with its use: templates of C and of the lines that configure it.
struct Part {
    /// C with these functions: `@begin()` before the configuration is read, `@configure(number, word)` for a line of
    /// it,
    /// `@check(packet, length)` for a packet (0 goes on, 1 accepts, 2 drops), `@end()`, which prints what is left.
    std::string text;
    /// A line of configuration without the part's name; there are up to `most` of them.
    std::string line;
    unsigned most;
};

/// Parts whose configuration lies in variables and arrays.
std::vector<Part> flatParts();
/// Parts whose configuration hangs on pointers: lists, tables, trees, functions.
std::vector<Part> linkedParts();
/// Parts that keep state beside their configuration.
std::vector<Part> statefulParts();

/// Conditions on packets, actions and the like, and what differs from program to program.
std::map<std::string, std::string> rules();

} // namespace catena::random
