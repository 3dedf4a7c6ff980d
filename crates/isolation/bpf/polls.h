/* Where softirqs are divided beside their packets: what drivers do, and that a packet alone needs no division. A part of account.bpf.c.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

/* What a softirq does for its only packet needs no division: all is that packet's, its begin and its end, too, for it has the fixed costs
 * alone. A reading of the clock is a fifth of what a packet's accounts cost, and of four that leaves two. That it was not the only one shows
 * when the next one comes: then the first has had the fixed costs of both, and the softirqs that come next are divided. */
enum { LONE = 1, POLLED = 2 };
/* How many softirqs those are. */
enum { SEVERAL = 1024 };

/* The softirq under way has more than one packet, or a poll more. */
INLINE void is_several(struct softirq *s)
{
	if (s->lone)
		s->several = SEVERAL;
	s->lone = 0;
}

/* The driver has the next packet: what it and GRO do for it is fixed cost. Cheap for all but the first packet of a batch. */
SEC("tp_btf/napi_gro_receive_entry") int gro_receive(u64 *arguments)
{
	struct softirq *s = inside();
	if (s && s->owner != FIXED)
		end_segment(s, FIXED);
	return 0;
}

SEC("tp_btf/napi_poll") int napi_poll(u64 *arguments)
{
	struct softirq *s = inside();
	if (!s)
		return 0;
	if (s->lone == LONE && s->whole) {
		s->lone = POLLED;
		return 0;
	}
	if (s->lone == POLLED)
		is_several(s);
	/* A poll of which no packet was seen, as all were dropped early. */
	u64 account = s->owner == FIXED ? account_of_device(((struct napi_struct *)arguments[0])->dev) : 0;
	if (account) {
		claim(s, account);
		s->owner = FIXED;
	} else {
		end_segment(s, FIXED);
	}
	return 0;
}
