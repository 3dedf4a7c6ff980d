/* Calls real functions of the C library and says what they did with the memory they were given.
 *
 * Each call gets blocks; a letter for each says which argument it is, or `p` for one that only argument 0 leads to. After
 * the call, one line a thing that happened: `NAME writes N` if block N changed, `NAME stores N in M` if block M now holds
 * a pointer into block N, `NAME returns N` for a pointer to the beginning of block N, `NAME returns into N` for one behind
 * it, `NAME returns other` for one to elsewhere, `NAME calls N` if the callback in argument N ran, and `NAME gives what
 * OTHER was given` if a pointer kept by one call came out of another one. The program beside this file compares with the
 * library list.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <libgen.h>
#include <locale.h>
#include <math.h>
#include <netinet/ether.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { blocks = 4, size = 512 };
static _Alignas(16) char block[blocks][size], before[blocks][size];
static int called;
#define A block[0]
#define B block[1]
#define C block[2]
#define D block[3]

static const char *const texts[blocks] = {"one two/three", "two", "%s 7", " "};

static void prepare(void) {
    for (int i = 0; i < blocks; i++) {
        memset(block[i], 0, size);
        strcpy(block[i], texts[i]);
    }
    called = 0;
}

static void snapshot(void) { memcpy(before, block, sizeof block); }

static int blockOf(const void *pointer) {
    for (int i = 0; i < blocks; i++)
        if ((const char *)pointer >= block[i] && (const char *)pointer < block[i] + size) return i;
    return -1;
}

static void report(const char *name, const char *arguments, int callback, int pointer, const void *result) {
    for (int i = 0; arguments[i]; i++) {
        if (!memcmp(before[i], block[i], size)) continue;
        printf("%s writes %c\n", name, arguments[i]);
        for (int at = 0; at + 8 <= size; at += 4) {
            const void *held;
            memcpy(&held, block[i] + at, sizeof held);
            if (!memcmp(before[i] + at, block[i] + at, 8) || blockOf(held) < 0) continue;
            if (blockOf(held) < (int)strlen(arguments))
                printf("%s stores %c in %c\n", name, arguments[blockOf(held)], arguments[i]);
        }
    }
    if (called) printf("%s calls %d\n", name, callback);
    if (!pointer || !result) return;
    int in = blockOf(result);
    if (in < 0 || in >= (int)strlen(arguments))
        printf("%s returns other\n", name);
    else
        printf("%s returns %s%c\n", name, result == (const void *)block[in] ? "" : "into ", arguments[in]);
}

#define POINTER(expression) __builtin_classify_type(expression) == 5
/* TRY(function, which argument the blocks are, set-up, call) */
#define RUN(name, arguments, callback, setup, call) \
    do { \
        prepare(); \
        setup; \
        snapshot(); \
        __typeof__(call) result = call; \
        report(#name, arguments, callback, POINTER(result), (const void *)(unsigned long)result); \
    } while (0)
#define TRY(name, arguments, setup, call) RUN(name, arguments, -1, setup, call)
#define VOID(name, arguments, callback, setup, call) RUN(name, arguments, callback, setup, (call, 0))

static int compare(const void *one, const void *two) {
    called = 1;
    return *(const int *)one - *(const int *)two;
}
static int compareWith(const void *one, const void *two, void *given) {
    (void)given;
    return compare(one, two);
}
static void visit(const void *node, VISIT which, int depth) {
    (void)node, (void)which, (void)depth;
    called = 1;
}
static void freeNothing(void *key) {
    (void)key;
    called = 1;
}
static void handle(int number) {
    (void)number;
    called = 1;
}
static void once(void) { called = 1; }
static void *returnGiven(void *given) {
    called = 1;
    return given;
}

static void texts_and_blocks(void) {
    TRY(memcpy, "01", , memcpy(A, B, 8));
    TRY(memmove, "01", , memmove(A, B, 8));
    TRY(mempcpy, "01", , mempcpy(A, B, 8));
    TRY(memccpy, "01", , memccpy(A, B, 'w', 8));
    VOID(bcopy, "01", -1, , bcopy(A, B, 8));
    TRY(memset, "0", , memset(A, 7, 8));
    TRY(strcpy, "01", , strcpy(A, B));
    TRY(strncpy, "01", , strncpy(A, B, 8));
    TRY(stpcpy, "01", , stpcpy(A, B));
    TRY(stpncpy, "01", , stpncpy(A, B, 2));
    TRY(strcat, "01", , strcat(A, B));
    TRY(strncat, "01", , strncat(A, B, 2));
    TRY(swab, "01", , (swab(A, B, 8), 0));
    TRY(strxfrm, "01", , strxfrm(A, B, 8));
    TRY(wcstombs, "01", wcscpy((wchar_t *)B, L"wide"), wcstombs(A, (wchar_t *)B, 8));
    TRY(mbstowcs, "01", , mbstowcs((wchar_t *)A, B, 8));
    TRY(memcmp, "01", , memcmp(A, B, 8));
    TRY(strcmp, "01", , strcmp(A, B));
    TRY(strcasecmp, "01", , strcasecmp(A, B));
    TRY(strcoll, "01", , strcoll(A, B));
    TRY(strspn, "01", , strspn(A, B));
    TRY(strlen, "0", , strlen(A));
    TRY(atoi, "0", , atoi(A));
    TRY(strchr, "0", , strchr(A, 't'));
    TRY(strrchr, "0", , strrchr(A, 't'));
    TRY(memchr, "0", , memchr(A, 't', 16));
    TRY(memrchr, "0", , memrchr(A, 't', 16));
    TRY(rawmemchr, "0", , rawmemchr(A, 't'));
    TRY(strchrnul, "0", , strchrnul(A, 't'));
    TRY(index, "0", , index(A, 't'));
    TRY(rindex, "0", , rindex(A, 't'));
    TRY(__xpg_basename, "0", , __xpg_basename(A));
    TRY(__xpg_basename, "0", strcpy(A, "one/"), __xpg_basename(A));
    TRY(dirname, "0", , dirname(A));
    TRY(dirname, "0", strcpy(A, "one"), dirname(A));
    TRY(strstr, "01", , strstr(A, B));
    TRY(strcasestr, "01", , strcasestr(A, B));
    TRY(strpbrk, "01", , strpbrk(A, B));
    TRY(memmem, "02", , memmem(A, 16, B, 3));
    TRY(strtok, "01", strcpy(B, " "), strtok(A, B));
    if (strtok(NULL, B) == A + 4) printf("strtok gives what strtok was given\n");
    TRY(strtok_r, "012", strcpy(B, " "), strtok_r(A, B, (char **)C));
    TRY(strsep, "01p", (*(char **)A = C, strcpy(B, " ")), strsep((char **)A, B));
    TRY(strtol, "01", strcpy(A, "12 "), strtol(A, (char **)B, 10));
    TRY(strtoul, "01", strcpy(A, "12 "), strtoul(A, (char **)B, 10));
    TRY(strtoll, "01", strcpy(A, "12 "), strtoll(A, (char **)B, 10));
    TRY(strtod, "01", strcpy(A, "12 "), strtod(A, (char **)B) > 0);
    TRY(strdup, "0", , strdup(A));
    TRY(strndup, "0", , strndup(A, 3));
    TRY(strerror, "", , strerror(3));
    TRY(strerror_r, "1", , strerror_r(3, A, 64));
    TRY(strerror_r, "1", , strerror_r(12345, A, 64));
    TRY(strsignal, "", , strsignal(3));
    TRY(setlocale, "1", , setlocale(LC_ALL, NULL));
    TRY(localeconv, "", , localeconv());
}

static void numbers_and_times(void) {
    TRY(frexp, "1", , frexp(5, (int *)A) > 0);
    TRY(modf, "1", , modf(5.5, (double *)A) > 0);
    TRY(rand_r, "0", , rand_r((unsigned *)A));
    TRY(time, "0", , time((time_t *)A));
    TRY(gettimeofday, "0", , gettimeofday((struct timeval *)A, NULL));
    TRY(clock_gettime, "1", , clock_gettime(CLOCK_REALTIME, (struct timespec *)A));
    TRY(clock_getres, "1", , clock_getres(CLOCK_REALTIME, (struct timespec *)A));
    TRY(getrusage, "1", , getrusage(RUSAGE_SELF, (struct rusage *)A));
    TRY(getrlimit, "1", , getrlimit(RLIMIT_NOFILE, (struct rlimit *)A));
    TRY(uname, "0", , uname((struct utsname *)block));
    TRY(mktime, "0", (memset(A, 0, size), ((struct tm *)A)->tm_mday = 40), mktime((struct tm *)A));
    TRY(timegm, "0", (memset(A, 0, size), ((struct tm *)A)->tm_mday = 40), timegm((struct tm *)A));
    TRY(localtime, "0", memset(A, 0, size), localtime((time_t *)A));
    TRY(gmtime, "0", memset(A, 0, size), gmtime((time_t *)A));
    TRY(ctime, "0", memset(A, 0, size), ctime((time_t *)A));
    TRY(asctime, "0", memset(A, 0, size), asctime((struct tm *)A));
    TRY(localtime_r, "01", memset(A, 0, size), localtime_r((time_t *)A, (struct tm *)B));
    TRY(gmtime_r, "01", memset(A, 0, size), gmtime_r((time_t *)A, (struct tm *)B));
    TRY(ctime_r, "01", memset(A, 0, size), ctime_r((time_t *)A, B));
    TRY(asctime_r, "01", memset(A, 0, size), asctime_r((struct tm *)A, B));
    TRY(strftime, "023", (memset(C, 0, size), strcpy(B, "%H:%M")), strftime(A, 64, B, (struct tm *)C));
    TRY(strptime, "012", (strcpy(A, "12:30"), strcpy(B, "%H:%M"), memset(C, 0, size)), strptime(A, B, (struct tm *)C));
    TRY(nanosleep, "0", memset(A, 0, size), nanosleep((struct timespec *)A, NULL));
}

static void texts_of_values(void) {
    TRY(sprintf, "012", , sprintf(A, "%s", C));
    TRY(snprintf, "023", strcpy(B, "%s"), snprintf(A, 64, B, C));
    TRY(asprintf, "01", , asprintf((char **)A, "%d", 7));
    TRY(sscanf, "012", (strcpy(A, "7"), strcpy(B, "%d")), sscanf(A, B, (int *)C));
    TRY(sscanf, "0123", (strcpy(A, "7 word"), strcpy(B, "%d %s")), sscanf(A, B, (int *)C, D));
}

static void files(void) {
    FILE *file = tmpfile();
    fputs("line of text\n", file);
    rewind(file);
    TRY(fgets, "0", , fgets(A, 64, file));
    rewind(file);
    TRY(fread, "0", , fread(A, 1, 4, file));
    rewind(file);
    TRY(getline, "01", (memset(A, 0, size), memset(B, 0, size)), getline((char **)A, (size_t *)B, file));
    rewind(file);
    TRY(pread, "1", , pread(fileno(file), A, 4, 0));
    TRY(fstat, "1", , fstat(fileno(file), (struct stat *)A));
    TRY(stat, "01", strcpy(A, "/"), stat(A, (struct stat *)B));
    TRY(readlink, "01", strcpy(A, "/proc/self/exe"), readlink(A, B, 64));
    TRY(getcwd, "0", , getcwd(A, 256));
    TRY(getcwd, "", , getcwd(NULL, 0));
    TRY(realpath, "01", strcpy(A, "/"), realpath(A, NULL));
    TRY(pipe, "0", , pipe((int *)A));
    TRY(gethostname, "0", , gethostname(A, 64));
    TRY(fopen, "01", (strcpy(A, "/dev/null"), strcpy(B, "r")), fopen(A, B));
    TRY(mkstemp, "0", strcpy(A, "/dev/shm/nothing-here-XXXXXX/x"), mkstemp(A));
    prepare();
    strcpy(A, "CATENA_TEST=given");
    putenv(A);
    if (getenv("CATENA_TEST") == A + 12) printf("getenv gives what putenv was given\n");
    unsetenv("CATENA_TEST");
    fclose(file);
}

static void networks(void) {
    TRY(inet_ntoa, "", , inet_ntoa((struct in_addr){1}));
    TRY(inet_ntop, "12", , inet_ntop(AF_INET, A, B, 64));
    TRY(inet_pton, "12", strcpy(A, "10.0.0.1"), inet_pton(AF_INET, A, B));
    TRY(inet_aton, "01", strcpy(A, "10.0.0.1"), inet_aton(A, (struct in_addr *)B));
    TRY(ether_aton, "0", strcpy(A, "1:2:3:4:5:6"), ether_aton(A));
    TRY(ether_ntoa, "0", , ether_ntoa((struct ether_addr *)A));
    TRY(ether_aton_r, "01", strcpy(A, "1:2:3:4:5:6"), ether_aton_r(A, (struct ether_addr *)B));
    TRY(ether_ntoa_r, "01", , ether_ntoa_r((struct ether_addr *)A, B));
    int poll = epoll_create1(0), ends[2];
    if (pipe(ends) || write(ends[1], "x", 1) != 1) return;
    TRY(epoll_ctl, "3", (((struct epoll_event *)A)->events = EPOLLIN, ((struct epoll_event *)A)->data.ptr = C),
        epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], (struct epoll_event *)A));
    TRY(epoll_wait, "1", , epoll_wait(poll, (struct epoll_event *)A, 4, 0));
    if (((struct epoll_event *)A)->data.ptr == C) printf("epoll_wait gives what epoll_ctl was given\n");
    close(poll);
    close(ends[0]);
    close(ends[1]);
}

