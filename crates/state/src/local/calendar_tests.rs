//! The wheel against a list of all that stands on it.

use proptest::prelude::*;

use super::*;

/// What was told of: number, day, date.
type Told = Vec<(u32, u64, Date)>;

proptest! {
    #[test]
    fn it_is_a_list_in_the_order_of_days(
        steps in prop::collection::vec((0u8..8, any::<u32>(), 0u32..48), 1..300),
        start in prop::sample::select(vec![0u64, 1 << 20, 1_700_000_000_000_000_000]),
    ) {
        let bound = 50;
        let mut wheel = Calendar::new(bound as usize).unwrap();
        let mut told: Told = Vec::new();
        let mut now = start;
        for (action, random, zeroes) in steps {
            let (number, far) = (random % bound, u64::from(random) << zeroes >> 16);
            match action {
                0..=3 => {
                    let end = now.saturating_add(far).saturating_sub(1 << 26);
                    if let Some(at) = told.iter().position(|one| one.0 == number) {
                        let one = told[at];
                        prop_assert_eq!(wheel.is_sooner(end, one.2), day(end) < one.1);
                        wheel.leave(number, one.2);
                        told.remove(at);
                    }
                    let date = wheel.join(number, now, end);
                    let today = wheel.first_day();
                    told.push((number, day(end).clamp(today, today + DAYS - 1), date));
                }
                4 => if let Some(at) = told.iter().position(|one| one.0 == number) {
                    wheel.leave(number, told.remove(at).2);
                }
                // Time may step back, too: what has passed then is over all the same.
                5 if random % 8 == 0 => now = now.saturating_sub(far),
                5 => now += far,
                _ => {
                    let first = told.iter().min_by_key(|one| one.1).copied();
                    prop_assert_eq!(wheel.first(), first.map(|one| one.0));
                    let expected = first.filter(|one| one.1 < day(now));
                    prop_assert_eq!(wheel.over(now), expected.map(|one| one.0));
                    if let Some((number, _, date)) = expected {
                        wheel.leave(number, date);
                        told.retain(|one| one.0 != number);
                    }
                }
            }
            prop_assert_eq!(wheel.len, told.len());
            for (number, of, _) in &told {
                let behind = told.iter().skip_while(|one| one.0 != *number).skip(1).find(|one| one.1 == *of);
                prop_assert_eq!(wheel.after(*number), behind.map(|one| one.0));
            }
        }
    }
}
