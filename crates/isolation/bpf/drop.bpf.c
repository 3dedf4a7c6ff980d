/* Drops a device's packets before the stack has them, once as many have come as the quota of their cgroup pays for.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * "Containers without heavy traffic can incur a software-based drop ... early in the softirq processing stack" (Khalid's
 * dissertation, section 2.2.2); XDP is earlier still. Each device has this program, and these maps, of its own.
 */

#include "kernel.h"

enum { XDP_DROP = 1, XDP_PASS = 2 };

/* How many packets may come yet; user space writes it each step. */
struct {
	FIELD(type, MAP_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	long long *value;
} left SEC(".maps");

/* How many were dropped. */
struct {
	FIELD(type, MAP_PERCPU_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	u64 *value;
} dropped SEC(".maps");

INLINE int pass_or_drop(void)
{
	u32 zero = 0;
	long long *may_come = lookup(&left, &zero);
	if (!may_come)
		return XDP_PASS;
	if (*may_come > 0) {
		__sync_fetch_and_add(may_come, -1);
		return XDP_PASS;
	}
	u64 *count = lookup(&dropped, &zero);
	if (count)
		++*count;
	return XDP_DROP;
}

/* Packets of any length, from Linux 5.18 on; and of a page at most. */
SEC("xdp.frags") int drop_any(void *packet)
{
	return pass_or_drop();
}

SEC("xdp") int drop_short(void *packet)
{
	return pass_or_drop();
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
