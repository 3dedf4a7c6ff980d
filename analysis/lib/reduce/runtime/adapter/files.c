/* The files that the program has open.
 *
 * A copy that goes away before its program has ended must not leave streams behind: what is in their buffers would be written
 * when Catena ends, over what others have written since. And a copy that will take another one's place goes on with the files
 * that this one writes, instead of emptying them. */
#define _GNU_SOURCE
#include "adapter.h"

#include <pthread.h>
#include <string.h>

enum { MOST_FILES = 256 };

static struct entry {
    FILE *file;
    char *name;
    /* Whether it is another copy's as long as that is not replaced. */
    bool borrowed;
} entries[MOST_FILES];
static const struct copy *before;
/* The copy that comes next asks from another thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *find(const FILE *file)
{
    for (unsigned i = 0; i < MOST_FILES; i++)
        if (entries[i].file == file) return &entries[i];
    return NULL;
}

static FILE *keep(FILE *file, const char *name, bool borrowed)
{
    pthread_mutex_lock(&lock);
    struct entry *place = find(NULL);
    if (place) *place = (struct entry){file, name ? strdup(name) : NULL, borrowed};
    pthread_mutex_unlock(&lock);
    if (place) return file;
    if (!borrowed) fclose(file);
    errno = EMFILE;
    return NULL;
}

void files_go_on(const struct copy *from) { before = from; }

FILE *files_written(const char *name)
{
    FILE *file = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MOST_FILES; i++)
        if (entries[i].file && entries[i].name && strcmp(entries[i].name, name) == 0) file = entries[i].file;
    pthread_mutex_unlock(&lock);
    return file;
}

void files_taken(void)
{
    for (unsigned i = 0; i < MOST_FILES; i++) entries[i].borrowed = false;
    before = NULL;
}

FILE *REPLACES(fopen)(const char *name, const char *mode)
{
    bool writes = *mode == 'w' || *mode == 'a';
    FILE *file = before && writes ? before->written(name) : NULL;
    if (file) return keep(file, name, true);
    file = fopen(name, mode);
    return file ? keep(file, writes ? name : NULL, false) : NULL;
}

FILE *REPLACES(fopen64)(const char *name, const char *mode) { return REPLACES(fopen)(name, mode); }

FILE *REPLACES(fdopen)(int file, const char *mode)
{
    FILE *opened = fdopen(file, mode);
    return opened ? keep(opened, NULL, false) : NULL;
}

int REPLACES(fclose)(FILE *file)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = file ? find(file) : NULL;
    bool borrowed = entry && entry->borrowed;
    if (entry) {
        free(entry->name);
        *entry = (struct entry){NULL, NULL, false};
    }
    pthread_mutex_unlock(&lock);
    return borrowed ? fflush(file) : fclose(file);
}

void files_close(void)
{
    for (unsigned i = 0; i < MOST_FILES; i++) {
        if (entries[i].file && !entries[i].borrowed) fclose(entries[i].file);
        free(entries[i].name);
    }
}
