/* Prints which updated bits are set when a tracked program ends. */
#include "updated.h"
#include <stdio.h>

__attribute__((destructor)) static void print(void) {
    for (unsigned bit = 0; bit < catena_updated_count; bit++)
        if (catena_updated[bit]) printf("%s\n", catena_updated_names[bit]);
}
