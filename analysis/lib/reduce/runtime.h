// Sources in C that are compiled with the programs, carried within the library: the files in `runtime/`.
#pragma once

namespace catena::runtime {

extern const char *const snapshot;
extern const char *const enter;

/// A file by its name.
struct Source {
    const char *name, *text;
};

/// What a reduced program is linked with to be a function of a chain.
extern const Source adapter[];
extern const unsigned adapterCount;

} // namespace catena::runtime
