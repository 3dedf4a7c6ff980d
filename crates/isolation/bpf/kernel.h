/* What a BPF program has of the kernel: types, helpers, and the fields of its structures that are read.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define FIELD(name, value) int(*name)[value]
#define INLINE static inline __attribute__((always_inline))

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_HASH = 5, MAP_PERCPU_ARRAY = 6, MAP_LRU_HASH = 9 };
enum { NET_TX_SOFTIRQ = 2, NET_RX_SOFTIRQ = 3 };
enum { TCP_TIME_WAIT = 6, TCP_NEW_SYN_RECV = 12 };
enum { AF_PACKET = 17, SOCK_RAW = 3 };
enum { NO_EXIST = 1 };
/* ETH_P_ARP, in the order of bytes in a packet. */
enum { ARP = __builtin_bswap16(0x0806) };

static void *(*const lookup)(void *map, const void *key) = (void *)1;
static long (*const update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const erase)(void *map, const void *key) = (void *)3;
static u64 (*const clock)(void) = (void *)5;
static u64 (*const current_task)(void) = (void *)14;
static u64 (*const current_cgroup)(void) = (void *)80;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct sock {
	struct {
		unsigned short skc_family;
		volatile unsigned char skc_state;
	} __sk_common;
	unsigned short sk_type;
	struct sock_cgroup_data sk_cgrp_data;
};
struct net_device;
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned char *head;
	unsigned short protocol;
	unsigned short transport_header;
	unsigned short network_header;
};
#pragma clang attribute pop

/* Why a packet is freed; the loader puts the running kernel's numbers in place of these, and 0 for whether it has one that it has not. */
enum skb_drop_reason { SKB_CONSUMED = 1, SKB_DROP_REASON_NO_SOCKET = 3, SKB_DROP_REASON_QUEUE_PURGE = 4 };
#define REASON(name, what) __builtin_preserve_enum_value(*(enum skb_drop_reason *)name, what)
#define IS_REASON(reason, name) (REASON(name, 0) && (reason) == REASON(name, 1))
