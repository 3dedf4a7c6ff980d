/* Charges the time of network softirqs to the cgroups whose packets they work on.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Khalid's dissertation, section 2.2.1, on a stock kernel: tracepoints divide a softirq into segments, and each segment is
 * charged. Work on a packet is charged to the cgroup of its socket; what no packet can be named for is fixed cost, which is
 * shared at the end of the softirq by the number of packets. Every nanosecond is in exactly one segment, so charges add up to
 * the softirq's time, which `totals` has from the first and the last reading of the clock alone. A hard interrupt that raises a
 * network softirq is fixed cost of the next one on its CPU. `charge.rs` has the arithmetic of `settle` with its proofs.
 *
 * Kernel structures are declared with the fields that are read; the loader moves the offsets to the running kernel's (CO-RE).
 */

#include "kernel.h"

/* Accounts of no cgroup. What `charge.rs` has, too, is compared by a test: these numbers, and structures that are passed. */
#define NOBODY (1ull << 63)
enum { NO_SOCKET = 1, DROPPED = 2, FORWARDED = 3, NO_PACKET = 4, NO_ROOM = 5 };

/* Who has the segment under way: a slot, or one of these. */
enum { SLOTS = 16, FIXED = 254, PENDING = 255 };

/* Time that hosts have lost and their accounts do not say yet, in ns a CPU. */
enum { HOSTED_MOST = 100000 };
/* Who sends within so many ns after transmit softirqs that sent nothing is whom they were for. */
enum { OWED_FOR = 10000000 };
/* A softirq that begins so many ns after an interrupt's end at most is that one's; else a process is in the kernel and caused it. */
enum { AT_ONCE = 2000 };

/* So many packets are charged by the clock after one that two sockets got: who shares a network with others must not have them pay
 * for what is done for it, such as a filter. */
enum { EXACT = 1024 };

/* What a softirq has done so far for one account. */
struct slot {
	u64 account;
	u64 ns;
	u32 packets;
	u32 sent;
	u32 drops;
	u32 unused;
};

/* The softirq under way on this CPU. */
struct softirq {
	u64 start;
	u64 mark; /* begin of the segment */
	u64 fixed;
	u64 pending; /* of packets whose owner was not known when the next one came */
	u64 packet;  /* the one whose owner is not known yet */
	u64 probed;  /* the socket that tcp_probe named for the packet at hand */
	u32 vector;  /* 0: none */
	u32 unclaimed;
	u32 owner;
	u32 used;
	u32 caused;  /* whether the process that had the CPU caused it */
	u32 whole;   /* whether the segment under way is its owner's from its begin on, before it was known */
	u32 exact;   /* how many packets are yet to be charged by the clock, as one had two sockets */
	u32 several; /* how many softirqs are yet to be divided by the clock, as one had several packets */
	u32 lone;    /* whether the softirq under way is not divided, as long as it has one packet; POLLED: nor was the end of its poll */
	u32 unused;
	u64 host; /* whose time softirqs took last, and how much that is not in its account yet */
	u64 hosted;
	u64 interrupt;  /* begin of the hard interrupt under way; 0: none */
	u64 raised;     /* whether it raised a network softirq */
	u64 interrupts; /* time of such ones since the last softirq */
	u64 interrupted; /* and before the one under way */
	u64 interrupt_end;
	u64 nobodys;        /* what the softirq under way charged to no cgroup */
	u64 owed_ns;        /* of transmit softirqs that sent nothing, not yet charged, */
	u64 owed_interrupt; /* the interrupts in front of them, */
	u64 owed_since;     /* and when the first of them was */
	struct slot slots[SLOTS];
};

/* What an account has been charged. */
struct charge {
	u64 ns;
	u64 packets;
	u64 sent;
	u64 drops;
	u64 hosted; /* time of softirqs, of whomever, that ran while a task of this cgroup was the CPU's */
};

struct totals {
	u64 receive_ns;
	u64 transmit_ns;
	u64 softirqs;
	u64 interrupt_ns;
};

/* What user space sets: what each hard interrupt takes before its handler begins and after it ends, as it was measured at the start,
 * one of a timer and another one, and whether there is a device in `devices`. */
struct settings {
	u64 timer_ns;
	u64 message_ns;
	u64 devices;
};

