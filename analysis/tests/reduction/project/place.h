/* Where in a table a packet belongs. */
#include <stdint.h>

unsigned place_of(const uint8_t *packet, uint32_t length);
unsigned every_of(const char *file, unsigned otherwise);
