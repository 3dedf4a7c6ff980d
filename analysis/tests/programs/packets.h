/* What the small programs share: a socket, a buffer and header views. */
#ifndef PACKETS_H
#define PACKETS_H
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IP(packet) ((struct iphdr *)(packet))
#define TCP(packet) ((struct tcphdr *)((packet) + 20))
#define UDP(packet) ((struct udphdr *)((packet) + 20))

int device;
#endif
