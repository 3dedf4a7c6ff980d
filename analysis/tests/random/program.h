// Random packet loops in C, each with pointers of all kinds, that end and stay within their memory.
#pragma once

#include <cstdint>
#include <string>

namespace catena::random {

/// Return the text of a program. Its names begin with `prefix`, its main procedure is `<prefix>main`; several go into
/// one file behind `preamble()`.
std::string program(uint64_t seed, const std::string &prefix);
std::string preamble();

} // namespace catena::random
