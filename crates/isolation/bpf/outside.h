/* When a timer's handler, or that of another CPU's call, began and ended last on each CPU, for who measures what an interrupt takes outside of it. A part of
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

INLINE int handler_begins(void)
{
	u32 zero = 0;
	struct handler *here = lookup(&handlers, &zero);
	if (here)
		here->begin = clock();
	return 0;
}

INLINE int handler_ends(void)
{
	u32 zero = 0;
	struct handler *here = lookup(&handlers, &zero);
	if (here)
		here->end = clock();
	return 0;
}

SEC("tp_btf/local_timer_entry") int timer_begins(u64 *arguments)
{
	return handler_begins();
}

SEC("tp_btf/local_timer_exit") int timer_ends(u64 *arguments)
{
	return handler_ends();
}

SEC("tp_btf/call_function_single_entry") int call_begins(u64 *arguments)
{
	return handler_begins();
}

SEC("tp_btf/call_function_single_exit") int call_ends(u64 *arguments)
{
	return handler_ends();
}
