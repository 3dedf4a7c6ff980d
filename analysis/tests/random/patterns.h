// Procedures and variables that every random program has, and uses or not.
#pragma once

namespace catena::random {

/// Return their text: `@` stands for the program's prefix, `$` for the name of an int of struct 0 and `%` for its
/// pointer to its own kind.
const char *patterns();

} // namespace catena::random
