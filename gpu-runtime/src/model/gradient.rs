//! A request's gradient while microbatches add to it.

use std::collections::BTreeMap;

use super::params::{Gradients, ParamLayout};

/// A gradient that does not depend on how the examples are cut into microbatches.
///
/// Where the unembedding is the token embedding, both add to one array: the unembedding first, then the lookups. The
/// lookups of a microbatch would come before the unembedding of the next one, so they are summed apart until
/// [`GradientSum::finish`]. Only rows of tokens that occur take memory.
pub struct GradientSum {
    /// By parameter, without the lookups of tied embeddings.
    pub(super) values: Gradients,
    /// Gradients of tied embeddings as inputs, by token.
    lookups: BTreeMap<u32, Vec<f32>>,
}

impl GradientSum {
    /// Adds to `values`, zeros as a rule.
    pub fn new(values: Gradients) -> Self {
        Self { values, lookups: BTreeMap::new() }
    }

    /// Adds the gradient by the residual stream before the first block, `[tokens, hidden]`, to the tokens' embeddings.
    pub(super) fn add_lookups(&mut self, layout: &ParamLayout, hidden: usize, tokens: &[u32], dx: &[f32]) {
        let tied = layout.head == layout.embed;
        for (token, dx) in tokens.iter().zip(dx.chunks_exact(hidden)) {
            let row = if tied {
                self.lookups.entry(*token).or_insert_with(|| vec![0.0; hidden])
            } else {
                &mut self.values[layout.embed][*token as usize * hidden..][..hidden]
            };
            add(row, dx);
        }
    }

    /// The whole gradient, when all microbatches have been added.
    pub fn finish(mut self, layout: &ParamLayout) -> Gradients {
        for (token, row) in self.lookups {
            add(&mut self.values[layout.embed][token as usize * row.len()..], &row);
        }
        self.values
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
