//! A request's gradient while microbatches add to it.

use super::params::{ParamTable, TrainedParams};
use super::vocabulary::held;
use super::weights::Model;
use crate::backend::{Backend, EmbeddingGradient};
use crate::collective::Ranks;

/// The global L2 norm of a run's gradient `a`, or of `a + b`, over all ranks. Squares of the arrays are summed in
/// order, rank by rank, then over `replicas`, each of which has a part. Finite exactly when all elements are.
pub(crate) fn gradient_norm<'a, B: Backend>(
    backend: &B,
    model: &Model<B>,
    replicas: &Ranks,
    what: impl Into<TrainedParams<'a>>,
    a: &B::Params,
    b: Option<&B::Params>,
) -> f64 {
    let sums = backend.squared_norms(a, b);
    if model.ranks.is_single() {
        return replicas.sum(sums.iter().sum()).sqrt();
    }
    let trained = model.table.trained(&model.config, what);
    let counted = trained.iter().zip(sums).filter(|(spec, _)| model.shard.counts(spec));
    replicas.sum(model.ranks.sum(counted.map(|(_, sum)| sum).sum())).sqrt()
}

/// A gradient that does not depend on how the examples are cut into microbatches.
///
/// Where the unembedding is the token embedding, both add to one array: the unembedding first, then the lookups. The
/// lookups of a microbatch would come before the unembedding of the next one, so they are summed separately until
/// [`GradientSum::finish`]. Only rows of tokens that occur take memory.
pub(crate) struct GradientSum<B: Backend> {
    /// Gradients by parameter, without the lookups of tied embeddings.
    pub(super) values: B::Params,
    /// Gradients of tied embeddings as inputs, by token.
    lookups: B::EmbeddingSums,
}

impl<B: Backend> GradientSum<B> {
    /// Adds to `values`, of [`Backend::begin_gradient`] as a rule.
    pub(crate) fn new(values: B::Params) -> Self {
        Self { values, lookups: B::EmbeddingSums::default() }
    }

    /// Adds the gradient with respect to the residual stream before the first block, `[tokens, hidden]`, to the
    /// embeddings of the tokens that this rank holds.
    pub(super) fn add_lookups(&mut self, backend: &B, model: &Model<B>, tokens: &[u32], dx: &B::Rows) {
        let (table, c) = (&model.table, &model.config);
        let into = match table.head == table.embed {
            true => EmbeddingGradient::Sums(&mut self.lookups),
            false => EmbeddingGradient::Param(&mut self.values, table.embed),
        };
        if !model.shares_vocabulary() {
            return backend.embed_backward(tokens, dx, c.embedding_scale, into);
        }
        let (at, own) = held(c, tokens);
        backend.embed_backward(&own, &backend.gather(dx, &at), c.embedding_scale, into);
    }

    /// The final values, with the lookups of tied embeddings added.
    pub(super) fn with_lookups(mut self, backend: &B, table: &ParamTable) -> B::Params {
        backend.add_embedding_sums(self.lookups, &mut self.values, table.embed);
        backend.finish_gradient(&mut self.values);
        self.values
    }

    /// The gradient of what a run trains, after all microbatches have been added, with what other ranks have of
    /// it.
    pub(crate) fn finish<'a>(self, backend: &B, model: &Model<B>, what: impl Into<TrainedParams<'a>>) -> B::Params {
        let mut values = self.with_lookups(backend, &model.table);
        if !model.ranks.is_single() {
            let trained = model.table.trained(&model.config, what);
            model.shard.reduce_gradients(&model.tensor_ranks, &trained, &mut values);
        }
        values
    }
}
