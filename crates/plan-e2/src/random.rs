//! The baseline "that places nodes on servers at random" (Lan's dissertation, §3.6.2).

use catena_plan_model::random::Random;

use super::traffic::{NoRoom, Places, Traffic};

/// Give each of `instances` a core chosen evenly among all that are left.
///
/// # Errors
/// When there are fewer cores than instances.
pub fn place(instances: usize, cores: &[u32], random: &mut Random) -> Result<Places, NoRoom> {
    NoRoom::check(&Traffic::between(instances, &[]), cores)?;
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
