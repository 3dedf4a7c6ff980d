// A function in C++20.
#include <catena/nf.h>

namespace {

void process(void *, catena_context *cx, catena_packet *const *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        catena_log(cx, CATENA_DEBUG, "%u bytes", packets[i]->len);
        catena_pass(cx, packets[i]);
    }
}

} // namespace

CATENA_NF(catena_nf, .flags = 0, .name = "pass", .summary = "passes all", .reasons = nullptr, .init = nullptr,
          .process = process, .tick = nullptr, .finish = nullptr, .release = nullptr, .take_over = nullptr, .prepare = nullptr);
