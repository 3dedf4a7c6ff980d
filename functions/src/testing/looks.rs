//! That refusals look at no more entries than time pays for.

use catena_state::looks::looked;

/// Hold that refusals look at no more entries than time pays for: one each 1,024 ns in a flood of ten million
/// packets a second, and 512 for each that comes a millisecond after the last.
///
/// `refuse` sends a packet that is refused, so many ns after the one before.
pub fn assert_few(mut refuse: impl FnMut(u64)) {
    // What time before has paid for is spent first.
    (0..10_000).for_each(|_| refuse(100));
    let before = looked();
    (0..10_000).for_each(|_| refuse(100));
    let flood = looked() - before;
    assert!(flood <= 10_000 * 100 / 1024 + 16, "{flood} entries for 10,000 refusals in a flood");
    for _ in 0..100 {
        let before = looked();
        refuse(1_000_000);
        let alone = looked() - before;
        assert!(alone <= 512, "{alone} entries for a refusal alone");
    }
}
