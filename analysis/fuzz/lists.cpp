// Fuzzing the lists that users give: whatever stands in a file, reading it ends in a list or in an error with its
// place.
#include "library/effects.h"
#include "library/packet_functions.h"
#include <cstdlib>

using namespace catena;

namespace {

/// An error must say where it is.
void check(llvm::Error error) {
    if (error && !llvm::StringRef(toString(std::move(error))).starts_with("input:")) abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llvm::StringRef text(reinterpret_cast<const char *>(data), size);
    LibraryEffects library;
    check(library.add("input", text));
    // What was read is what is found again.
    for (llvm::StringRef name : library.names())
        if (!library.find(name)) abort();
    PacketFunctions functions;
    check(functions.add("input", text));
    return 0;
}
