//! The branches that a program takes, where the compiler counts them (`make fuzz`).

#![allow(unsafe_code, reason = "counters of the compiler, for tests")]

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Address of the first counter and number of counters, for each part of the program that has its own.
static PARTS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Adds counters. Each compiled module calls this before `main`, mostly with the counters of all modules.
// SAFETY: no other function of these programs has this name.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    let part = (start as usize, (end as usize).saturating_sub(start as usize));
    let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !parts.contains(&part) {
        parts.push(part);
    }
}

/// Which counters had which magnitudes so far.
pub(crate) struct Coverage {
    /// Eight counters each, whose bytes are read together.
    words: Vec<&'static [AtomicU64]>,
    /// A bit per magnitude of each counter.
    seen: Vec<u8>,
    branches: usize,
}

impl Coverage {
    /// Returns nothing that was seen; `None` if the program has no counters.
    pub(crate) fn new() -> Option<Self> {
        let parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<_> = parts.iter().map(|&(start, length)| words(start, length)).collect();
        let count: usize = words.iter().map(|words| words.len() * 8).sum();
        (count > 0).then(|| Self { words, seen: vec![0; count], branches: 0 })
    }

    /// Sets all counters to zero.
    pub(crate) fn reset(&self) {
        self.words.iter().copied().flatten().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Returns whether a counter has a magnitude that it did not have before.
    pub(crate) fn has_new(&mut self) -> bool {
        let mut new = false;
        for (word, seen) in self.words.iter().copied().flatten().zip(self.seen.chunks_exact_mut(8)) {
            let counters = word.load(Ordering::Relaxed);
            if counters == 0 {
                continue;
            }
            for (counter, seen) in counters.to_ne_bytes().into_iter().zip(seen) {
                let magnitude = magnitude(counter);
                self.branches += usize::from(*seen == 0 && magnitude != 0);
                new |= *seen & magnitude != magnitude;
                *seen |= magnitude;
            }
        }
        new
    }

    /// Returns the number of branches that were taken.
    pub(crate) fn branches(&self) -> usize {
        self.branches
    }
}

/// Returns the counters in whole words; up to seven at either end are left out.
fn words(start: usize, length: usize) -> &'static [AtomicU64] {
    let first = start.next_multiple_of(8);
    let count = (start + length).saturating_sub(first) / 8;
    // SAFETY: the words are within the counters, which exist as long as the program, and are aligned. The program itself
    // counts without atomics: a count that is lost to another thread changes only what is tried next.
    unsafe { slice::from_raw_parts(first as *const AtomicU64, count) }
}

/// Returns the bit of a count: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, or more.
fn magnitude(count: u8) -> u8 {
    match count {
        0 => 0,
        1..=3 => 1 << (count - 1),
        4..=7 => 1 << 3,
        8..=15 => 1 << 4,
        16..=31 => 1 << 5,
        32..=127 => 1 << 6,
        _ => 1 << 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_new_once_per_magnitude() {
        let counters: &'static [AtomicU64] = Box::leak((0..3).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>());
        // A counter at an unaligned end is left out.
        let found = words(counters.as_ptr() as usize + 1, 20);
        assert_eq!(found.as_ptr(), counters[1..].as_ptr());
        assert_eq!(found.len(), 1);
        let mut coverage = Coverage { words: vec![counters], seen: vec![0; 24], branches: 0 };
        let mut news = Vec::new();
        for counts in [
            [0; 8],
            [0, 0, 1, 0, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, 0],
            [0, 0, 5, 0, 0, 0, 0, 0],
            [9, 0, 6, 0, 0, 0, 0, 0],
        ] {
            coverage.reset();
            counters[1].store(u64::from_ne_bytes(counts), Ordering::Relaxed);
            news.push(coverage.has_new());
        }
        assert_eq!((news, coverage.branches()), (vec![false, true, false, true, true], 2));
    }
}
