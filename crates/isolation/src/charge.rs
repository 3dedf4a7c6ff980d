//! The arithmetic of accounts: who is charged what of a softirq, and whether it adds up. Pure.

use std::collections::BTreeMap;

/// Bit that accounts of no cgroup have.
const NOBODY: u64 = 1 << 63;

/// Whose work it is: a cgroup's, or a kind of work that is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// A cgroup, by its id, which is the inode of its folder.
    Cgroup(u64),
    /// Packets that no socket was seen to take.
    NoSocket,
    /// Packets dropped before their socket was known.
    Dropped,
    /// Packets that went on to another interface.
    Forwarded,
    /// Softirqs without a packet, such as polls of an empty queue.
    NoPacket,
    /// Work for cgroups beyond those that the kernel's map has entries for.
    NoRoom,
    /// A kind that this version does not know.
    Unknown(u64),
}

impl Account {
    /// Kinds of work that is nobody's.
    pub const NOBODYS: [Account; 5] =
        [Account::NoSocket, Account::Dropped, Account::Forwarded, Account::NoPacket, Account::NoRoom];

    /// Return the account of a key of the kernel's map.
    pub fn from_key(key: u64) -> Account {
        match key.checked_sub(NOBODY) {
            None => Account::Cgroup(key),
            Some(kind) => match usize::try_from(kind).ok().and_then(|kind| Self::NOBODYS.get(kind.checked_sub(1)?)) {
                Some(account) => *account,
                None => Account::Unknown(kind),
            },
        }
    }

    /// Return the key that it has in the kernel's map.
    pub fn key(self) -> u64 {
        match self {
            Account::Cgroup(id) => id,
            Account::NoSocket => NOBODY | 1,
            Account::Dropped => NOBODY | 2,
            Account::Forwarded => NOBODY | 3,
            Account::NoPacket => NOBODY | 4,
            Account::NoRoom => NOBODY | 5,
            Account::Unknown(kind) => NOBODY | kind,
        }
    }

    /// Return what a reader calls it, unless it is a cgroup.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Account::Cgroup(_) => None,
            Account::NoSocket => Some("no socket"),
            Account::Dropped => Some("dropped, no socket"),
            Account::Forwarded => Some("forwarded"),
            Account::NoPacket => Some("no packet"),
            Account::NoRoom => Some("no room in the map"),
            Account::Unknown(_) => Some("unknown"),
        }
    }
}

/// What an account was charged, as the kernel's map has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Time of softirqs, in ns, with its part of the fixed costs.
    pub ns: u64,
    /// Packets received, or batches that GRO made of several; dropped ones are among them.
    pub packets: u64,
    /// Packets that a transmit softirq sent.
    pub sent: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Time of softirqs, whoever is charged for it, that ran while a task of this cgroup had the CPU, in ns.
    pub hosted: u64,
}

impl Charge {
    fn with(self, other: &Charge, each: impl Fn(u64, u64) -> u64) -> Charge {
        Charge {
            ns: each(self.ns, other.ns),
            packets: each(self.packets, other.packets),
            sent: each(self.sent, other.sent),
            drops: each(self.drops, other.drops),
            hosted: each(self.hosted, other.hosted),
        }
    }

    /// Return the sum of what each CPU has.
    ///
    /// One may have taken back what another charged and is below zero alone; read in between, so is the sum for a moment, which
    /// then counts as zero.
    pub fn sum(of_cpus: impl IntoIterator<Item = Charge>) -> Charge {
        let sum = of_cpus.into_iter().fold(Charge::default(), |sum, charge| sum.with(&charge, u64::wrapping_add));
        sum.with(&sum, |field, _| if field.cast_signed() < 0 { 0 } else { field })
    }

    /// Return the sum of two charges.
    #[must_use]
    pub fn plus(self, other: &Charge) -> Charge {
        self.with(other, u64::saturating_add)
    }

    /// Return what came since `before`.
    #[must_use]
    pub fn since(self, before: &Charge) -> Charge {
        self.with(before, u64::saturating_sub)
    }
}

/// Time of network softirqs, measured from the entry of each to its exit, and of hard interrupts that raised them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Of receive softirqs, in ns.
    pub receive_ns: u64,
    /// Of transmit softirqs, in ns.
    pub transmit_ns: u64,
    /// How many there were.
    pub softirqs: u64,
    /// Of hard interrupts in front of them, in ns.
    pub interrupt_ns: u64,
}

/// All accounts at one time, summed over the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// What was measured.
    pub totals: Totals,
    /// What was charged, to whom.
    pub charges: BTreeMap<Account, Charge>,
    /// What accounts of nobody lost to others by more than came to them, in ns.
    taken_back: u64,
}

