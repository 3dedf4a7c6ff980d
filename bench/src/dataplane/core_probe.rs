//! Whether a worker has a core to itself just now.
//!
//! A virtual CPU is a hardware thread that the host chooses, and the guest is not told which. Two of them may be
//! the two threads of one core, or share theirs with another guest. Then they also share its execution units, and
//! code that keeps those busy runs slower, down to half, though neither memory nor time on the CPU is lost.
//!
//! The probe is such code: additions and bit counts in registers, six independent chains, enough to occupy every
//! integer unit of a core. It touches no memory, so nothing that two workers share in this program can slow it.

use std::hint::black_box;

use catena_dataplane::clock;
use catena_records::record::median;

/// A probe is the median of so many turns of so many iterations (about 10 µs each): an interrupt does not count.
const TURNS: usize = 41;
const ITERATIONS: u32 = 4000;

/// Return the cycles per iteration that this thread needs just now.
pub fn cycles() -> f64 {
    let mut turns = [0.0; TURNS];
    for cycles in &mut turns {
        let start = clock::cycles();
        occupy(ITERATIONS);
        *cycles = (clock::cycles() - start) as f64 / f64::from(ITERATIONS);
    }
    median(&mut turns).0
}

#[inline(never)]
fn occupy(iterations: u32) {
    let mut chains: [u64; 6] = black_box([1, 2, 3, 4, 5, 6]);
    for _ in 0..iterations {
        for chain in &mut chains {
            *chain = chain.wrapping_add(u64::from(chain.leading_zeros()));
        }
    }
    black_box(chains);
}
