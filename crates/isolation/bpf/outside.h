/* When a timer's handler began and ended last on each CPU, for who measures what an interrupt takes outside of it. A part of
 * account.bpf.c, attached at the start for some milliseconds.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

struct handler {
	u64 begin;
	u64 end;
};

struct {
	FIELD(type, MAP_PERCPU_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	struct handler *value;
} handlers SEC(".maps");

SEC("tp_btf/local_timer_entry") int handler_begins(u64 *arguments)
{
	u32 zero = 0;
	struct handler *here = lookup(&handlers, &zero);
	if (here)
		here->begin = clock();
	return 0;
}

SEC("tp_btf/local_timer_exit") int handler_ends(u64 *arguments)
{
	u32 zero = 0;
	struct handler *here = lookup(&handlers, &zero);
	if (here)
		here->end = clock();
	return 0;
}
