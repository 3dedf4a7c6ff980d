// The lists that say what the analysis knows of libraries: lines of words, `#` begins a comment.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace catena {

namespace lists {
/// The lists that come with the program; see the files of these names in `lists/`.
extern const char *const c_library;
extern const char *const cxx_library;
extern const char *const packet_functions;
extern const char *const header_fields;
} // namespace lists

/// A line of a list.
struct ListLine {
    unsigned number;
    /// Words before the colon, or all words if there is none.
    std::vector<llvm::StringRef> words;
    /// Words after the colon, those of continued lines too.
    std::vector<llvm::StringRef> rest;
};

/// Take a list apart; a line that begins with white space continues the one before. The words point into `text`.
std::vector<ListLine> parseList(llvm::StringRef text);

/// Return an error about a line of a list, as `FILE:LINE: what`.
llvm::Error listError(llvm::StringRef file, unsigned line, const llvm::Twine &what);

} // namespace catena
