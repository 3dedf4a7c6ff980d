//! How many memory blocks a match-action table takes, and how it is cut when a stage is too small for it.
//!
//! Blocks and word widths are those of RMT chips (Bosshart et al., "Forwarding Metamorphosis", 2013, and
//! Tofino after it): SRAM blocks of 1,024 words of 128 bits, TCAM blocks of 512 words of 44 bits.

use crate::catalogue::{Match, Table};
use crate::rack::Stages;

/// Words of an SRAM block.
const SRAM_WORDS: u64 = 1024;
/// Bits of an SRAM word.
const SRAM_BITS: u64 = 128;
/// Words of a TCAM block.
const TCAM_WORDS: u64 = 512;
/// Bits of a TCAM word.
const TCAM_BITS: u64 = 44;
/// Bits that an entry has beside key and action data: which action, where its data is, which table is next.
const ENTRY_BITS: u64 = 32;

/// SRAM blocks, TCAM blocks and table numbers that something takes of a stage.
pub(super) type Demand = [u32; 3];

/// What `entries` entries of `table` take of one stage.
pub(super) fn demand(table: &Table, entries: u32) -> Demand {
    let (key, action, entries) = (u64::from(table.key_bits), u64::from(table.action_bits), u64::from(entries));
    let (sram, tcam) = match table.matching {
        Match::None => (0, 0),
        Match::Exact => (sram(entries, key + ENTRY_BITS) + sram(entries, action), 0),
        Match::Ternary | Match::Prefix => (sram(entries, ENTRY_BITS) + sram(entries, action), tcam(entries, key)),
        // Ranges are kept as one bit for each value of a nibble's half: twice the key's width.
        Match::Range => (sram(entries, ENTRY_BITS) + sram(entries, action), tcam(entries, 2 * key)),
    };
    [u32::try_from(sram).unwrap_or(u32::MAX), u32::try_from(tcam).unwrap_or(u32::MAX), 1]
}

/// What each stage has.
pub(super) fn capacity(stages: &Stages) -> Demand {
    [stages.sram_blocks, stages.tcam_blocks, stages.tables]
}

/// The parts of `table`: one, unless it is larger than an empty stage. Then as many entries as a stage holds
/// go in each part, and the rest in the last one; None: a stage holds not even one entry, or parts would
/// fill more than `limit` stages.
pub(super) fn parts(table: &Table, stage: &Demand, limit: usize) -> Option<Vec<Demand>> {
    let fits = |entries: u32| demand(table, entries).iter().zip(stage).all(|(need, there)| need <= there);
    let entries = table.entries.max(1);
    if fits(entries) {
        return Some(vec![demand(table, entries)]);
    }
    if !fits(1) {
        return None;
    }
    let (mut most, mut too_many) = (1, entries);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if fits(middle) { most = middle } else { too_many = middle }
    }
    let full = (entries / most) as usize;
    if full > limit {
        return None;
    }
    let mut parts = vec![demand(table, most); full];
    if !entries.is_multiple_of(most) {
        parts.push(demand(table, entries % most));
    }
    Some(parts)
}

/// Blocks for `entries` entries of `bits` bits: several share a word if it is wide enough, else one takes
/// several words side by side.
fn sram(entries: u64, bits: u64) -> u64 {
    match bits {
        0 => 0,
        1..=SRAM_BITS => entries.div_ceil(SRAM_WORDS * (SRAM_BITS / bits)),
        _ => entries.div_ceil(SRAM_WORDS) * bits.div_ceil(SRAM_BITS),
    }
}

fn tcam(entries: u64, bits: u64) -> u64 {
    entries.div_ceil(TCAM_WORDS) * bits.max(1).div_ceil(TCAM_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(matching: Match, key_bits: u32, action_bits: u32, entries: u32) -> Table {
        Table { name: "t".into(), matching, key_bits, action_bits, entries, entries_per_unit: 0.0, after: Vec::new() }
    }

    #[test]
    fn a_translation_table_of_12000_flows_takes_30_blocks() {
        // 104 + 32 bits: two words a flow, 12 × 2 blocks; 48 bits of action: two a word, 6 blocks.
        assert_eq!(demand(&table(Match::Exact, 104, 48, 12_000), 12_000), [30, 0, 1]);
    }

    #[test]
    fn masks_and_ranges_lie_in_tcam() {
        assert_eq!(demand(&table(Match::Ternary, 104, 1, 1_000), 1_000), [2, 6, 1]);
        assert_eq!(demand(&table(Match::Prefix, 32, 16, 513), 513), [2, 2, 1]);
        assert_eq!(demand(&table(Match::Range, 32, 0, 10), 10), [1, 2, 1]);
        assert_eq!(demand(&table(Match::None, 32, 16, 10), 10), [0, 0, 1]);
    }

    #[test]
    fn a_table_larger_than_a_stage_is_cut() {
        let big = table(Match::Exact, 96, 0, 100_000);
        let cut = parts(&big, &[80, 24, 16], 12).unwrap();
        assert_eq!(cut, [[80, 0, 1], [18, 0, 1]]);
        assert_eq!(parts(&big, &[80, 24, 16], 0), None);
        assert_eq!(parts(&table(Match::Ternary, 96, 0, 1), &[80, 2, 16], 12), None, "three blocks wide");
        assert_eq!(parts(&table(Match::Exact, 8, 8, 0), &[80, 2, 16], 12).unwrap().len(), 1);
    }
}
