//! The head's ops of [`Backend`](crate::Backend): groups of rows by adapter, saved state, and the sinks of
//! gradients.

use std::ops::Range;

use super::super::Cpu;
use super::super::buffer::Buffer;
use super::super::elementwise::scale;
use super::super::gemm::PackedLhs;
use super::super::linear::{
    LoraPairGradient, LowRankRows, add_lora_pair_gradients, d_input, lora_project, runs_within,
};
use super::super::operands::Operand;
use super::super::optimizer::write_zeros;
use super::super::rows::HostRows;
use super::backward::{RowDivergences, RowGradients};
use super::reference::ReferenceHead;
use super::{Head, HeadAdapter, HeadRowGroup, SavedLogits};
use crate::host::HostParams;
use crate::{
    DivergenceGradient, GradientSinks, HeadGradient, HeadPart, LinearCall, LoraSegment, ReferenceRows, Rows, Targets,
};

/// State that the forward pass saves for the backward pass.
pub struct HeadState {
    /// Log-sum-exp of every row.
    pub(in crate::cpu) lse: Vec<f32>,
    /// Logits of all rows, if they were saved, in the order of [`SavedLogits`].
    logits: Option<Buffer<f32>>,
    /// Tokens of the vocabulary, or of the part that is here.
    vocab: usize,
}

/// All rows in order, by adapter. `zs` are `scale · x Aᵀ` of the segments.
fn groups<'a>(rows: usize, lora: &'a [LoraSegment<'_, Cpu>], zs: &'a LowRankRows) -> Vec<HeadRowGroup<'a>> {
    let (mut groups, mut row, mut dz_at) = (Vec::new(), 0, 0);
    for (segment, z) in lora.iter().zip(zs) {
        if segment.rows.start > row {
            groups.push(HeadRowGroup { rows: row..segment.rows.start, adapter: None, dz_at });
        }
        let adapter = Some(HeadAdapter { z, b: segment.b.packed(), b_t: None, rank: segment.rank });
        groups.push(HeadRowGroup { rows: segment.rows.clone(), adapter, dz_at });
        (row, dz_at) = (segment.rows.end, dz_at + z.len());
    }
    if row < rows {
        groups.push(HeadRowGroup { rows: row..rows, adapter: None, dz_at });
    }
    groups
}

/// Implementation of [`target_logprobs`](crate::Backend::target_logprobs) on the processor.
pub(in crate::cpu) fn target_logprobs(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    targets: &Targets,
    save_logits: bool,
) -> (Vec<f32>, HeadState) {
    let vocab = call.weight.packed().n();
    let HeadPart { sums, mut logits, mut state } = part(cpu, call, hidden, targets, vocab, save_logits);
    state.lse = targets.normalise(&sums, &mut logits);
    (logits, state)
}

/// Implementation of [`head_part`](crate::VocabularyOps::head_part) on the processor.
pub(in crate::cpu) fn part(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    targets: &Targets,
    vocab: usize,
    save_logits: bool,
) -> HeadPart<Cpu> {
    let w = call.weight.packed();
    let x = PackedLhs::new(cpu, w.dtype(), hidden, hidden.width());
    let zs = lora_project(cpu, &x, call.lora);
    let groups = groups(hidden.rows(), call.lora, &zs);
    let mut saved = save_logits.then(|| cpu.buffer(hidden.rows() * vocab));
    let head = Head { x: &x, w, vocab, groups: &groups, saved: None };
    let (logits, sums) = head.target_logits(cpu, targets, saved.as_deref_mut());
    HeadPart { sums, logits, state: HeadState { lse: Vec::new(), logits: saved, vocab } }
}

/// Implementation of [`entropies`](crate::VocabularyOps::entropies) on the processor.
pub(in crate::cpu) fn entropies(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    rows: &[usize],
    state: &HeadState,
) -> Vec<f32> {
    with_head(cpu, call, hidden, rows, state, |head, lse| head.entropies(cpu, lse))
}

