//! Targets of the loss head, and gradients with respect to their log-probabilities.

use std::ops::Range;

use crate::tensors::Tensors;

/// Targets of every row of the loss head.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Row `i` has the targets `offsets[i]..offsets[i + 1]`; one more than there are rows.
    pub offsets: Vec<usize>,
    /// Token ids below the vocabulary's size.
    pub ids: Vec<u32>,
}

impl Targets {
    /// Marks a token that is not in a part of a vocabulary.
    pub const ELSEWHERE: u32 = u32::MAX;

    /// Targets of zero rows.
    pub fn empty() -> Self {
        Self { offsets: vec![0], ids: Vec::new() }
    }

    /// Appends the targets of a row.
    pub fn push(&mut self, ids: impl IntoIterator<Item = u32>) {
        self.ids.extend(ids);
        self.offsets.push(self.ids.len());
    }

    /// Returns the targets of consecutive rows.
    #[must_use]
    pub fn of_rows(&self, rows: Range<usize>) -> Self {
        let offsets = &self.offsets[rows.start..=rows.end];
        let first = offsets[0];
        let last = offsets[rows.len()];
        Self { offsets: offsets.iter().map(|offset| offset - first).collect(), ids: self.ids[first..last].to_vec() }
    }

    /// Returns the range of a row's targets.
    pub fn of(&self, row: usize) -> Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }
}

/// Inputs of the loss head's backward pass: rows of the pass that have a gradient.
pub struct HeadGradient<'a, B: Tensors> {
    /// Indices of these rows among those of `Backend::target_logprobs`.
    pub rows: &'a [usize],
    /// The same rows by sequence, as indices in `rows`. The sequences cover all rows, in order.
    pub sequences: &'a [Range<usize>],
    /// Targets of these rows.
    pub targets: &'a Targets,
    /// Gradients of the loss with respect to the targets' log-probabilities.
    pub d_logprobs: &'a [f32],
    /// `None` for a loss that does not depend on the entropies of the rows' distributions.
    pub entropy: Option<EntropyGradient<'a>>,
    /// `None` for a loss that does not depend on divergences from other distributions.
    pub divergence: Option<&'a DivergenceGradient<'a, B>>,
}

impl<B: Tensors> Clone for HeadGradient<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for HeadGradient<'_, B> {}

/// Gradients of the loss with respect to the entropies of rows.
#[derive(Clone, Copy, Debug)]
pub struct EntropyGradient<'a> {
    /// Entropy of each row in nats, over the whole vocabulary.
    pub entropies: &'a [f32],
    /// Gradient with respect to each of them.
    pub d_entropies: &'a [f32],
}

impl EntropyGradient<'_> {
    /// Those of consecutive rows.
    #[must_use]
    pub fn of_rows(&self, rows: Range<usize>) -> Self {
        Self { entropies: &self.entropies[rows.clone()], d_entropies: &self.d_entropies[rows] }
    }

    /// Entropy of a row, and the gradient with respect to it; `None` where that is zero.
    pub fn of(&self, row: usize) -> Option<(f32, f32)> {
        let d = self.d_entropies[row];
        (d != 0.0).then(|| (self.entropies[row], d))
    }
}

/// Distributions over the same vocabulary that those of rows are compared with: of an unembedding without adapters.
pub struct ReferenceRows<'a, B: Tensors> {
    /// The unembedding, or the part of it that is here: as many tokens as the rows' own has.
    pub unembedding: &'a B::Matrix,
    /// Normalised hidden states of the rows, gathered: `[rows, hidden]`.
    pub hidden: &'a B::Rows,
    /// Log-sum-exp of each row's logits, over the whole vocabulary.
    pub lse: &'a [f32],
}

/// Gradients of the loss with respect to the divergences of rows.
pub struct DivergenceGradient<'a, B: Tensors> {
    /// The distributions that the rows diverge from.
    pub reference: ReferenceRows<'a, B>,
    /// Divergence of each row in nats, over the whole vocabulary.
    pub divergences: &'a [f32],
    /// Gradient with respect to each of them.
    pub d_divergences: &'a [f32],
}
