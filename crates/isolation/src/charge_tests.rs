//! Charges add up, whatever a softirq did.

use proptest::prelude::*;

use super::*;

fn slots() -> impl Strategy<Value = Vec<Slot>> {
    let account = prop_oneof![(1..6u64).prop_map(Account::Cgroup), Just(Account::Dropped), Just(Account::Forwarded)];
    let slot = (account, 0..3_000_000u64, 0..600u64).prop_map(|(account, ns, packets)| Slot { account, ns, packets });
    prop::collection::vec(slot, 0..16)
}

pub(crate) fn softirqs() -> impl Strategy<Value = Softirq> {
    let unclaimed = prop_oneof![Just(0), 0..300u64];
    let owed = prop_oneof![Just(0), 0..2_000_000u64];
    let all = (slots(), 0..2_000_000u64, owed, 0..2_000_000u64, unclaimed);
    all.prop_map(|(slots, fixed, owed, pending, unclaimed)| Softirq { slots, fixed, owed, pending, unclaimed })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn charges_add_up_to_the_softirq(softirq in softirqs()) {
        prop_assert_eq!(softirq.settle().values().sum::<u64>(), softirq.total());
    }

    #[test]
    fn nobody_is_charged_less_than_the_own_work(softirq in softirqs()) {
        let charges = softirq.settle();
        for slot in &softirq.slots {
            let own: u64 = softirq.slots.iter().filter(|s| s.account == slot.account).map(|s| s.ns).sum();
            prop_assert!(charges[&slot.account] >= own);
        }
    }

    #[test]
    fn fixed_costs_are_shared_by_packets(softirq in softirqs()) {
        let weight = softirq.unclaimed + softirq.slots.iter().map(|s| s.packets).sum::<u64>();
        prop_assume!(weight > 0);
        let shared = if softirq.unclaimed == 0 { softirq.fixed + softirq.pending } else { softirq.fixed } + softirq.owed;
        let charges = softirq.settle();
        for (account, charge) in charges.iter().filter(|(account, _)| matches!(account, Account::Cgroup(_))) {
            let of = softirq.slots.iter().filter(|s| s.account == *account);
            let (own, packets) = of.fold((0, 0), |(ns, packets), s| (ns + s.ns, packets + s.packets));
            let exact = shared as f64 * packets as f64 / weight as f64;
            // Each slot is rounded once, to whole nanoseconds, and passes on what those before it left.
            prop_assert!(((charge - own) as f64 - exact).abs() <= softirq.slots.len() as f64, "{} {}", charge - own, exact);
        }
    }

    #[test]
    fn accounts_have_one_key_each(key in any::<u64>(), kind in 0..8u64) {
        for key in [key, NOBODY | kind] {
            prop_assert_eq!(Account::from_key(key).key(), key);
        }
    }

    #[test]
    fn what_came_since_is_the_difference(softirqs in prop::collection::vec(softirqs(), 1..8), half in 0..8usize) {
        let (mut accounts, mut before, mut later) = (Accounts::default(), Accounts::default(), 0);
        for (at, softirq) in softirqs.iter().enumerate() {
            if at == half {
                before = accounts.clone();
            }
            later += if at >= half || half >= softirqs.len() { softirq.total() } else { 0 };
            for (account, ns) in softirq.settle() {
                accounts.add(account, &Charge { ns, ..Charge::default() });
            }
            accounts.add_totals(&Totals { receive_ns: softirq.total(), ..Totals::default() });
        }
        let came = accounts.since(&before);
        prop_assert_eq!((came.measured(), came.charged()), (later, later));
        prop_assert!(came.gap() == 0.0 && came.unattributed() <= came.charged());
    }
}

#[test]
fn pending_time_is_nobodys_where_a_packet_was_not_claimed() {
    let slot = Slot { account: Account::Cgroup(7), ns: 100, packets: 3 };
    let softirq = Softirq { slots: vec![slot], fixed: 40, owed: 0, pending: 60, unclaimed: 1 };
    assert_eq!(softirq.settle(), [(Account::Cgroup(7), 130), (Account::NoSocket, 70)].into());
    let softirq = Softirq { unclaimed: 0, ..softirq };
    assert_eq!(softirq.settle(), [(Account::Cgroup(7), 200)].into());
}

#[test]
fn cpus_are_summed_also_where_one_took_back_what_another_charged() {
    let of = |ns: i64, packets: i64| Charge {
        ns: ns.cast_unsigned(),
        packets: packets.cast_unsigned(),
        ..Charge::default()
    };
    assert_eq!(Charge::sum([of(900, 3), of(-400, -1)]), of(500, 2));
    assert_eq!(Charge::sum([of(100, 1), of(-400, -1)]), of(0, 0));
}

#[test]
fn what_is_taken_back_in_a_later_interval_is_no_gap() {
    let accounts = |measured: u64, nobodys: u64, cgroups: u64| {
        let mut accounts = Accounts::default();
        accounts.add_totals(&Totals { receive_ns: measured, ..Totals::default() });
        accounts.add(Account::NoSocket, &Charge { ns: nobodys, ..Charge::default() });
        accounts.add(Account::Cgroup(1), &Charge { ns: cgroups, ..Charge::default() });
        accounts
    };
    // Of 100 that were nobody's, 80 are a cgroup's now; 30 came besides.
    let came = accounts(130, 20, 110).since(&accounts(100, 100, 0));
    assert_eq!((came.measured(), came.charged(), came.charges[&Account::Cgroup(1)].ns), (30, 30, 110));
    assert!(came.gap() == 0.0);
}

#[test]
fn a_softirq_without_packets_is_of_no_packet() {
    assert_eq!(Softirq { fixed: 9, ..Softirq::default() }.settle(), [(Account::NoPacket, 9)].into());
}

#[test]
fn who_sends_pays_for_softirqs_before_that_sent_nothing() {
    let slot = |cgroup, packets| Slot { account: Account::Cgroup(cgroup), ns: 10, packets };
    let softirq = Softirq { slots: vec![slot(7, 3), slot(8, 1)], fixed: 10, owed: 30, ..Softirq::default() };
    assert_eq!(softirq.settle(), [(Account::Cgroup(7), 40), (Account::Cgroup(8), 20)].into());
    // Where nothing is sent again it stays owed.
    let empty = Softirq { slots: vec![], ..softirq };
    assert_eq!(empty.settle(), [(Account::NoPacket, 10)].into());
}

#[test]
fn a_gap_is_a_part_of_what_was_measured() {
    let mut accounts = Accounts::default();
    assert!(accounts.gap() == 0.0);
    accounts.add_totals(&Totals { receive_ns: 120, transmit_ns: 50, softirqs: 2, interrupt_ns: 30 });
    accounts.add(Account::Cgroup(1), &Charge { ns: 150, ..Charge::default() });
    accounts.add(Account::NoPacket, &Charge { ns: 40, ..Charge::default() });
    assert!((accounts.gap() - 0.05).abs() < 1e-12);
    assert_eq!(accounts.unattributed(), 40);
}
