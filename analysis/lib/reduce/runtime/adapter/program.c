/* The program on its own stack. What would end the process ends the program only. */
#define _GNU_SOURCE
#include "adapter.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 8 << 20, PAGE = 4096, MOST_EXITS = 64, WRONG_CONFIGURATION = 78 };

static ucontext_t catena_side, program_side;
static char *stack;
static char **words;
static bool ended, aborted;
static int status;
static char how[200];
static void (*at_exit[MOST_EXITS])(void);
static unsigned at_exit_count;

/* ---- How it ends */

static _Noreturn void end(void)
{
    /* What a process that ends would have written. */
    fflush(NULL);
    ended = true;
    setcontext(&catena_side);
    __builtin_trap();
}

_Noreturn void REPLACES(exit)(int code)
{
    status = code;
    while (at_exit_count) at_exit[--at_exit_count]();
    end();
}

_Noreturn void REPLACES(_exit)(int code)
{
    status = code;
    end();
}

_Noreturn void REPLACES(_Exit)(int code) { REPLACES(_exit)(code); }

_Noreturn void REPLACES(abort)(void) { program_refuse("has aborted"); }

_Noreturn void REPLACES(__assert_fail)(const char *what, const char *file, unsigned line, const char *function)
{
    fprintf(stderr, "%s:%u: %s: assertion `%s` failed\n", file, line, function, what);
    program_refuse("has aborted");
}

int REPLACES(atexit)(void (*function)(void))
{
    if (at_exit_count == MOST_EXITS) return -1;
    at_exit[at_exit_count++] = function;
    return 0;
}

_Noreturn void program_refuse(const char *why)
{
    aborted = true;
    snprintf(how, sizeof how, "%s", why);
    end();
}

static void say(int code, const char *format, va_list list)
{
    fprintf(stderr, "%s: ", catena_program_name);
    if (format) vfprintf(stderr, format, list);
    fprintf(stderr, code ? ": %s\n" : "\n", strerror(code));
}

_Noreturn void REPLACES(err)(int result, const char *format, ...)
{
    int code = errno;
    va_list list;
    va_start(list, format);
    say(code, format, list);
    va_end(list);
    REPLACES(exit)(result);
}

_Noreturn void REPLACES(errx)(int result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(0, format, list);
    va_end(list);
    REPLACES(exit)(result);
}

_Noreturn void REPLACES(verr)(int result, const char *format, va_list list)
{
    say(errno, format, list);
    REPLACES(exit)(result);
}

_Noreturn void REPLACES(verrx)(int result, const char *format, va_list list)
{
    say(0, format, list);
    REPLACES(exit)(result);
}

void REPLACES(error)(int result, int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(code, format, list);
    va_end(list);
    if (result) REPLACES(exit)(result);
}

/* ---- What is Catena's, not the program's: signals, and the process itself */

/* Signals end Catena; the program then comes to the end of its packets. */
void (*REPLACES(signal)(int number, void (*handler)(int)))(int)
{
    (void)number, (void)handler;
    return SIG_DFL;
}

int REPLACES(sigaction)(int number, const struct sigaction *action, struct sigaction *old)
{
    (void)number, (void)action;
    if (old) memset(old, 0, sizeof *old);
    return 0;
}

#define REFUSES(name)                                                                                                  \
    _Noreturn void catena_replaced_##name(void) { program_refuse("calls " #name ", which a function in a chain cannot do, and ended"); }
REFUSES(fork)
REFUSES(vfork)
REFUSES(daemon)
REFUSES(execve)
REFUSES(execv)
REFUSES(execvp)
REFUSES(execl)
REFUSES(execlp)
REFUSES(pthread_create)
REFUSES(alarm)
REFUSES(setitimer)
REFUSES(timer_create)
REFUSES(setuid)
REFUSES(setgid)
REFUSES(seteuid)
REFUSES(setegid)
REFUSES(setreuid)
REFUSES(setregid)
REFUSES(setresuid)
REFUSES(setresgid)
REFUSES(setgroups)
REFUSES(initgroups)
REFUSES(chroot)
REFUSES(chdir)
REFUSES(dup2)
REFUSES(setrlimit)

/* ---- Its command line */

/* Fill the names in braces in from the arguments of the chain file. What is not named has a name that cannot be opened, so
 * that the program itself says what it misses, if it does. */
static char *fill(struct catena_context *cx, const char *word)
{
    char *filled = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&filled, &size);
    if (!to) return NULL;
    while (*word) {
        const char *close = *word == '{' ? strchr(word, '}') : NULL;
        char name[64];
        if (close && close - word - 1 < (ptrdiff_t)sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(close - word - 1), word + 1);
            const char *given = catena_arg(cx, name);
            fprintf(to, given ? "%s" : "/dev/null/%s", given ? given : name);
            word = close + 1;
        } else {
            fputc(*word++, to);
        }
    }
    return fclose(to) == 0 ? filled : NULL;
}

static bool fill_words(struct catena_context *cx)
{
    words = calloc(catena_program_word_count + 2, sizeof *words);
    if (words) words[0] = strdup(catena_program_name);
    bool all = words && words[0];
    for (uint64_t i = 0; i < catena_program_word_count && all; i++)
        all = (words[i + 1] = fill(cx, catena_program_words[i])) != NULL;
    return all;
}

/* ---- The coroutine */

static void run(void)
{
    /* Another program in this process may have read its command line: begin anew. */
    optind = 0;
    REPLACES(exit)(catena_program_main((int)catena_program_word_count + 1, words));
}

bool program_start(struct catena_context *cx)
{
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) stack = NULL;
    /* What overflows the stack must not write into what lies below it. */
    if (!stack || mprotect(stack, PAGE, PROT_NONE) != 0 || !fill_words(cx) || getcontext(&program_side) != 0) {
        catena_fail(cx, "there is no memory for the program's stack");
        return false;
    }
    program_side.uc_stack.ss_sp = stack;
    program_side.uc_stack.ss_size = STACK;
    program_side.uc_link = NULL;
    makecontext(&program_side, run, 0);
    program_resume();
    return true;
}

void program_resume(void)
{
    if (!ended) swapcontext(&catena_side, &program_side);
}

void program_wait(void) { swapcontext(&program_side, &catena_side); }

bool program_has_ended(void) { return ended; }

bool program_ended_well(void) { return ended && !aborted && status == 0; }

const char *program_end(void)
{
    if (aborted) return how;
    if (status == WRONG_CONFIGURATION)
        snprintf(how, sizeof how, "finds another configuration than it was reduced for (catena reduce makes it anew), and "
                                  "ended");
    else
        snprintf(how, sizeof how, "ended with status %d", status);
    return how;
}

void program_release(void)
{
    files_close();
    for (char **word = words; word && *word; word++) free(*word);
    free(words);
    if (stack) munmap(stack, STACK);
}
