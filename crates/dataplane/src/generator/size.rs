//! Lengths of packets, and packets in a flow, drawn at random.

use catena_packet::random::Random;

use super::spec::{Length, Size};

impl Size {
    /// Draw the length of a packet, in bytes.
    #[inline]
    pub(super) fn draw(self, random: &mut Random) -> usize {
        match self {
            Size::Fixed(size) => size,
            Size::Imix => match random.below(12) {
                0..7 => 64,
                7..11 => 594,
                _ => 1518,
            },
            Size::Uniform(least, most) => least + random.below((most - least) as u32 + 1) as usize,
        }
    }
}

impl Length {
    /// Draw how many packets a flow has, at least 1.
    pub(super) fn draw(self, random: &mut Random) -> u64 {
        // In (0, 1], so that its logarithm is finite.
        let mut unit = || 1.0 - random.unit();
        match self {
            Length::Endless => u64::MAX,
            Length::Fixed(packets) => packets,
            Length::Geometric(mean) if mean <= 1.0 => 1,
            // By inversion; `as` saturates.
            Length::Geometric(mean) => ((unit().ln() / (-1.0 / mean).ln_1p()).ceil() as u64).max(1),
            Length::Pareto(shape, least) => (least / unit().powf(1.0 / shape)) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(length: Length) -> f64 {
        let mut random = Random::new(3);
        (0..200_000).map(|_| length.draw(&mut random) as f64).sum::<f64>() / 200_000.0
    }

    #[test]
    fn flows_are_as_long_as_asked() {
        assert_eq!(Length::Fixed(7).draw(&mut Random::new(1)), 7);
        assert!((mean(Length::Geometric(20.0)) / 20.0 - 1.0).abs() < 0.02);
        assert_eq!(mean(Length::Geometric(1.0)), 1.0);
        // The mean of a Pareto distribution is least · shape / (shape - 1), here 15; whole packets cost half of one.
        assert!((mean(Length::Pareto(3.0, 10.0)) / 14.5 - 1.0).abs() < 0.02);
        let mut random = Random::new(4);
        let lengths: Vec<u64> = (0..100_000).map(|_| Length::Pareto(1.3, 10.0).draw(&mut random)).collect();
        assert!(lengths.iter().all(|l| *l >= 10));
        // P(X >= 100) = (10 / 100)^1.3 = 5.0%.
        let long = lengths.iter().filter(|l| **l >= 100).count();
        assert!((4_700..5_300).contains(&long), "{long}");
    }

    #[test]
    fn imix_is_seven_to_four_to_one() {
        let mut random = Random::new(5);
        let mut counts = [0u32; 3];
        for _ in 0..120_000 {
            match Size::Imix.draw(&mut random) {
                64 => counts[0] += 1,
                594 => counts[1] += 1,
                1518 => counts[2] += 1,
                other => panic!("{other} bytes"),
            }
        }
        let near = |count: u32, wanted: u32| count.abs_diff(wanted) < wanted / 20;
        assert!(near(counts[0], 70_000) && near(counts[1], 40_000) && near(counts[2], 10_000), "{counts:?}");
    }
}
