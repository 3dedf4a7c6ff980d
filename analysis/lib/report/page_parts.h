// The style and the script of the page, carried within the program.
#pragma once

namespace catena::page {

extern const char *const css;
extern const char *const js;

} // namespace catena::page
