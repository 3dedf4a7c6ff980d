/* account.bpf.c as an ordinary program, for tests: the kernel around it is this file, which does what it is told line by line. The
 * test has put functions of this file in place of the kernel's helpers.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *host_lookup(void *map, const void *key);
static long host_update(void *map, const void *key, const void *value, unsigned long long flags);
static long host_erase(void *map, const void *key);
static unsigned long long host_clock(void);
static unsigned long long host_task(void);
static unsigned long long host_cgroup(void);
static long host_read(void *to, unsigned int size, const void *from);

/* Every reason is there, by its own number. */
#define __builtin_preserve_enum_value(reason, what) ((what) ? (u64) & (reason) : 1)

#include "account.bpf.c"

enum { CPUS = 2, MAPS = 7, THINGS = 64 };

static u64 now, process, readings;
static u32 cpu;

/* Entries of a map, the newest first; of maps that have values for each CPU an entry has them one after the other. */
struct entry {
	struct entry *next;
	char *key;
	char *value;
};
static struct map {
	const void *map;
	u64 key, value, room, is_array, copies;
	struct entry *entries;
	u64 used;
} maps[MAPS];

#define MAP(at, of) \
	{ \
		int type = sizeof(*of.type) / sizeof(int); \
		maps[at] = (struct map){ &of, sizeof(*of.key), sizeof(*of.value), sizeof(*of.max_entries) / sizeof(int), \
			type == MAP_ARRAY || type == MAP_PERCPU_ARRAY, \
			type == MAP_PERCPU_ARRAY || type == MAP_PERCPU_HASH ? CPUS : 1, 0, 0 }; \
	}

static struct map *map_of(const void *map)
{
	for (int i = 0; i < MAPS; i++)
		if (maps[i].map == map)
			return &maps[i];
	abort();
}

static struct entry **find(struct map *map, const void *key)
{
	struct entry **at = &map->entries;
	while (*at && memcmp((*at)->key, key, map->key))
		at = &(*at)->next;
	return at;
}

static struct entry *insert(struct map *map, const void *key)
{
	struct entry *entry = malloc(sizeof(*entry));
	*entry = (struct entry){ map->entries, memcpy(malloc(map->key), key, map->key), calloc(map->copies, map->value) };
	map->entries = entry;
	map->used++;
	return entry;
}

static void *host_lookup(void *of, const void *key)
{
	struct map *map = map_of(of);
	struct entry *entry = *find(map, key);
	if (!entry && map->is_array)
		entry = insert(map, key);
	return entry ? entry->value + (map->copies > 1 ? cpu * map->value : 0) : 0;
}

static long host_update(void *of, const void *key, const void *value, u64 flags)
{
	struct map *map = map_of(of);
	struct entry *entry = *find(map, key);
	if (entry && flags == NO_EXIST)
		return -17;
	if (!entry && map->used >= map->room)
		return -7;
	if (!entry)
		entry = insert(map, key);
	memcpy(entry->value + (map->copies > 1 ? cpu * map->value : 0), value, map->value);
	return 0;
}

static long host_erase(void *of, const void *key)
{
	struct map *map = map_of(of);
	struct entry **at = find(map, key), *entry = *at;
	if (!entry)
		return -2;
	*at = entry->next;
	map->used--;
	free(entry->key);
	free(entry->value);
	free(entry);
	return 0;
}

static u64 host_clock(void)
{
	readings++;
	return now;
}

static u64 host_task(void)
{
	return process;
}

static u64 host_cgroup(void)
{
	return process;
}

