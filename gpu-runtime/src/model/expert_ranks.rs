//! Experts that several ranks share (Lepikhin et al. 2020, arXiv:2006.16668): which parts of a batch a rank computes,
//! and how all ranks get the results.
//!
//! All ranks have all rows of a pass and route them alike; each computes the rows of its own experts. Their results are
//! gathered and added up on every rank in the order in which one rank adds it, so that results are those of one rank to
//! the bit, and a row does not depend on which experts other rows go to. Where there is one rank, nothing is copied.

use std::ops::Range;

use super::block_pass::BlockPass;
use crate::backend::{Backend, Dispatch, ExpertRows, FamilyOps, Rows};
use crate::collective::Ranks;
use crate::config::Experts;

/// The experts of a block on this rank and on the others.
#[derive(Clone, Copy)]
pub(super) struct ExpertRanks<'a, B: Backend> {
    backend: &'a B,
    ranks: &'a Ranks,
    /// `None` for a block without experts.
    experts: Option<&'a Experts>,
}

impl<'a, B: Backend> ExpertRanks<'a, B> {
    pub(super) fn of(batch: &BlockPass<'a, B>, layer: usize) -> Self {
        let model = &batch.model;
        Self { backend: batch.backend, ranks: &model.ranks, experts: model.config.blocks[layer].experts.as_ref() }
    }

    /// The parts that this rank computes: as experts do, they follow each other.
    pub(super) fn held(&self, dispatch: &Dispatch) -> Range<usize> {
        let own = self.experts.map_or(0..0, |experts| experts.held.clone());
        let before = |expert: usize| dispatch.parts().partition_point(|part| part.expert < expert);
        before(own.start)..before(own.end)
    }

    /// The rank that computes a part.
    fn holder(&self, part: &ExpertRows) -> usize {
        self.experts.map_or(0, |experts| experts.holder(part.expert))
    }

    /// All parts of a dispatch, `[rows of the part, width]`, from those that this rank has.
    pub(super) fn gather<'r>(&self, own: &'r [B::Rows], dispatch: &Dispatch, width: usize) -> Parts<'r, B> {
        if self.ranks.is_single() {
            return Parts::Own(own);
        }
        let extents: Vec<_> = dispatch.parts().iter().map(|part| (self.holder(part), part.rows.len())).collect();
        Parts::All(B::Family::gather_parts(self.backend, own, &extents, width, self.ranks))
    }

    /// Gradients with respect to the parts that this rank has, and to the weights of all.
    pub(super) fn combine_backward(
        &self,
        own: &[B::Rows],
        dispatch: &Dispatch,
        weights: &B::Rows,
        d_out: &B::Rows,
    ) -> (Vec<B::Rows>, B::Rows) {
        let held = self.held(dispatch);
        let (d_parts, mut d_weights) =
            B::Family::combine_backward_of(self.backend, own, held, dispatch, weights, d_out);
        // Each is of one rank; the others have zero.
        d_weights.all_reduce(self.ranks);
        (d_parts, d_weights)
    }
}

/// Parts of a dispatch on every rank.
pub(super) enum Parts<'r, B: Backend> {
    /// Parts on the only rank.
    Own(&'r [B::Rows]),
    All(Vec<B::Rows>),
}

impl<B: Backend> Parts<'_, B> {
    pub(super) fn all(&self) -> &[B::Rows] {
        match self {
            Self::Own(parts) => parts,
            Self::All(parts) => parts,
        }
    }
}
