/* Devices whose packets are one cgroup's, so that what it costs to drop them early is, too. A part of account.bpf.c.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net {
	struct {
		unsigned int inum;
	} ns;
};
struct net_device {
	int ifindex;
	struct {
		struct net *net;
	} nd_net;
};
struct napi_struct {
	struct net_device *dev;
};
#pragma clang attribute pop

/* The inode of a network namespace, and a device's number in it. */
struct device {
	u32 namespace;
	u32 number;
};

struct {
	FIELD(type, MAP_HASH);
	FIELD(max_entries, 1024);
	struct device *key;
	u64 *value;
} devices SEC(".maps");

/* The account of whose a device's packets are; 0 where that is not known beforehand. */
INLINE u64 account_of_device(struct net_device *dev)
{
	u32 zero = 0;
	struct settings *now = lookup(&settings, &zero);
	if (!now || !now->devices)
		return 0;
	struct device key = { .namespace = dev->nd_net.net->ns.inum, .number = dev->ifindex };
	u64 *account = lookup(&devices, &key);
	return account ? *account : 0;
}
