/* Hard interrupts that raise a network softirq: fixed cost of the next one on their CPU. A part of account.bpf.c.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

INLINE int begin_interrupt(void)
{
	u32 zero = 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (s && !s->vector) {
		s->raised = 0;
		s->interrupt = clock();
	}
	return 0;
}

INLINE int end_interrupt(int of_timer)
{
	u32 zero = 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (!s || !s->interrupt)
		return 0;
	u64 now = clock(), ns = now - s->interrupt;
	s->interrupt = 0;
	s->interrupt_end = now;
	if (!s->raised || s->vector)
		return 0;
	/* What it takes outside of its handler is as much of it. */
	struct settings *set = lookup(&settings, &zero);
	ns += !set ? 0 : of_timer ? set->timer_ns : set->message_ns;
	s->interrupts += ns;
	if (current_task())
		take_from(s, current_cgroup(), ns);
	return 0;
}

/* Interrupts of devices; of timers, for which queues with a rate wait; and of other CPUs, which hand packets on. */
SEC("tp_btf/irq_handler_entry") int device_entry(u64 *arguments)
{
	return begin_interrupt();
}

SEC("tp_btf/irq_handler_exit") int device_exit(u64 *arguments)
{
	return end_interrupt(0);
}

SEC("tp_btf/local_timer_entry") int timer_entry(u64 *arguments)
{
	return begin_interrupt();
}

SEC("tp_btf/local_timer_exit") int timer_exit(u64 *arguments)
{
	return end_interrupt(1);
}

SEC("tp_btf/call_function_single_entry") int call_entry(u64 *arguments)
{
	return begin_interrupt();
}

SEC("tp_btf/call_function_single_exit") int call_exit(u64 *arguments)
{
	return end_interrupt(0);
}

SEC("tp_btf/softirq_raise") int raise(u64 *arguments)
{
	u32 zero = 0, vector = arguments[0];
	if (vector != NET_RX_SOFTIRQ && vector != NET_TX_SOFTIRQ)
		return 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (s && s->interrupt)
		s->raised = 1;
	return 0;
}
