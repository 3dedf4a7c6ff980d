/* A packet for a traced program. */
#ifndef PACKET_SOURCE_H
#define PACKET_SOURCE_H

enum { PACKET = 96 };

/* Return the next packet; it begins with its IP header, `ahead` bytes in. The program ends when there is none left. */
unsigned char *next_packet(int ahead);

#endif
