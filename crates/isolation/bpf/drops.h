/* Packets that are freed before anybody has them: whose they were, and whether that is a loss. Part of account.bpf.c.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

/* The answer to a ping. */
INLINE int is_answer(struct sk_buff *skb)
{
	u8 ip[10] = {}, type = 255;
	unsigned char *head = skb->head;
	read_kernel(ip, sizeof(ip), head + skb->network_header);
	read_kernel(&type, 1, head + skb->transport_header);
	return (ip[0] >> 4 == 4 && ip[9] == 1 && type == 0) || (ip[0] >> 4 == 6 && ip[6] == 58 && type == 129);
}

/* Whether a packet that is freed is not lost. What a socket has when it ends, such as the last segment of a connection, was received. Who pings by a raw socket has had a copy of the answer, for which the kernel then looks
 * for a ping socket, too, finds none, and says so (`ping_rcv` in net/ipv4/ping.c). */
INLINE int is_taken(struct softirq *s, struct sk_buff *skb, u32 reason)
{
	if (!reason || IS_REASON(reason, SKB_CONSUMED) || IS_REASON(reason, SKB_DROP_REASON_QUEUE_PURGE))
		return 1;
	return IS_REASON(reason, SKB_DROP_REASON_NO_SOCKET) && s->owner < SLOTS && is_answer(skb);
}

INLINE void drop(struct softirq *s, struct sk_buff *skb, struct sock *receiver)
{
	u64 cgroup = cgroup_of(receiver);
	if (!cgroup)
		cgroup = cgroup_of(skb->sk);
	if (!cgroup) {
		cgroup = account_of_device(skb->dev);
		/* Before it is a packet of the stack it was dropped early, which is counted there. */
		if (cgroup && !s->unclaimed) {
			claim(s, cgroup);
			return;
		}
	}
	claim_packet(s, cgroup ? cgroup : NOBODY | DROPPED, 1);
}

SEC("tp_btf/kfree_skb") int dropped(u64 *arguments)
{
	struct softirq *s = inside();
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	if (s && !is_taken(s, skb, arguments[2]))
		drop(s, skb, (struct sock *)arguments[3]);
	return 0;
}

/* Before Linux 6.11 nobody says which socket had no room, */
SEC("tp_btf/kfree_skb") int dropped_for(u64 *arguments)
{
	struct softirq *s = inside();
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	if (s && !is_taken(s, skb, arguments[2]))
		drop(s, skb, 0);
	return 0;
}

/* and before 5.17 nobody why. */
SEC("tp_btf/kfree_skb") int dropped_somewhere(u64 *arguments)
{
	struct softirq *s = inside();
	if (s)
		drop(s, (struct sk_buff *)arguments[0], 0);
	return 0;
}
