/* What the instrumentation of a traced program calls.
 *
 * The program runs as it would, and the runtime keeps a list of its objects: global and static variables, locals of
 * procedures that may hold the packet loop, blocks of the heap. Between the reception of one packet and the request for
 * the next it notes which of them are read and written; at each such boundary it follows all pointers, so that it knows
 * which variables lead to an object that was written. */
#ifndef CATENA_TRACE_H
#define CATENA_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A variable of the source, as debug information has it. */
struct catena_variable {
    const char *name, *file, *function;
    uint32_t line;
    /* 0 global, 1 static, 2 local, 3 parameter. */
    uint32_t kind;
};

/* A global or static variable in memory. `variable` is its place in the program's table. */
struct catena_global {
    void *address;
    uint64_t size;
    uint64_t variable;
};

/* The program's variables; called once, before its own code runs. */
void catena_trace_program(const struct catena_variable *variables, uint32_t variable_count,
                          const struct catena_global *globals, uint32_t global_count);

/* A procedure begins and ends: what was made in between is gone then. */
uint64_t catena_trace_enter(void);
void catena_trace_leave(uint64_t mark);
/* A cell on the stack comes into being; `variable` is UINT32_MAX for one that the source does not name. */
void catena_trace_local(void *address, uint64_t size, uint32_t variable);

void catena_trace_read(const void *address, uint64_t size);
void catena_trace_write(const void *address, uint64_t size);
/* What is reachable from an argument is read by the library. */
void catena_trace_read_deep(const void *address);

/* A library function gets pointers, and returns: what has changed then, it wrote. */
uint64_t catena_trace_lend(void);
void catena_trace_lend_object(const void *address);
void catena_trace_take_back(uint64_t mark);

/* A packet is asked for; the answer is positive, or not 0 for a pointer, if there is one. What asking returned goes
 * with the answer. */
uint64_t catena_trace_receiving(void);
void catena_trace_received(int64_t answer, uint64_t asked);
/* A library is given the function that it calls with every packet; and that function begins and ends. */
void catena_trace_calls_back(const void *function);
void catena_trace_called(const void *function);
void catena_trace_returned(const void *function);

/* The allocators of a traced program: new memory is zero and freed memory is not given out again, so that a stale
 * pointer never looks as if it led to another object. */
void *catena_trace_malloc(size_t size);
void *catena_trace_calloc(size_t count, size_t size);
void *catena_trace_realloc(void *old, size_t size);
void *catena_trace_reallocarray(void *old, size_t count, size_t size);
void *catena_trace_aligned_alloc(size_t alignment, size_t size);
int catena_trace_posix_memalign(void **result, size_t alignment, size_t size);
char *catena_trace_strdup(const char *text);
char *catena_trace_strndup(const char *text, size_t size);
void catena_trace_free(void *block);

/* Write what was seen so far to a file: a line `packets N`, then one for every variable, with tabs: kind, line, file,
 * function, name, and the words `read`, `written` and `leads` (to an object that was written) as they hold. Called
 * by itself when the program ends, with the file that CATENA_TRACE names (default: trace.tsv). Programs that do not end
 * by themselves do when they receive more packets than CATENA_TRACE_PACKETS. */
void catena_trace_report(int file);

#ifdef __cplusplus
}
#endif
#endif
