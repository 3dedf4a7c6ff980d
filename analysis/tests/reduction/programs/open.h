/* What the programs here share: opening the capture, and numbers in packets. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pcap_t *open_capture(const char *name)
{
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *in = pcap_open_offline(name, error);
    if (!in) exit(1);
    return in;
}

static inline unsigned read16(const u_char *at) { return (unsigned)at[0] << 8 | at[1]; }
