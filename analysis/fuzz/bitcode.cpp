// Fuzzing the reading of programs: whatever stands in a file, it is read or refused with a message that names the file.
//
// LLVM's own reader crashes on some hostile files. The analysis lets it: the crash is caught, in the same process, and
// becomes an error, after which nothing of what was half read is touched again. A process of its own for the reader
// would have to hand over the program by writing it out, and every program would be read twice. So this target looks
// for what is wrong around LLVM's reader, not in it.
#include "program/bitcode.h"
#include <cstdio>
#include <cstdlib>
#include <sanitizer/allocator_interface.h>
#include <unistd.h>

using namespace catena;

// The sanitizer's own ends the process at once where there is not enough memory. Outside of it that is an exception
// which nothing in LLVM catches, so it ends in `abort`, from which the reading of programs recovers.
//
// The reading bounds LLVM's memory by the size of the address space. The sanitizer's allocator keeps all of its own
// from the start, so that bound stops no small allocation here; this one does, and is lower, since what LLVM leaves
// half built when it is stopped stays until the end.
static constexpr size_t most = 256ul << 20;
static constexpr unsigned between = 4096;
static size_t before;

void *operator new(size_t size) {
    static unsigned allocations;
    if (++allocations % between == 0 && __sanitizer_get_current_allocated_bytes() > before + most) abort();
    if (void *memory = malloc(size)) return memory;
    abort();
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char name[] = "/tmp/catena-fuzz-XXXXXX";
    int file = mkstemp(name);
    if (file < 0) abort();
    bool whole = write(file, data, size) == static_cast<ssize_t>(size);
    close(file);
    if (whole) {
        before = __sanitizer_get_current_allocated_bytes();
        llvm::LLVMContext context;
        auto program = readProgram({name}, context);
        if (!program && !llvm::StringRef(toString(program.takeError())).starts_with(name)) abort();
    }
    unlink(name);
    return 0;
}
