/* Prints which updated bits are set when a tracked program ends. */
#include "updated.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((destructor)) static void print(void) {
    char bits[256] = {0};
    if (catena_updated_count > sizeof bits) abort();
    catena_take_updated(bits);
    for (unsigned bit = 0; bit < catena_updated_count; bit++)
        if (bits[bit]) printf("%s\n", catena_updated_names[bit]);
}
