/* The files that the program has open. A copy that goes away before its program has ended must not leave streams behind: what
 * is in their buffers would be written when Catena ends, over what others have written since. */
#define _GNU_SOURCE
#include "adapter.h"

enum { MOST_FILES = 256 };

static FILE *open_files[MOST_FILES];

static FILE *keep(FILE *file)
{
    for (unsigned i = 0; file && i < MOST_FILES; i++)
        if (!open_files[i]) {
            open_files[i] = file;
            return file;
        }
    if (file) fclose(file);
    errno = EMFILE;
    return NULL;
}

FILE *REPLACES(fopen)(const char *name, const char *mode)
{
    FILE *file = fopen(name, mode);
    return file ? keep(file) : NULL;
}

FILE *REPLACES(fopen64)(const char *name, const char *mode) { return REPLACES(fopen)(name, mode); }

FILE *REPLACES(fdopen)(int file, const char *mode)
{
    FILE *opened = fdopen(file, mode);
    return opened ? keep(opened) : NULL;
}

int REPLACES(fclose)(FILE *file)
{
    for (unsigned i = 0; i < MOST_FILES; i++)
        if (open_files[i] == file) open_files[i] = NULL;
    return fclose(file);
}

void files_close(void)
{
    for (unsigned i = 0; i < MOST_FILES; i++)
        if (open_files[i]) fclose(open_files[i]);
}
