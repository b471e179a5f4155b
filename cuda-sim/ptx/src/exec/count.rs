//! Cost of a warp's memory instruction: sectors of global memory, passes over the banks of shared memory.

use crate::exec::access::resolve;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::instruction::Space;
use crate::row::{LANES, Row};

/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Banks of shared memory, each 4 bytes wide.
const BANKS: u64 = 32;

impl Machine<'_> {
    /// Adds one instruction's accesses of `length` bytes each.
    pub(crate) fn count(&mut self, space: Space, addresses: &Row, active: u32, length: usize, write: bool) {
        let Some(first) = lanes(active).next() else { return };
        let bytes = u64::from(active.count_ones()) * length as u64;
        let counters = &mut self.counters;
        match resolve(space, addresses[first]).0 {
            Space::Global => {
                counters.global_requests += 1;
                counters.global_sectors += distinct(addresses, active, length as u64, SECTOR);
                *(if write { &mut counters.global_store_bytes } else { &mut counters.global_load_bytes }) += bytes;
            }
            Space::Shared => {
                counters.shared_requests += 1;
                counters.bank_conflicts += conflicts(addresses, active, length as u64);
                *(if write { &mut counters.shared_store_bytes } else { &mut counters.shared_load_bytes }) += bytes;
            }
            _ => {}
        }
    }
}

/// Aligned units of `unit` bytes that the accesses touch: ascending, each once, and how many there are.
fn units(addresses: &Row, active: u32, length: u64, unit: u64) -> ([u64; LANES * 2], usize) {
    let mut units = [0; LANES * 2];
    let mut found = 0;
    let mut ascending = true;
    for lane in lanes(active) {
        for unit in addresses[lane] / unit..=(addresses[lane] + length - 1) / unit {
            if found == 0 || units[found - 1] != unit {
                ascending &= found == 0 || units[found - 1] < unit;
                units[found] = unit;
                found += 1;
            }
        }
    }
    if ascending {
        return (units, found);
    }
    units[..found].sort_unstable();
    let mut kept = 1;
    for index in 1..found {
        if units[index] != units[kept - 1] {
            units[kept] = units[index];
            kept += 1;
        }
    }
    (units, kept)
}

/// How many aligned units of `unit` bytes the accesses touch.
fn distinct(addresses: &Row, active: u32, length: u64, unit: u64) -> u64 {
    units(addresses, active, length, unit).1 as u64
}

/// Passes beyond the first of each part of the warp: accesses of 8 bytes go by halves, of 16 by quarters.
fn conflicts(addresses: &Row, active: u32, length: u64) -> u64 {
    let lanes_at_once = match length {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let mut extra = 0;
    for part in (0..LANES).step_by(lanes_at_once) {
        let of_part = active & ((u64::from(u32::MAX) >> (LANES - lanes_at_once) << part) as u32);
        let (words, found) = units(addresses, of_part, length, 4);
        let mut banks = [0u64; BANKS as usize];
        for word in &words[..found] {
            banks[(word % BANKS) as usize] += 1;
        }
        extra += banks.into_iter().max().unwrap_or(0).saturating_sub(1);
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_request() {
        let rows = |stride: u64| std::array::from_fn(|lane| 0x1000 + lane as u64 * stride);
        assert_eq!(distinct(&rows(4), u32::MAX, 4, SECTOR), 4);
        assert_eq!(distinct(&rows(16), u32::MAX, 16, SECTOR), 16);
        assert_eq!(distinct(&rows(128), u32::MAX, 4, SECTOR), 32);
        let reversed = std::array::from_fn(|lane| 0x1000 + (31 - lane as u64) * 4);
        assert_eq!(distinct(&reversed, u32::MAX, 4, SECTOR), 4);
    }

    #[test]
    fn conflicts_of_banks() {
        let rows = |stride: u64| std::array::from_fn(|lane| lane as u64 * stride);
        assert_eq!(conflicts(&rows(4), u32::MAX, 4), 0);
        assert_eq!(conflicts(&rows(8), u32::MAX, 4), 1);
        assert_eq!(conflicts(&rows(128), u32::MAX, 4), 31);
        // One word for all lanes is a broadcast.
        assert_eq!(conflicts(&rows(0), u32::MAX, 4), 0);
        assert_eq!(conflicts(&rows(16), u32::MAX, 16), 0);
    }
}
