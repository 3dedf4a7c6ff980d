// The text of source files, line by line, and the names in it.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <vector>

namespace catena {

/// A piece of a line: a name, or anything between names (comments and strings among it).
struct Piece {
    llvm::StringRef text;
    bool isName;
};

/// Cut the text of a source file in C or C++ into lines and these into pieces.
std::vector<std::vector<Piece>> cutSource(llvm::StringRef text);

} // namespace catena