static void searches(void) {
    RUN(qsort, "0", 3, (((int *)A)[0] = 9, ((int *)A)[1] = 1), (qsort(A, 2, 4, compare), 0));
    RUN(qsort_r, "04", 3, (((int *)A)[0] = 9, ((int *)A)[1] = 1), (qsort_r(A, 2, 4, compareWith, B), 0));
    RUN(bsearch, "01", 4, (*(int *)A = 2, ((int *)B)[0] = 1, ((int *)B)[1] = 2, ((int *)B)[2] = 3),
        bsearch(A, B, 3, 4, compare));
    RUN(lfind, "012", 4, (*(int *)A = 2, ((int *)B)[1] = 2, *(size_t *)C = 2), lfind(A, B, (size_t *)C, 4, compare));
    RUN(lsearch, "012", 4, (*(int *)A = 77, *(size_t *)C = 2), lsearch(A, B, (size_t *)C, 4, compare));
    void *root = NULL;
    *(int *)A = 1;
    tsearch(A, &root, compare);
    RUN(tsearch, "01", 2, (*(int *)A = 2, *(void **)B = root), tsearch(A, (void **)B, compare));
    RUN(tfind, "01", 2, (*(int *)A = 1, *(void **)B = root), tfind(A, (void **)B, compare));
    void **node = tfind(A, &root, compare);
    if (node && *node == A) printf("tfind gives what tsearch was given\n");
    RUN(twalk, "", 1, , (twalk(root, visit), 0));
    RUN(tdestroy, "", 1, , (tdestroy(root, freeNothing), 0));
    hcreate(8);
    TRY(hsearch, "01", , hsearch((ENTRY){A, B}, ENTER));
    ENTRY *entry = hsearch((ENTRY){A, NULL}, FIND);
    if (entry && entry->data == B) printf("hsearch gives what hsearch was given\n");
    hdestroy();
}