impl Accounts {
    /// Add what an account was charged.
    pub fn add(&mut self, account: Account, charge: &Charge) {
        let sum = self.charges.entry(account).or_default();
        *sum = sum.plus(charge);
    }

    /// Add what a CPU measured.
    pub fn add_totals(&mut self, totals: &Totals) {
        self.totals.receive_ns += totals.receive_ns;
        self.totals.transmit_ns += totals.transmit_ns;
        self.totals.softirqs += totals.softirqs;
        self.totals.interrupt_ns += totals.interrupt_ns;
    }

    /// Return what came since `before`.
    #[must_use]
    pub fn since(&self, before: &Accounts) -> Accounts {
        let none = Charge::default();
        let was = |account: &Account| before.charges.get(account).unwrap_or(&none);
        let taken_back = self.charges.iter().map(|(account, now)| was(account).ns.saturating_sub(now.ns)).sum();
        let charges = self.charges.iter().map(|(account, now)| (*account, now.since(was(account))));
        let totals = Totals {
            receive_ns: self.totals.receive_ns.saturating_sub(before.totals.receive_ns),
            transmit_ns: self.totals.transmit_ns.saturating_sub(before.totals.transmit_ns),
            softirqs: self.totals.softirqs.saturating_sub(before.totals.softirqs),
            interrupt_ns: self.totals.interrupt_ns.saturating_sub(before.totals.interrupt_ns),
        };
        Accounts { totals, charges: charges.collect(), taken_back }
    }

    /// Return the measured time of softirqs and the interrupts that raised them, in ns.
    pub fn measured(&self) -> u64 {
        self.totals.receive_ns + self.totals.transmit_ns + self.totals.interrupt_ns
    }

    /// Return the sum of all charges, to cgroups and to nobody, in ns.
    pub fn charged(&self) -> u64 {
        self.charges.values().map(|charge| charge.ns).sum::<u64>().saturating_sub(self.taken_back)
    }

    /// Return what is nobody's, in ns.
    pub fn unattributed(&self) -> u64 {
        let nobodys = self.charges.iter().filter(|(account, _)| !matches!(account, Account::Cgroup(_)));
        nobodys.map(|(_, charge)| charge.ns).sum()
    }

    /// Return by how much measured time and charges differ, as a part of the measured time: 0 but for what was read while a CPU
    /// wrote.
    pub fn gap(&self) -> f64 {
        match self.measured() {
            0 => 0.0,
            measured => self.charged().abs_diff(measured) as f64 / measured as f64,
        }
    }
}

/// What a softirq did for one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whose it is.
    pub account: Account,
    /// Time on its packets, in ns.
    pub ns: u64,
    /// Packets received and sent.
    pub packets: u64,
}

/// A softirq before it is settled.
#[derive(Clone, Debug, Default)]
pub struct Softirq {
    /// What was done for whom.
    pub slots: Vec<Slot>,
    /// Time that no packet can be named for, also of the hard interrupts in front of it, in ns.
    pub fixed: u64,
    /// Time of transmit softirqs before it that sent nothing, not charged by then, in ns: where there are packets now, it is theirs.
    pub owed: u64,
    /// Time of packets whose owner was not known when the next one came, in ns.
    pub pending: u64,
    /// Packets that nobody claimed.
    pub unclaimed: u64,
}

impl Softirq {
    fn packets(&self) -> u64 {
        self.unclaimed + self.slots.iter().map(|slot| slot.packets).sum::<u64>()
    }

    /// Return how long it took, with what is charged now of those before, in ns.
    pub fn total(&self) -> u64 {
        let owed = if self.packets() > 0 { self.owed } else { 0 };
        self.slots.iter().map(|slot| slot.ns).sum::<u64>() + self.fixed + self.pending + owed
    }

    /// Return what each account is charged, with its part of the fixed costs, by packets: "evenly split amongst packets
    /// processed in a given do_softirq iteration" (Khalid's dissertation, section 2.2.1). `settle` of `account.bpf.c` does
    /// the same.
    pub fn settle(&self) -> BTreeMap<Account, u64> {
        let mut weight = self.packets();
        let mut fixed = if self.unclaimed == 0 { self.fixed + self.pending } else { self.fixed };
        let mut charges = BTreeMap::new();
        if weight > 0 {
            fixed += self.owed;
        }
        for slot in &self.slots {
            let part = (fixed * slot.packets).checked_div(weight).unwrap_or(0);
            fixed -= part;
            weight -= slot.packets;
            *charges.entry(slot.account).or_default() += slot.ns + part;
        }
        if self.unclaimed > 0 {
            *charges.entry(Account::NoSocket).or_default() += self.pending + fixed;
        } else if fixed > 0 {
            *charges.entry(Account::NoPacket).or_default() += fixed;
        }
        charges
    }
}

#[cfg(test)]
#[path = "charge_tests.rs"]
pub(crate) mod tests;
