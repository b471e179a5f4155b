//! Tokens ordered by their logits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The `k` largest values with their positions, largest first, ties by lowest position; fewer when there are
/// fewer values. NaN counts as -inf.
pub fn topk(values: &[f32], k: usize) -> Vec<(u32, f32)> {
    best(values, k).map(|candidate| (candidate.id(), candidate.value())).collect()
}

/// A token by rank: greater is likelier, and of equals the lower id. One integer, so that comparing is cheap: the
/// value's bits in an order that follows the value, then the id's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    const SIGN: u32 = 1 << 31;

    /// NaN counts as -inf.
    pub(super) fn new(id: u32, value: f32) -> Self {
        // Adding zero makes -0 equal to 0.
        let bits = if value.is_nan() { f32::NEG_INFINITY } else { value + 0.0 }.to_bits();
        let ordered = if bits & Self::SIGN == 0 { bits | Self::SIGN } else { !bits };
        Self(u64::from(ordered) << 32 | u64::from(!id))
    }

    pub(super) fn id(self) -> u32 {
        !(self.0 as u32)
    }

    pub(super) fn value(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered & Self::SIGN == 0 { !ordered } else { ordered & !Self::SIGN })
    }
}

/// The `k` best candidates, best first.
pub(super) fn best(values: &[f32], k: usize) -> impl Iterator<Item = Candidate> {
    let k = k.min(values.len());
    let mut heap = BinaryHeap::with_capacity(k + 1);
    let mut floor = f32::NEG_INFINITY;
    for (id, &value) in (0u32..).zip(values) {
        // Later positions lose ties, so only a larger value can displace one of k.
        if heap.len() == k && (k == 0 || value.is_nan() || value <= floor) {
            continue;
        }
        heap.push(Reverse(Candidate::new(id, value)));
        if heap.len() > k {
            heap.pop();
        }
        floor = heap.peek().map_or(floor, |Reverse(worst)| worst.value());
    }
    heap.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate)
}

/// Moves the best `count` candidates to the front, best first; returns their number.
pub(super) fn sort_first(candidates: &mut [Candidate], count: usize) -> usize {
    let count = count.min(candidates.len());
    if count > 0 && count < candidates.len() {
        candidates.select_nth_unstable_by_key(count - 1, |candidate| Reverse(*candidate));
    }
    candidates[..count].sort_unstable_by_key(|candidate| Reverse(*candidate));
    count
}