static long host_read(void *to, u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

/* Things by number; 0 is none of them. */
static struct kernfs_node nodes[THINGS];
static struct cgroup cgroups[THINGS];
static struct sock sockets[THINGS];
static struct sk_buff packets[THINGS];
static unsigned char headers[64];

static struct sock *socket_of(u64 number)
{
	return number ? &sockets[number % THINGS] : 0;
}

static void begin(void)
{
	for (int i = 0; i < MAPS; i++)
		while (maps[i].entries)
			host_erase((void *)maps[i].map, maps[i].entries->key);
	MAP(0, settings) MAP(1, softirqs) MAP(2, totals) MAP(3, charges) MAP(4, waiting) MAP(5, handlers) MAP(6, devices)
	memset(sockets, 0, sizeof(sockets));
	memset(packets, 0, sizeof(packets));
	for (int i = 0; i < THINGS; i++) {
		nodes[i].id = i;
		cgroups[i].kn = &nodes[i];
		packets[i].head = headers;
	}
	now = 1000000000;
	process = cpu = readings = 0;
	/* User space makes it before anything is attached. */
	u64 no_room = NOBODY | NO_ROOM;
	struct charge none = {};
	host_update(&charges, &no_room, &none, 0);
}

static void show(void)
{
	for (struct entry *entry = map_of(&charges)->entries; entry; entry = entry->next) {
		struct charge sum = {};
		for (u32 i = 0; i < CPUS; i++) {
			struct charge *own = (struct charge *)entry->value + i;
			sum.ns += own->ns;
			sum.packets += own->packets;
			sum.sent += own->sent;
			sum.drops += own->drops;
			sum.hosted += own->hosted;
		}
		printf("charge %llu %llu %llu %llu %llu %llu\n", *(u64 *)entry->key, sum.ns, sum.packets, sum.sent, sum.drops,
		       sum.hosted);
	}
	u32 zero = 0;
	struct totals sum = {};
	for (cpu = 0; cpu < CPUS; cpu++) {
		struct totals *own = host_lookup(&totals, &zero);
		sum.receive_ns += own->receive_ns;
		sum.transmit_ns += own->transmit_ns;
		sum.interrupt_ns += own->interrupt_ns;
	}
	printf("totals %llu %llu %llu %llu\n", sum.receive_ns, sum.transmit_ns, sum.interrupt_ns, readings);
	cpu = 0;
}

/* A softirq as it may be when it is settled, and what comes of it. */
static void settle_one(struct softirq *s, u64 *a)
{
	s->vector = a[0];
	s->fixed = a[1];
	s->pending = a[2];
	s->unclaimed = a[3];
	s->owed_ns = a[4];
	settle();
	s->vector = 0;
}

int main(void)
{
	char line[256], what[16];
	u32 zero = 0;
	begin();
	while (fgets(line, sizeof(line), stdin)) {
		u64 a[5] = {}, *p = a;
		sscanf(line, "%15s %llu %llu %llu %llu %llu", what, p, p + 1, p + 2, p + 3, p + 4);
#define IS(name) (!strcmp(what, name))
#define TELL(program, ...) program((u64[]){ __VA_ARGS__ })
		struct sk_buff *packet = &packets[a[0] % THINGS];
		u64 skb = (u64)packet, sk = (u64)socket_of(a[1]);
		if (IS("begin"))
			begin();
		else if (IS("after"))
			now += a[0];
		else if (IS("cpu"))
			cpu = a[0] % CPUS;
		else if (IS("process"))
			process = a[0];
		else if (IS("room"))
			map_of(&charges)->room = a[0];
		else if (IS("socket")) {
			socket_of(a[0])->sk_cgrp_data.cgroup = a[1] ? &cgroups[a[1] % THINGS] : 0;
			socket_of(a[0])->__sk_common.skc_state = a[2];
		} else if (IS("softirq"))
			TELL(softirq_entry, a[0]);
		else if (IS("end"))
			TELL(softirq_exit, a[0]);
		else if (IS("outside")) {
			struct settings *set = host_lookup(&settings, &zero);
			set->timer_ns = a[0];
			set->message_ns = a[1];
		} else if (IS("interrupt"))
			a[0] == 1 ? TELL(timer_entry, 0) : a[0] == 2 ? TELL(call_entry, 0) : TELL(device_entry, 0);
		else if (IS("raise"))
			TELL(raise, a[0]);
		else if (IS("return"))
			a[0] == 1 ? TELL(timer_exit, 0) : a[0] == 2 ? TELL(call_exit, 0) : TELL(device_exit, 0);
		else if (IS("receive"))
			TELL(receive, skb);
		else if (IS("driver"))
			TELL(gro_receive, 0);
		else if (IS("poll"))
			TELL(napi_poll, (u64) & (struct napi_struct){});
		else if (IS("ready"))
			TELL(data_ready, (u64)socket_of(a[0]));
		else if (IS("segment"))
			TELL(tcp_segment, sk, skb);
		else if (IS("drop"))
			TELL(dropped, skb, 0, a[2], sk);
		else if (IS("send")) {
			packet->sk = socket_of(a[1]);
			TELL(transmit, skb);
		} else if (IS("slot")) {
			struct softirq *s = host_lookup(&softirqs, &zero);
			s->slots[s->used++ % SLOTS] = (struct slot){ a[0], a[1], a[2], a[3], a[4], 0 };
		} else if (IS("settle"))
			settle_one(host_lookup(&softirqs, &zero), a);
		else if (IS("show"))
			show();
		else
			abort();
	}
	return 0;
}
