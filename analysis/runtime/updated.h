/* The updated bits of a program that `catena-analyze --track` wrote: Khalid's dissertation, Figure 4.12. */
#ifndef CATENA_UPDATED_H
#define CATENA_UPDATED_H

#ifdef __cplusplus
extern "C" {
#endif

/* How many variables are updateable. */
extern const unsigned catena_updated_count;
/* Of each: 1 since it, or what it leads to, may have been updated. Whoever acts on it sets it to 0 again, between two
 * packets: within one, bits that were set are counted on. */
extern char catena_updated[];
/* Their names, in the order of the report's variables. */
extern const char *const catena_updated_names[];

#ifdef __cplusplus
}
#endif
#endif
