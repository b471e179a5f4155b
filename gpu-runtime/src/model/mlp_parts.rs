//! The MLP of a block over parts of a long batch: what is as wide as the MLP is in memory for one part at a time.

use super::backward_pass::Backward;
use super::block_pass::BlockPass;
use super::mlp_weights::Mlp;
use super::parts::Part;
use crate::backend::{Backend, GradientSinks, Rows};

impl<B: Backend> Part<B> {
    fn pass<'p>(&'p self, whole: &BlockPass<'p, B>) -> BlockPass<'p, B> {
        BlockPass { groups: &self.groups, positions: &whole.positions[self.rows.clone()], ..*whole }
    }
}

impl<B: Backend> BlockPass<'_, B> {
    /// The residual stream `x` after the MLP.
    pub(super) fn mlp_in_parts(&self, layer: usize, mlp: &Mlp<B>, x: &B::Rows) -> B::Rows {
        let backend = self.backend;
        let mut out = backend.alloc(x.rows(), x.width());
        for part in Part::all(self.spans.iter().map(|span| &span.rows), self.groups) {
            let rows = part.indices();
            let (sum, _) = part.pass(self).mlp(layer, mlp, backend.gather(x, &rows));
            backend.scatter(&sum, &rows, &mut out);
        }
        out
    }
}

impl<B: Backend> Backward<'_, '_, '_, B> {
    /// Adds the gradient with respect to `x`, the residual stream before the MLP, to `dx`, that behind it.
    pub(super) fn mlp_in_parts(&mut self, layer: usize, mlp: &Mlp<B>, x: &B::Rows, dx: &mut B::Rows) {
        let backend = self.batch.backend;
        for part in Part::of_pieces(self.sequences, self.batch.groups) {
            let (batch, rows) = (part.pass(&self.batch), part.indices());
            let (_, saved) = batch.mlp(layer, mlp, backend.gather(x, &rows));
            let mut own = backend.gather(dx, &rows);
            let sinks = match &mut self.sinks {
                GradientSinks::Adapters(sinks) => GradientSinks::Adapters(sinks),
                GradientSinks::Full(params) => GradientSinks::Full(&mut **params),
            };
            Backward { batch, sequences: &part.pieces, sinks, trains: self.trains }.mlp(layer, mlp, saved, &mut own);
            backend.scatter(&own, &rows, dx);
        }
    }
}
