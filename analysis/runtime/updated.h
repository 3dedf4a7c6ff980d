/* The updated bits of a program that `catena-analyze --track` wrote: Khalid's dissertation, Figure 4.12. */
#ifndef CATENA_UPDATED_H
#define CATENA_UPDATED_H

#ifdef __cplusplus
extern "C" {
#endif

/* How many variables are updateable. */
extern const unsigned catena_updated_count;
/* Set `bits[i]` to 1 for each variable that may have been updated since the last call, or what it leads to; the others
 * stay as they are. Only between two packets: within one, bits that were set are counted on. */
void catena_take_updated(char *bits);
/* Their names, in the order of the report's variables. */
extern const char *const catena_updated_names[];

#ifdef __cplusplus
}
#endif
#endif
