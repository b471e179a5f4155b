//! Log-probabilities of given tokens, from the residual stream.

use std::ops::Range;
use std::sync::Arc;

use super::adapter::Adapter;
use super::forward::Group;
use super::lora::{Adapted, project_down};
use super::weights::Weights;
use crate::kernels::Cpu;
use crate::kernels::gemm::{LowRank, Operand, Product, run_products};
use crate::kernels::head::{Head, HeadAdapter, HeadGroup, KeptLogits, Targets};
use crate::kernels::norm::rms_norm;

/// Rows, their adapter if it is on the unembedding, and its scaled `x Aᵀ`.
type ScoredGroup = (Range<usize>, Option<Arc<Adapter>>, Vec<f32>);

/// Rows whose residual stream has been normalised for the unembedding.
pub struct ScoredRows<'a> {
    w: &'a Weights,
    /// Normalised hidden states, `[rows, hidden]`.
    pub hidden: Vec<f32>,
    operand: Operand,
    /// Groups of these rows with the scaled `x Aᵀ` of their adapter on the unembedding.
    groups: Vec<ScoredGroup>,
}

/// Normalises the residual stream `x[rows, hidden]`; groups cover the rows in order.
pub fn score_rows<'a>(cpu: &Cpu, w: &'a Weights, x: &[f32], groups: &[Group]) -> ScoredRows<'a> {
    let mut hidden = vec![0f32; x.len()];
    rms_norm(cpu, x, &w.norm, w.config.rms_norm_eps, &mut hidden);
    ScoredRows::from_hidden(cpu, w, hidden, groups)
}

/// A group's adapter on the unembedding, if it has one.
pub(super) fn unembedding(group: usize, of: &Group) -> Option<Adapted<'_>> {
    let adapter = of.adapter.as_deref()?;
    let pair = adapter.unembed.as_ref()?;
    Some(Adapted { group, rows: of.rows.clone(), at: 0, adapter, pair })
}

impl<'a> ScoredRows<'a> {
    /// From hidden states that are normalised already.
    pub fn from_hidden(cpu: &Cpu, w: &'a Weights, hidden: Vec<f32>, groups: &[Group]) -> Self {
        let operand = Operand::new(cpu, w.dtype, &hidden, w.config.hidden_size);
        let adapted: Vec<_> = groups.iter().enumerate().filter_map(|(i, g)| unembedding(i, g)).collect();
        let zs = project_down(cpu, &operand, &adapted);
        let mut scored: Vec<ScoredGroup> = groups.iter().map(|g| (g.rows.clone(), None, Vec::new())).collect();
        for (a, z) in adapted.iter().zip(zs) {
            scored[a.group].1 = groups[a.group].adapter.clone();
            scored[a.group].2 = z;
        }
        let groups = scored;
        Self { w, hidden, operand, groups }
    }

    /// The unembedding's groups; gradients by `z` begin at `dz_at`.
    pub fn head_groups(&self) -> Vec<HeadGroup<'_>> {
        let mut dz_at = 0;
        self.groups
            .iter()
            .map(|(rows, adapter, z)| {
                let pair = adapter.as_deref().and_then(|a| a.unembed.as_ref().map(|pair| (a, pair)));
                let adapter = pair.map(|(a, pair)| HeadAdapter { z, b: &pair.b, b_t: &pair.b_t, rank: a.rank });
                let group = HeadGroup { rows: rows.clone(), adapter, dz_at };
                dz_at += z.len();
                group
            })
            .collect()
    }

    /// Scaled `x Aᵀ` of a group.
    pub fn z(&self, group: usize) -> &[f32] {
        &self.groups[group].2
    }

    /// Elements of all groups' `z`.
    pub fn z_len(&self) -> usize {
        self.groups.iter().map(|(_, _, z)| z.len()).sum()
    }

    /// The loss head over these rows, with logits that were kept, if any.
    pub fn head<'b>(&'b self, groups: &'b [HeadGroup<'b>], kept: Option<KeptLogits<'b>>) -> Head<'b> {
        Head { x: &self.operand, w: &self.w.head.weight, groups, kept }
    }

    /// Log-probabilities of the targets at temperature 1, and the log-sum-exp of every row. With `keep`,
    /// `[rows, vocabulary]`, the logits are left there.
    pub fn target_logprobs(&self, cpu: &Cpu, targets: &Targets, keep: Option<&mut [f32]>) -> (Vec<f32>, Vec<f32>) {
        let groups = self.head_groups();
        self.head(&groups, None).target_logprobs(cpu, targets, keep)
    }

    /// All logits, `[rows, vocabulary]`: for rows that are sampled from.
    pub fn logits(&self, cpu: &Cpu) -> Vec<f32> {
        let vocab = self.w.config.vocab_size;
        let mut logits = vec![0f32; self.hidden.len() / self.w.config.hidden_size * vocab];
        let groups = self.head_groups();
        let operands: Vec<_> = groups
            .iter()
            .filter_map(|g| g.adapter.map(|a| (g.rows.clone(), a, Operand::small(cpu, a.b.dtype(), a.z, a.rank))))
            .collect();
        let low_rank =
            operands.iter().map(|(rows, a, z)| LowRank { rows: rows.clone(), at: 0, terms: vec![(z, a.b)] }).collect();
        let (x, w) = (&self.operand, &self.w.head.weight);
        let product = Product { x, rows: 0..x.rows(), x_k: 0, w, out: &mut logits, accumulate: false, low_rank };
        run_products(cpu, &mut [product]);
        logits
    }
}
