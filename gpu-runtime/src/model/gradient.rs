//! A request's gradient while microbatches add to it.

use super::params::ParamTable;
use crate::backend::{Backend, EmbeddingGradient};

/// A gradient that does not depend on how the examples are cut into microbatches.
///
/// Where the unembedding is the token embedding, both add to one array: the unembedding first, then the lookups. The
/// lookups of a microbatch would come before the unembedding of the next one, so they are summed separately until
/// [`GradientSum::finish`]. Only rows of tokens that occur take memory.
pub(crate) struct GradientSum<B: Backend> {
    /// By parameter, without the lookups of tied embeddings.
    pub(super) values: B::Params,
    /// Gradients of tied embeddings as inputs, by token.
    lookups: B::EmbeddingSums,
}

impl<B: Backend> GradientSum<B> {
    /// Adds to `values`, zeros as a rule.
    pub(crate) fn new(values: B::Params) -> Self {
        Self { values, lookups: B::EmbeddingSums::default() }
    }

    /// Adds the gradient with respect to the residual stream before the first block, `[tokens, hidden]`, to the tokens'
    /// embeddings, which are scaled by `scale`.
    pub(super) fn add_lookups(&mut self, backend: &B, table: &ParamTable, tokens: &[u32], dx: &B::Rows, scale: f32) {
        let into = match table.head == table.embed {
            true => EmbeddingGradient::Sums(&mut self.lookups),
            false => EmbeddingGradient::Param(&mut self.values, table.embed),
        };
        backend.embed_backward(tokens, dx, scale, into);
    }

    /// The gradient, after all microbatches have been added.
    pub(crate) fn finish(mut self, backend: &B, table: &ParamTable) -> B::Params {
        backend.add_embedding_sums(self.lookups, &mut self.values, table.embed);
        self.values
    }
}
