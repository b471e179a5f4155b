//! Inputs of blocks that a training pass keeps, where it recomputes blocks in its backward pass.
//!
//! A block that did not save its activations computes them again from its input. If not all inputs fit, some of them are computed
//! again too, from the last one before that is kept, in the order that computes the fewest blocks (Griewank and Walther 2000,
//! Algorithm 799: revolve).

use std::ops::Range;

/// Maximum number of times that a block is computed for its output in a backward pass.
const MOST_REPEATED: usize = 3;

/// What a training pass keeps for its backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    /// The last blocks of so many save their activations; the others recompute them, with the same bits.
    pub(crate) blocks: usize,
    /// Maximum number of inputs of the others that are kept at once, at least 1.
    pub(crate) inputs: usize,
}

impl Default for Saved {
    fn default() -> Self {
        Self::with_all_inputs(0)
    }
}

impl Saved {
    /// The last `blocks` blocks save their activations, and the others their inputs.
    pub(crate) const fn with_all_inputs(blocks: usize) -> Self {
        Self { blocks, inputs: usize::MAX }
    }

    /// Number of blocks of `layers` that recompute their activations.
    pub(super) fn recomputed(self, layers: usize) -> usize {
        layers.saturating_sub(self.blocks)
    }

    /// How often the backward pass through `layers` blocks computes each of them only for its output, the next one's input.
    pub(crate) fn repeated(self, layers: usize) -> Vec<usize> {
        let recomputed = self.recomputed(layers);
        let (mut kept, mut times) = (KeptInputs::new(self, layers), vec![0; layers]);
        for layer in 0..recomputed {
            if kept.keeps(layer) {
                kept.keep(layer, ());
            }
        }
        for layer in (0..recomputed).rev() {
            kept.take(layer, |(), blocks| {
                times[blocks].iter_mut().for_each(|times| *times += 1);
                Some(())
            });
        }
        times
    }

    /// Number of blocks that are repeated, each as often as that happens.
    pub(crate) fn repetitions(self, layers: usize) -> usize {
        self.repeated(layers).into_iter().sum()
    }

    /// What a pass through `layers` blocks may keep, the most first. Of inputs there are at least so many that no block is
    /// repeated more than [`MOST_REPEATED`] times.
    pub(crate) fn choices(layers: usize) -> impl Iterator<Item = Self> {
        let fewest = (1..=layers).find(|inputs| reach(*inputs, MOST_REPEATED) >= layers).unwrap_or(1);
        let without_blocks = (fewest..layers).rev().map(|inputs| Self { blocks: 0, inputs });
        Self::all_inputs(layers).chain(without_blocks)
    }

    /// Those choices that keep all inputs.
    pub(super) fn all_inputs(layers: usize) -> impl Iterator<Item = Self> {
        (0..=layers).rev().map(Self::with_all_inputs)
    }
}

/// Inputs of blocks, of which the last one is needed first.
pub(super) struct KeptInputs<T> {
    /// Blocks whose inputs the forward pass keeps, in order.
    first: Vec<usize>,
    /// Maximum number that are kept at once.
    limit: usize,
    inputs: Vec<(usize, T)>,
}

impl<T> KeptInputs<T> {
    pub(super) fn new(saved: Saved, layers: usize) -> Self {
        let (recomputed, limit) = (saved.recomputed(layers), saved.inputs.max(1));
        let mut first: Vec<usize> = (0..recomputed.min(1)).collect();
        while let Some(next) = first.last().and_then(|last| next_kept(*last, recomputed, limit - (first.len() - 1))) {
            first.push(next);
        }
        Self { first, limit, inputs: Vec::new() }
    }

    /// Whether the forward pass keeps the input of a block.
    pub(super) fn keeps(&self, layer: usize) -> bool {
        self.first.binary_search(&layer).is_ok()
    }

    pub(super) fn keep(&mut self, layer: usize, input: T) {
        self.inputs.push((layer, input));
    }

    /// Returns the input of a block, the one before that of the last call. `compute` returns the input behind some blocks from that
    /// of the first of them; `None` ends the search.
    pub(super) fn take(&mut self, layer: usize, mut compute: impl FnMut(&T, Range<usize>) -> Option<T>) -> Option<T> {
        loop {
            let (first, input) = self.inputs.last()?;
            if *first == layer {
                return self.inputs.pop().map(|(_, input)| input);
            }
            let next = next_kept(*first, layer + 1, self.limit.saturating_sub(self.inputs.len() - 1));
            let to = next.unwrap_or(layer);
            let computed = compute(input, *first..to)?;
            if next.is_none() {
                return Some(computed);
            }
            self.inputs.push((to, computed));
        }
    }
}

