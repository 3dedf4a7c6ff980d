// Sources in C that are compiled with the programs, carried within the library: the files in `runtime/`.
#pragma once

namespace catena::runtime {

extern const char *const snapshot;
extern const char *const enter;

} // namespace catena::runtime
