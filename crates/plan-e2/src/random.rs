//! The baseline "that places nodes on servers at random" (Lan's dissertation, §3.6.2), and the random numbers.

use super::traffic::{NoRoom, Places};

/// Random numbers that a seed determines (SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom
/// Number Generators", 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next one.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `n`, which is more than 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.number()) * n as u128) >> 64) as usize
    }

    /// One from 0 (included) to 1 (not).
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Give each of `instances` a core chosen evenly among all that are left.
///
/// # Errors
/// When there are fewer cores than instances.
pub fn place(instances: usize, cores: &[u32], random: &mut Random) -> Result<Places, NoRoom> {
    NoRoom::check(instances, cores)?;
    let mut slots: Vec<usize> =
        cores.iter().enumerate().flat_map(|(server, &n)| std::iter::repeat_n(server, n as usize)).collect();
    let mut places = Places { server: Vec::with_capacity(instances), free: cores.to_vec() };
    for i in 0..instances {
        let chosen = i + random.below(slots.len() - i);
        slots.swap(i, chosen);
        places.server.push(slots[i]);
        places.free[slots[i]] -= 1;
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_gets_its_part_and_never_more() {
        let mut seen = [0_u32; 3];
        for seed in 0..1000 {
            let places = place(4, &[2, 4, 2], &mut Random::new(seed)).unwrap();
            assert_eq!(places.free.iter().sum::<u32>(), 4);
            places.server.iter().for_each(|&s| seen[s] += 1);
        }
        assert!((900..1100).contains(&seen[0]) && (1850..2150).contains(&seen[1]), "{seen:?}");
        assert!(place(9, &[2, 4, 2], &mut Random::new(1)).is_err());
    }
}