/// The block of `first..end` whose input is kept next while `limit` inputs may be, that of `first` among them; `None` if no other is.
fn next_kept(first: usize, end: usize, limit: usize) -> Option<usize> {
    let blocks = end - first;
    if limit < 2 || blocks < 2 {
        return None;
    }
    let limit = limit.min(blocks);
    // So often is a block of the range repeated at most.
    let repeated = (1..blocks).find(|times| reach(limit, *times) >= blocks)?;
    Some(first + reach(limit, repeated - 1).min(blocks - reach(limit - 1, repeated - 1)))
}

/// Number of blocks that can be reversed with `limit` inputs if each is computed up to `times` times besides: the binomial
/// coefficient of both over one.
fn reach(limit: usize, times: usize) -> usize {
    (1..=times).fold(1_usize, |reached, n| reached.saturating_mul(limit + n) / n)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// Minimum number of repeated blocks for each number of blocks and of inputs.
    fn fewest(blocks: usize) -> Vec<Vec<usize>> {
        let mut table = vec![vec![0; blocks + 1]; blocks + 1];
        for count in 2..=blocks {
            table[count][1] = count * (count - 1) / 2;
            for inputs in 2..=blocks {
                let split = |at: usize| at + table[count - at][inputs - 1] + table[at][inputs];
                table[count][inputs] = (1..count).map(split).min().unwrap().min(table[count][1]);
            }
        }
        table
    }

    #[test]
    fn every_input_is_there_when_it_is_needed_and_as_few_blocks_as_possible_are_repeated() {
        const MOST: usize = 40;
        for (layers, fewest) in fewest(MOST).into_iter().enumerate().skip(1) {
            for (inputs, fewest) in fewest.into_iter().enumerate().take(layers + 1).skip(1) {
                let saved = Saved { blocks: 0, inputs };
                let mut kept = KeptInputs::new(saved, layers);
                // The forward pass reaches the last input by itself.
                let mut forward = 0;
                for layer in (0..layers).filter(|layer| kept.keeps(*layer)).collect::<Vec<_>>() {
                    forward = layer;
                    kept.keep(layer, layer);
                }
                let mut repeated = 0;
                for layer in (0..layers).rev() {
                    assert!(kept.inputs.len() <= inputs, "{layers} blocks, {inputs} inputs");
                    let input = kept.take(layer, |input, blocks| {
                        assert_eq!(*input, blocks.start);
                        repeated += blocks.len();
                        Some(blocks.end)
                    });
                    assert_eq!(input, Some(layer));
                }
                assert!(kept.inputs.is_empty());
                assert_eq!(saved.repetitions(layers), repeated);
                assert_eq!(repeated + forward, fewest, "{layers} blocks, {inputs} inputs");
            }
        }
    }

    #[test]
    fn all_inputs_are_kept_where_there_is_room() {
        for blocks in [0, 3, 8] {
            let saved = Saved::with_all_inputs(blocks);
            let kept = KeptInputs::<()>::new(saved, 8);
            assert_eq!((0..8).filter(|layer| kept.keeps(*layer)).count(), 8 - blocks);
            assert_eq!(saved.repeated(8), [0; 8]);
        }
    }

    #[test]
    fn blocks_are_repeated_a_few_times_at_most() {
        for layers in 1..=100 {
            let choices: Vec<_> = Saved::choices(layers).collect();
            assert_eq!(choices[0], Saved::with_all_inputs(layers));
            let last = choices.last().unwrap();
            assert!(last.repeated(layers).into_iter().max() <= Some(MOST_REPEATED), "{layers}: {last:?}");
        }
        assert_eq!(Saved::choices(30).last(), Some(Saved { blocks: 0, inputs: 4 }));
    }

    #[test]
    fn a_search_ends_where_nothing_is_computed() {
        let mut kept = KeptInputs::new(Saved { blocks: 0, inputs: 1 }, 3);
        kept.keep(0, ());
        assert_eq!(kept.take(2, |(), _| None), None);
    }
}