struct {
	FIELD(type, MAP_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	struct settings *value;
} settings SEC(".maps");
struct {
	FIELD(type, MAP_PERCPU_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	struct softirq *value;
} softirqs SEC(".maps");
struct {
	FIELD(type, MAP_PERCPU_ARRAY);
	FIELD(max_entries, 1);
	u32 *key;
	struct totals *value;
} totals SEC(".maps");
struct {
	FIELD(type, MAP_PERCPU_HASH);
	FIELD(max_entries, 16384);
	u64 *key;
	struct charge *value;
} charges SEC(".maps");
INLINE struct softirq *inside(void)
{
	u32 zero = 0;
	struct softirq *now = lookup(&softirqs, &zero);
	return now && now->vector ? now : 0;
}

INLINE struct charge *charge_of(u64 account)
{
	struct charge *found = lookup(&charges, &account);
	if (!found) {
		struct charge none = {};
		update(&charges, &account, &none, NO_EXIST);
		found = lookup(&charges, &account);
	}
	return found;
}

/* Charge an account, or, where the map is full, the one that is there for that; user space makes it before anything is
 * attached. */
static __attribute__((noinline)) int charge(u64 account, u64 ns, u64 packets, u64 sent_and_drops)
{
	u32 zero = 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (s && account & NOBODY)
		s->nobodys += ns;
	struct charge *to = charge_of(account);
	if (!to) {
		account = NOBODY | NO_ROOM;
		to = lookup(&charges, &account);
	}
	if (to) {
		to->ns += ns;
		to->packets += packets;
		to->sent += sent_and_drops >> 32;
		to->drops += (u32)sent_and_drops;
	}
	return 0;
}

/* Take what is owed into the totals, to be charged now. */
INLINE u64 take_owed(struct softirq *s)
{
	u32 zero = 0;
	u64 owed = s->owed_ns + s->owed_interrupt;
	struct totals *sum = owed ? lookup(&totals, &zero) : 0;
	if (sum) {
		sum->transmit_ns += s->owed_ns;
		sum->interrupt_ns += s->owed_interrupt;
	}
	s->owed_ns = s->owed_interrupt = 0;
	return owed;
}

/* Write the slots to their accounts, each with its part of the fixed costs: what remains of them by what remains of the
 * packets, so that nothing is lost by rounding. */
static __attribute__((noinline)) int settle(void)
{
	u32 zero = 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (!s)
		return 0;
	u64 weight = s->unclaimed, fixed = s->fixed;
	for (u32 i = 0; i < SLOTS && i < s->used; i++)
		weight += s->slots[i].packets + s->slots[i].sent;
	/* Where every packet found its owner they came as a list, and what they had in common is shared. */
	if (!s->unclaimed)
		fixed += s->pending;
	/* A queue that lets a packet go only now looked for it before. */
	if (s->vector == NET_TX_SOFTIRQ && weight)
		fixed += take_owed(s);
	for (u32 i = 0; i < SLOTS && i < s->used; i++) {
		struct slot *slot = &s->slots[i];
		u64 own = slot->packets + slot->sent, part = own == weight ? (own ? fixed : 0) : fixed * own / weight;
		fixed -= part;
		weight -= own;
		charge(slot->account, slot->ns + part, slot->packets, (u64)slot->sent << 32 | slot->drops);
	}
	if (s->unclaimed)
		charge(NOBODY | NO_SOCKET, s->pending + fixed, s->unclaimed, 0);
	else if (fixed)
		charge(NOBODY | NO_PACKET, fixed, 0, 0);
	s->used = s->unclaimed = 0;
	s->fixed = s->pending = 0;
	return 0;
}

/* The slot of an account: found, or taken. */
INLINE u32 slot_of(struct softirq *s, u64 account)
{
	u32 last = s->owner;
	if (last < SLOTS && s->slots[last].account == account)
		return last;
	for (u32 i = 0; i < SLOTS && i < s->used; i++)
		if (s->slots[i].account == account)
			return i;
	if (s->used >= SLOTS) {
		/* The packet at hand is not nobody's: its account is about to be known. */
		u32 at_hand = s->unclaimed ? 1 : 0;
		s->unclaimed -= at_hand;
		settle();
		s->unclaimed = at_hand;
	}
	u32 at = s->used & (SLOTS - 1);
	s->used = at + 1;
	s->slots[at] = (struct slot){ .account = account };
	return at;
}

/* The cgroup of a socket; 0 if it has none, as those of half-open and closed connections, which are no whole sockets. */
INLINE u64 cgroup_of(struct sock *sk)
{
	if (!sk)
		return 0;
	u8 state = sk->__sk_common.skc_state;
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV)
		return 0;
	struct cgroup *cgroup = sk->sk_cgrp_data.cgroup;
	return cgroup ? cgroup->kn->id : 0;
}

#include "waiting.h"

/* End the segment: whose it was is whose it stays. */
INLINE void end_segment(struct softirq *s, u32 next)
{
	u64 now = clock(), ns = now - s->mark;
	u32 owner = s->owner;
	if (owner < SLOTS)
		s->slots[owner].ns += ns;
	else if (owner == PENDING)
		keep_waiting(ns);
	else
		s->fixed += ns;
	s->mark = now;
	s->owner = next;
	s->whole = 0;
}

/* End the segment by what shows whose it was, which goes on until the next one. */
INLINE struct slot *claim(struct softirq *s, u64 account)
{
	u64 now = clock(), ns = now - s->mark;
	/* A packet that two sockets get: when it was the first one's alone was not written down. Of those that come next it is. */
	if (s->whole && s->owner < SLOTS && s->slots[s->owner].account != account) {
		s->slots[s->owner].ns += ns / 2;
		ns -= ns / 2;
		s->exact = EXACT;
	}
	s->whole = 0;
	u32 at = slot_of(s, account) & (SLOTS - 1);
	struct slot *slot = &s->slots[at];
	slot->ns += ns;
	s->mark = now;
	s->owner = at;
	return slot;
}

INLINE void claim_packet(struct softirq *s, u64 account, u32 dropped)
{
	struct slot *slot = claim(s, account);
	slot->drops += dropped;
	if (s->unclaimed) {
		s->unclaimed--;
		slot->packets++;
	}
}

/* A socket has the packet at hand. If that is the only one whose owner is not known, all since its begin is the socket's, and so is what
 * follows: that needs no reading of the clock, a fifth of what a packet's accounts cost. Sockets that get copies of others' packets are
 * charged up to here alone. */
INLINE void claim_for(struct softirq *s, struct sock *sk)
{
	u64 cgroup = cgroup_of(sk), account = cgroup ? cgroup : NOBODY | NO_SOCKET;
	u32 by_clock = s->exact;
	s->exact -= by_clock ? 1 : 0;
	if (by_clock || s->owner != PENDING || s->unclaimed != 1 || s->pending || sk->sk_type == SOCK_RAW ||
	    sk->__sk_common.skc_family == AF_PACKET) {
		claim_packet(s, account, 0);
		return;
	}
	s->unclaimed = 0;
	u32 at = slot_of(s, account) & (SLOTS - 1);
	s->slots[at].packets++;
	s->owner = at;
	s->whole = 1;
}

SEC("tp_btf/softirq_entry") int softirq_entry(u64 *arguments)
{
	u32 zero = 0, vector = arguments[0];
	if (vector != NET_RX_SOFTIRQ && vector != NET_TX_SOFTIRQ)
		return 0;
	struct softirq *s = lookup(&softirqs, &zero);
	if (!s)
		return 0;
	s->used = s->unclaimed = 0;
	s->pending = s->probed = s->nobodys = 0;
	s->owner = FIXED;
	s->whole = 0;
	s->lone = 0;
	if (vector == NET_RX_SOFTIRQ) {
		s->lone = !s->several;
		s->several -= s->several ? 1 : 0;
	}
	/* From here on an interrupt on this CPU is part of what it interrupts. */
	*(volatile u32 *)&s->vector = vector;
	s->fixed = s->interrupted = s->interrupts;
	s->interrupts = 0;
	s->start = s->mark = clock();
	s->caused = s->start - s->interrupt_end > AT_ONCE;
	return 0;
}

/* Note whose time a softirq took. Accounts are looked up when it is somebody else's turn or there is much, not each time. */
INLINE void take_from(struct softirq *s, u64 host, u64 ns)
{
	if (s->host != host) {
		struct charge *before = s->hosted ? charge_of(s->host) : 0;
		if (before)
			before->hosted += s->hosted;
		s->host = host;
		s->hosted = 0;
	}
	s->hosted += ns;
	if (s->hosted >= HOSTED_MOST) {
		struct charge *now = charge_of(host);
		if (now)
			now->hosted += s->hosted;
		s->hosted = 0;
	}
}

SEC("tp_btf/softirq_exit") int softirq_exit(u64 *arguments)
{
	u32 zero = 0;
	struct softirq *s = inside();
	if (!s || (u32)arguments[0] != s->vector)
		return 0;
	u32 vector = s->vector;
	end_segment(s, FIXED);
	u64 ns = s->mark - s->start;
	struct totals *sum = lookup(&totals, &zero);
	if (sum)
		sum->softirqs++;
	if (vector == NET_TX_SOFTIRQ && s->owed_ns && s->owed_since + OWED_FOR < s->mark) {
		charge(NOBODY | NO_PACKET, take_owed(s), 0, 0);
		s->nobodys = 0;
	}
	if (vector == NET_TX_SOFTIRQ && !s->used && !s->unclaimed) {
		/* It sent nothing: whom it was for is not known yet. */
		if (!s->owed_ns)
			s->owed_since = s->mark;
		s->owed_ns += ns;
		s->owed_interrupt += s->interrupted;
		s->nobodys += ns;
	} else {
		if (sum) {
			*(vector == NET_RX_SOFTIRQ ? &sum->receive_ns : &sum->transmit_ns) += ns;
			sum->interrupt_ns += s->interrupted;
		}
		settle();
	}
	/* Where nobody ran, nobody lost time. Who causes work by a call of its own, such as a packet to a port that nobody has, has
	 * lost what was for others; what was for nobody it did for itself. */
	if (current_task())
		take_from(s, current_cgroup(), s->caused && s->nobodys < ns ? ns - s->nobodys : s->caused ? 0 : ns);
	*(volatile u32 *)&s->vector = 0;
	return 0;
}

#include "interrupts.h"
#include "outside.h"
#include "devices.h"
#include "polls.h"

/* A packet, or what GRO made of several, begins its way through the stack. */
SEC("tp_btf/netif_receive_skb") int receive(u64 *arguments)
{
	struct softirq *s = inside();
	if (!s) {
		comes_outside(arguments[0]);
		return 0;
	}
	if (s->lone && s->owner == FIXED && !s->used && s->mark == s->start) {
		s->owner = PENDING;
	} else {
		is_several(s);
		end_segment(s, PENDING);
		if (s->pending)
			comes_again(s, arguments[0]);
	}
	s->packet = arguments[0];
	s->unclaimed++;
	s->probed = 0;
	return 0;
}

SEC("tp_btf/sk_data_ready") int data_ready(u64 *arguments)
{
	struct softirq *s = inside();
	if (!s)
		return 0;
	/* TCP's data is ready in the midst of the packet that tcp_probe has named. */
	if (s->probed == arguments[0]) {
		s->probed = 0;
		return 0;
	}
	claim_for(s, (struct sock *)arguments[0]);
	return 0;
}

/* Every segment of an established connection, also those without data. */
SEC("tp_btf/tcp_probe") int tcp_segment(u64 *arguments)
{
	struct softirq *s = inside();
	struct sock *sk = (struct sock *)arguments[0];
	if (!s) {
		take_up(arguments[1], sk);
		return 0;
	}
	/* One of a list, whose part has ended: all that came as a list share what is kept of it, and nobody is to have it once more. */
	u64 packet = arguments[1];
	if (s->pending)
		erase(&waiting, &packet);
	claim_for(s, sk);
	s->probed = arguments[0];
	return 0;
}

#include "drops.h"

SEC("tp_btf/net_dev_start_xmit") int transmit(u64 *arguments)
{
	struct softirq *s = inside();
	if (!s)
		return 0;
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	u64 cgroup = cgroup_of(skb->sk);
	if (s->vector == NET_TX_SOFTIRQ) {
		/* Before the first one the softirq frees what has been sent: all that it sends shares that. */
		if (s->owner == FIXED && !s->used)
			end_segment(s, FIXED);
		claim(s, cgroup ? cgroup : NOBODY | NO_SOCKET)->sent++;
	} else if (!skb->sk && s->unclaimed && (arguments[0] == s->packet || skb->protocol != ARP)) {
		/* An answer of ARP has no socket either, and is another packet than the one that is answered. */
		claim_packet(s, NOBODY | FORWARDED, 0);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
