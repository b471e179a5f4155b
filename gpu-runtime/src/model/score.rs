//! Log-probabilities of given tokens, from the residual stream.

use super::forward::Group;
use super::lora::{Adapted, project_down, project_up};
use super::weights::Weights;
use crate::kernels::Cpu;
use crate::kernels::buffer::Buffer;
use crate::kernels::gemm::Operand;
use crate::kernels::head::{Head, HeadAdapter, HeadGroup, KeptLogits, Targets};
use crate::kernels::norm::rms_norm;

/// Rows whose residual stream has been normalised for the unembedding.
pub struct ScoredRows<'a> {
    w: &'a Weights,
    /// Normalised hidden states, `[rows, hidden]`.
    pub hidden: Buffer<f32>,
    operand: Operand,
    /// Groups of these rows.
    groups: Vec<Group>,
    /// Scaled `x Aᵀ` of each group's adapter on the unembedding; empty where there is none.
    zs: Vec<Vec<f32>>,
}

/// Normalises the residual stream `x[rows, hidden]`; groups cover the rows in order.
pub fn score_rows<'a>(cpu: &Cpu, w: &'a Weights, x: &[f32], groups: &[Group]) -> ScoredRows<'a> {
    let mut hidden = cpu.buffer(x.len());
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
    pub fn from_hidden(cpu: &Cpu, w: &'a Weights, hidden: Buffer<f32>, groups: &[Group]) -> Self {
        let operand = Operand::new(cpu, w.dtype, &hidden, w.config.hidden_size);
        let adapted: Vec<_> = groups.iter().enumerate().filter_map(|(i, g)| unembedding(i, g)).collect();
        let mut zs = vec![Vec::new(); groups.len()];
        for (a, z) in adapted.iter().zip(project_down(cpu, &operand, &adapted)) {
            zs[a.group] = z;
        }
        Self { w, hidden, operand, groups: groups.to_vec(), zs }
    }

    /// The unembedding's groups; gradients by `z` begin at `dz_at`. With `backward`, they are ready for
    /// [`Head::backward`].
    pub fn head_groups(&self, backward: Option<&Cpu>) -> Vec<HeadGroup<'_>> {
        let mut dz_at = 0;
        (0..)
            .zip(&self.groups)
            .zip(&self.zs)
            .map(|((i, group), z)| {
                let adapter = unembedding(i, group).map(|a| HeadAdapter {
                    z,
                    b: &a.pair.b,
                    b_t: backward.map(|cpu| a.pair.b_t(cpu)),
                    rank: a.adapter.rank,
                });
                let group = HeadGroup { rows: group.rows.clone(), adapter, dz_at };
                dz_at += z.len();
                group
            })
            .collect()
    }

    /// Scaled `x Aᵀ` of a group.
    pub fn z(&self, group: usize) -> &[f32] {
        &self.zs[group]
    }

    /// Elements of all groups' `z`.
    pub fn z_len(&self) -> usize {
        self.zs.iter().map(Vec::len).sum()
    }

    /// The loss head over these rows, with logits that were kept, if any.
    pub fn head<'b>(&'b self, groups: &'b [HeadGroup<'b>], kept: Option<KeptLogits<'b>>) -> Head<'b> {
        Head { x: &self.operand, w: &self.w.head.weight, groups, kept }
    }

    /// Log-probabilities of the targets at temperature 1, and the log-sum-exp of every row. With `keep`,
    /// `[rows, vocabulary]`, the logits are left there.
    pub fn target_logprobs(&self, cpu: &Cpu, targets: &Targets, keep: Option<&mut [f32]>) -> (Vec<f32>, Vec<f32>) {
        let groups = self.head_groups(None);
        self.head(&groups, None).target_logprobs(cpu, targets, keep)
    }

    /// Writes all logits, `[rows, vocabulary]`: for rows that are sampled from.
    pub fn logits(&self, cpu: &Cpu, out: &mut [f32]) {
        let own = |((i, group), z)| unembedding(i, group).map(|a| (a, z));
        let (adapted, zs): (Vec<_>, Vec<_>) = (0..).zip(&self.groups).zip(&self.zs).filter_map(own).unzip();
        project_up(cpu, &self.operand, &self.w.head.weight, &adapted, &zs, out, false);
    }
}