/// Implementation of [`divergences`](crate::VocabularyOps::divergences) on the processor.
pub(in crate::cpu) fn divergences(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    rows: &[usize],
    state: &HeadState,
    reference: &ReferenceRows<'_, Cpu>,
) -> Vec<f32> {
    let reference = ReferenceHead::new(cpu, reference, 0..hidden.rows());
    with_head(cpu, call, hidden, rows, state, |head, lse| head.divergences(cpu, lse, &reference))
}

/// Calls `of` with the head of the rows `rows` of a forward pass, and their log-sum-exps.
fn with_head<T>(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    rows: &[usize],
    state: &HeadState,
    of: impl FnOnce(&Head<'_>, &[f32]) -> T,
) -> T {
    let w = call.weight.packed();
    let x = PackedLhs::new(cpu, w.dtype(), hidden, hidden.width());
    let zs = lora_project(cpu, &x, call.lora);
    let groups = groups(hidden.rows(), call.lora, &zs);
    let lse: Vec<f32> = rows.iter().map(|row| state.lse[*row]).collect();
    let saved = state.logits.as_deref().map(|logits| SavedLogits { logits, rows });
    of(&Head { x: &x, w, vocab: state.vocab, groups: &groups, saved }, &lse)
}

/// The backward pass of the head over the rows that have a gradient.
struct HeadBackward<'a, 's> {
    cpu: &'a Cpu,
    call: &'a LinearCall<'s, Cpu>,
    hidden: &'a HostRows,
    gradient: &'a HeadGradient<'a, Cpu>,
    /// Log-sum-exp of these rows.
    lse: Vec<f32>,
    logits: Option<&'a [f32]>,
    /// Tokens of the vocabulary.
    vocab: usize,
    zs: LowRankRows,
}

/// Implementation of [`head_backward`](crate::Backend::head_backward) on the processor.
pub(in crate::cpu) fn backward(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    hidden: &HostRows,
    gradient: &HeadGradient<'_, Cpu>,
    state: &HeadState,
    param: usize,
    sinks: &mut GradientSinks<'_, '_, Cpu>,
) -> HostRows {
    let (w, width) = (call.weight.packed(), hidden.width());
    let x = PackedLhs::new(cpu, w.dtype(), hidden, width);
    let zs = lora_project(cpu, &x, call.lora);
    let lse = gradient.rows.iter().map(|row| state.lse[*row]).collect();
    let (logits, vocab) = (state.logits.as_deref(), state.vocab);
    let pass = HeadBackward { cpu, call, hidden, gradient, lse, logits, vocab, zs };
    let mut groups = groups(hidden.rows(), call.lora, &pass.zs);
    let adapters = groups.iter_mut().filter_map(|group| group.adapter.as_mut());
    for (adapter, segment) in adapters.zip(call.lora) {
        adapter.b_t = Some(segment.b.transposed(cpu));
    }
    let head = Head { x: &x, w, vocab, groups: &groups, saved: pass.saved(0, gradient.rows.len()) };
    let mut dx = HostRows::zeros(cpu, hidden.rows(), width);
    let mut dz = vec![0f32; pass.zs.iter().map(|z| z.len()).sum()];
    let reference = pass.reference(0..gradient.rows.len());
    let gradients = pass.row_gradients(reference.as_ref());
    head.backward(cpu, call.weight.transposed(cpu), gradients, &mut dx, &mut dz);
    match sinks {
        GradientSinks::Full(grads) => {
            write_zeros(cpu, grads, param..param + 1);
            let grad = &mut grads[param];
            head.weight_gradient(cpu, gradients, gradient.sequences, hidden, width, grad);
        }
        GradientSinks::Adapters(sinks) => pass.adapter_gradients(&mut dz, &mut dx, sinks),
    }
    dx
}

impl HeadBackward<'_, '_> {
    /// The saved logits of the rows `[first, first + rows)`.
    fn saved(&self, first: usize, rows: usize) -> Option<SavedLogits<'_>> {
        let rows = &self.gradient.rows[first..first + rows];
        self.logits.map(|logits| SavedLogits { logits, rows })
    }

    /// The reference's rows `rows`, if the loss depends on divergences from it.
    fn reference(&self, rows: Range<usize>) -> Option<ReferenceHead<'_>> {
        self.gradient.divergence.map(|of| ReferenceHead::new(self.cpu, &of.reference, rows))
    }

    /// Divergences of the rows `rows`, which are those of the reference.
    fn divergences<'r>(&'r self, reference: &'r ReferenceHead<'r>, rows: Range<usize>) -> Option<RowDivergences<'r>> {
        let DivergenceGradient { divergences, d_divergences, .. } = self.gradient.divergence?;
        Some(RowDivergences { reference, divergences: &divergences[rows.clone()], d_divergences: &d_divergences[rows] })
    }

    fn row_gradients<'r>(&'r self, reference: Option<&'r ReferenceHead<'r>>) -> RowGradients<'r> {
        let HeadGradient { rows, targets, d_logprobs, entropy, .. } = *self.gradient;
        let divergence = reference.and_then(|reference| self.divergences(reference, 0..rows.len()));
        RowGradients { targets, d_logprobs, lse: &self.lse, entropy, divergence }
    }

    /// Segment by segment: adds the gradients of B and A to the sinks, and `dz A` to `dx`.
    fn adapter_gradients(&self, mut dz: &mut [f32], dx: &mut HostRows, sinks: &mut [Option<&mut HostParams>]) {
        let (cpu, width) = (self.cpu, self.hidden.width());
        for (i, segment) in self.call.lora.iter().enumerate() {
            let own;
            (own, dz) = dz.split_at_mut(self.zs[i].len());
            if own.is_empty() || sinks[segment.group].is_none() {
                continue;
            }
            scale(own, segment.scale);
            if let (Some(grads), Some(b)) = (sinks[segment.group].as_deref_mut(), segment.grads[1]) {
                self.b_gradient(segment, &self.zs[i], &mut grads[b.param]);
            }
            let pair = LoraPairGradient { segment, z: None, dz: own };
            let sequences = self.gradient.sequences;
            let (x, dy) = (Operand::rows(self.hidden, width), Operand::rows(&[], 0));
            add_lora_pair_gradients(cpu, &[pair], sequences, x, dy, sinks);
            d_input(cpu, None, std::slice::from_ref(segment), &[&*own], dx);
        }
    }

    /// Adds the gradient of a segment's B, over only the segment's rows, to `out`.
    fn b_gradient(&self, segment: &LoraSegment<'_, Cpu>, z: &[f32], out: &mut [f32]) {
        let (cpu, width, rows) = (self.cpu, self.hidden.width(), segment.rows.clone());
        let w = self.call.weight.packed();
        let x = PackedLhs::new(cpu, w.dtype(), &self.hidden[rows.start * width..rows.end * width], width);
        let adapter = HeadAdapter { z, b: segment.b.packed(), b_t: None, rank: segment.rank };
        let groups = [HeadRowGroup { rows: 0..rows.len(), adapter: Some(adapter), dz_at: 0 }];
        let all = self.gradient.targets;
        let at = all.offsets[rows.start]..all.offsets[rows.end];
        let targets = Targets {
            offsets: all.offsets[rows.start..=rows.end].iter().map(|offset| offset - at.start).collect(),
            ids: all.ids[at.clone()].to_vec(),
        };
        let head = Head { x: &x, w, vocab: self.vocab, groups: &groups, saved: self.saved(rows.start, rows.len()) };
        let d_logprobs = &self.gradient.d_logprobs[at];
        let sequences = runs_within(self.gradient.sequences, &rows);
        let entropy = self.gradient.entropy.map(|entropy| entropy.of_rows(rows.clone()));
        let reference = self.reference(rows.clone());
        let divergence = reference.as_ref().and_then(|reference| self.divergences(reference, rows.clone()));
        let gradients = RowGradients { targets: &targets, d_logprobs, lse: &self.lse[rows], entropy, divergence };
        head.weight_gradient(cpu, gradients, &sequences, z, segment.rank, out);
    }
}
