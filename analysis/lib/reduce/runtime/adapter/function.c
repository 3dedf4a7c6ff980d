/* The table that Catena loads, and copies of this library.
 *
 * A program keeps its state in globals, and Catena asks for instances that share nothing: each instance is a copy of the
 * library that is loaded for it alone. What `catena check` tries then leaves nothing behind either. */
#define _GNU_SOURCE
#include "adapter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct catena_function catena_nf;

/* ---- In the copy */

static bool start(struct catena_context *cx)
{
    if (!program_start(cx)) return false;
    if (!program_has_ended()) return true;
    catena_fail(cx, "the program %s before it received a packet", program_end());
    return false;
}

static bool finish(struct catena_context *cx)
{
    packets_end(cx);
    const char *unsent = packets_unsent();
    if (unsent)
        catena_fail(cx, "%s", unsent);
    else if (!program_ended_well())
        catena_fail(cx, "the program %s", program_end());
    return !unsent && program_ended_well();
}

CATENA_VISIBLE const struct copy catena_copy = {start, packets_process, finish, program_release};

/* ---- In the library that Catena has loaded */

struct instance {
    void *library;
    int file;
    const struct copy *copy;
};

/* Write the library that this code is in to a file without a name. */
static int copy_file(struct catena_context *cx)
{
    Dl_info own;
    struct stat status;
    if (!dladdr(&catena_nf, &own) || !own.dli_fname) return -1;
    int from = open(own.dli_fname, O_RDONLY | O_CLOEXEC), to = memfd_create("catena", MFD_CLOEXEC);
    off_t at = 0;
    if (from >= 0 && to >= 0 && fstat(from, &status) == 0) {
        char buffer[65536];
        for (ssize_t got; (got = read(from, buffer, sizeof buffer)) > 0 && write(to, buffer, (size_t)got) == got;)
            at += got;
    }
    if (from < 0 || to < 0 || at == 0 || at != status.st_size) {
        catena_fail(cx, "%s cannot be copied for an instance of its own: %s", own.dli_fname, strerror(errno));
        if (to >= 0) close(to);
        to = -1;
    }
    if (from >= 0) close(from);
    return to;
}

static void release(void *self)
{
    struct instance *instance = self;
    if (instance->copy) instance->copy->release();
    if (instance->library) dlclose(instance->library);
    if (instance->file >= 0) close(instance->file);
    free(instance);
}

static int init(struct catena_context *cx, void **self)
{
    if (cx->instances > 1) {
        catena_fail(cx, "a reduced program has one state and one set of files: run it with one worker");
        return -1;
    }
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance) return -1;
    instance->file = copy_file(cx);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", instance->file);
    if (instance->file >= 0) instance->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (instance->library) instance->copy = dlsym(instance->library, "catena_copy");
    if (instance->file >= 0 && !instance->copy) catena_fail(cx, "its copy cannot be loaded: %s", dlerror());
    if (!instance->copy || !instance->copy->start(cx)) {
        release(instance);
        return -1;
    }
    *self = instance;
    return 0;
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    ((struct instance *)self)->copy->process(cx, packets, count);
}

static int finish_instance(void *self, struct catena_context *cx)
{
    return ((struct instance *)self)->copy->finish(cx) ? 0 : -1;
}

static const char *const reasons[] = {[NOT_SENT] = "program does not send it",
                                      [TOO_LONG] = "program sends more than there is room for",
                                      [HAS_ENDED] = "program has ended", NULL};

CATENA_NF(catena_nf, .name = catena_program_name, .summary = "a reduced program", .reasons = reasons, .init = init,
          .process = process, .finish = finish_instance, .release = release);
