/* A reduced program as a function of nf.h: what its parts know of each other.
 *
 * The program runs on a stack of its own, as a coroutine: its `main` initializes it as ever, and where it receives
 * packets it goes back to Catena until there are some. So nothing of it needs to be taken apart, and what follows its loop
 * (statistics, files that are closed) happens when the chain ends. */
#ifndef CATENA_ADAPTER_H
#define CATENA_ADAPTER_H

#include <catena/nf.h>
#include <stdbool.h>

/* A function of a library that the program gets ours instead of; catena-reduce looks for these words. */
#define REPLACES(name) catena_replaced_##name

/* What stands in the program: its main, its name and its command line. */
extern int catena_program_main(int argc, char **argv);
extern const char catena_program_name[];
extern const char *const catena_program_words[];
extern const uint64_t catena_program_word_count;

enum drop { NOT_SENT, TOO_LONG, HAS_ENDED };

/* ---- program.c: the coroutine */

/* Start the program, and let it go on, until it waits for packets or has ended. */
bool program_start(struct catena_context *cx);
void program_resume(void);
/* Called by the program, on its stack: wait until it is resumed. */
void program_wait(void);
/* Called by the program: it cannot go on. */
_Noreturn void program_refuse(const char *why);
/* Return whether it has ended; and, for people, how. */
bool program_has_ended(void);
const char *program_end(void);
/* Return whether it ended as programs do that have done their work. */
bool program_ended_well(void);
void program_release(void);

/* ---- reception.c: packets */

/* Hand a batch to the program, and set the verdicts. */
void packets_process(struct catena_context *cx, struct catena_packet *const *packets, uint32_t count);
/* From now on there are no packets. */
void packets_end(struct catena_context *cx);
/* Return what could not be sent as the program wanted, for people, or null. */
const char *packets_unsent(void);

/* ---- files.c */

/* Close what the program has open. */
void files_close(void);

/* ---- function.c: copies */

/* The side of one instance: every one is a copy of this library, and so has globals of its own. */
struct copy {
    bool (*start)(struct catena_context *);
    void (*process)(struct catena_context *, struct catena_packet *const *, uint32_t);
    bool (*finish)(struct catena_context *);
    void (*release)(void);
};

#endif