static void threads_and_signals(void) {
    RUN(signal, "", 1, , (signal(SIGUSR1, handle), raise(SIGUSR1), (void (*)(int))NULL));
    if (signal(SIGUSR1, SIG_DFL) == handle) printf("signal gives what signal was given\n");
    RUN(sigaction, "12", 1, (memset(A, 0, size), ((struct sigaction *)A)->sa_handler = handle),
        (sigaction(SIGUSR1, (struct sigaction *)A, (struct sigaction *)B), raise(SIGUSR1)));
    pthread_t thread;
    void *returned = NULL;
    RUN(pthread_create, "3", 2, , (pthread_create(&thread, NULL, returnGiven, A), pthread_join(thread, &returned)));
    if (returned == A) printf("pthread_join gives what pthread_create was given\n");
    pthread_once_t control = PTHREAD_ONCE_INIT;
    RUN(pthread_once, "", 1, , pthread_once(&control, once));
    pthread_key_t key;
    pthread_key_create(&key, NULL);
    RUN(pthread_setspecific, "1", -1, , pthread_setspecific(key, A));
    if (pthread_getspecific(key) == A) printf("pthread_getspecific gives what pthread_setspecific was given\n");
    TRY(sigemptyset, "0", , sigemptyset((sigset_t *)A));
    TRY(sigaddset, "0", memset(A, 0, size), sigaddset((sigset_t *)A, 5));
    TRY(pthread_mutex_lock, "0", memset(A, 0, size), pthread_mutex_lock((pthread_mutex_t *)A));
}

static void memories(void) {
    TRY(malloc, "", , malloc(8));
    TRY(calloc, "", , calloc(8, 1));
    TRY(realloc, "", , realloc(NULL, 8));
    TRY(aligned_alloc, "", , aligned_alloc(16, 16));
    TRY(posix_memalign, "0", , posix_memalign((void **)A, 16, 16));
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    texts_and_blocks();
    numbers_and_times();
    texts_of_values();
    files();
    networks();
    searches();
    threads_and_signals();
    memories();
    return 0;
}
