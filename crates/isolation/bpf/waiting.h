/* Packets whose owner is not known when their part of a softirq ends: those that came while their socket was in use. Its process takes
 * them up when it is done, maybe on another CPU and before the softirq has gone on. Part of account.bpf.c.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

/* What was done on a packet whose owner is not known yet; and the cgroup that did it by a call of its own, 0 if none: it gets that
 * back if it was for another. */
struct waited {
	u64 ns;
	u64 softirq; /* when the softirq began that did it */
	u64 host;
	u64 taker; /* the cgroup of who took it up sooner than its part of the softirq ended, on another CPU; 0: nobody did */
	u64 taken; /* and when */
};

/* Who has its socket in use for longer, stopped in the midst of a call, leaves what came meanwhile to no socket: more than what a quota
 * that is rewritten each period, of 500 ms at most, keeps a process from going on. */
enum { KEPT_FOR = 1000000000 };

/* Time of packets, by address, whose owner was not known when their part of a softirq ended. It is only asked for by who has the packet.
 * An entry may outlive its packet, until another one at its address is seen to come, or has an entry. */
struct {
	FIELD(type, MAP_LRU_HASH);
	FIELD(max_entries, 16384);
	u64 *key;
	struct waited *value;
} waiting SEC(".maps");

/* Keep the time of a packet whose owner is not known. Who takes it up may have been there before. */
static __attribute__((noinline)) int keep_waiting(u64 ns)
{
	u32 zero = 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (!s)
		return 0;
	u64 packet = s->packet;
	struct waited waited = { .ns = ns, .softirq = s->start, .host = s->caused ? current_cgroup() : 0 };
	if (update(&waiting, &packet, &waited, NO_EXIST)) {
		struct waited *there = lookup(&waiting, &packet);
		u64 taker = there && there->taken >= s->mark ? there->taker : 0;
		if (taker) {
			erase(&waiting, &packet);
			struct slot *slot = &s->slots[slot_of(s, taker) & (SLOTS - 1)];
			slot->ns += ns;
			if (s->unclaimed) {
				s->unclaimed--;
				slot->packets++;
			}
			return 0;
		}
		update(&waiting, &packet, &waited, 0);
	}
	s->pending += ns;
	return 0;
}

/* A segment that came while its socket was in use: its process takes it up when it is done, and only now is it known whose it
 * was. Its own time is charged anew; its part of the fixed costs stays nobody's. A softirq on this CPU may come between any
 * two instructions, so each change is one. */
INLINE void take_up(u64 packet, struct sock *sk)
{
	u64 nobody = NOBODY | NO_SOCKET, cgroup = cgroup_of(sk);
	if (!cgroup)
		return;
	struct waited taken = { .taker = cgroup, .taken = clock() };
	if (!update(&waiting, &packet, &taken, NO_EXIST))
		return; /* the softirq, on another CPU, is not yet done with it: it finds this */
	struct waited *waited = lookup(&waiting, &packet);
	if (!waited)
		return;
	if (waited->taker) {
		waited->taker = cgroup;
		waited->taken = taken.taken;
		return;
	}
	u64 ns = waited->ns, host = waited->host, age = taken.taken - waited->softirq;
	erase(&waiting, &packet);
	if (age > KEPT_FOR)
		return; /* of another packet, which was here before */
	struct charge *from = charge_of(nobody), *to = charge_of(cgroup);
	if (!from || !to)
		return;
	__sync_fetch_and_add(&from->ns, -ns);
	__sync_fetch_and_add(&from->packets, -1);
	__sync_fetch_and_add(&to->ns, ns);
	__sync_fetch_and_add(&to->packets, 1);
	struct charge *hosted = host ? charge_of(host) : 0;
	if (hosted)
		__sync_fetch_and_add(&hosted->hosted, ns);
}

/* A packet that begins its way through the stack once more in the same softirq, as one that came in a tunnel does without its outer
 * headers: what was done on it so far is whose it turns out to be now, and it is one packet. */
INLINE void comes_again(struct softirq *s, u64 packet)
{
	struct waited *waited = lookup(&waiting, &packet);
	if (!waited)
		return;
	if (waited->softirq != s->start || waited->taker || waited->ns > s->pending || !s->unclaimed) {
		erase(&waiting, &packet); /* of another packet, which was here before */
		return;
	}
	/* As if it had gone on without a break. */
	s->pending -= waited->ns;
	s->mark -= waited->ns;
	s->unclaimed--;
	erase(&waiting, &packet);
}

/* A packet that a thread or a process brings, outside of softirqs, and that may be taken up as if a softirq had: nothing of an earlier
 * one at its address is its. Nearly always there is nothing, so that is looked up first, which takes no lock. */
INLINE void comes_outside(u64 packet)
{
	if (lookup(&waiting, &packet))
		erase(&waiting, &packet);
}
