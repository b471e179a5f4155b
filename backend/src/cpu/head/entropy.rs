//! Entropies of the rows' distributions over the vocabulary, and their divergences from others.

use super::super::Cpu;
use super::super::parallel::SharedPtr;
use super::super::vexp::{exp, multiversion, sum_by, sum_of_pairs};
use super::reference::{ReferenceChunk, ReferenceHead};
use super::{CHUNK, Head};
use crate::Targets;

impl Head<'_> {
    /// What this vocabulary contributes to the entropy of each row, whose log-sum-exps over the whole vocabulary are `lse`.
    pub(in crate::cpu) fn entropies(&self, cpu: &Cpu, lse: &[f32]) -> Vec<f32> {
        self.sums(cpu, lse.len(), None, |row, logits, _| entropy_of_chunk(cpu.isa(), logits, lse[row]))
    }

    /// What it contributes to the divergence of each row from that of `reference`.
    pub(in crate::cpu) fn divergences(&self, cpu: &Cpu, lse: &[f32], reference: &ReferenceHead<'_>) -> Vec<f32> {
        self.sums(cpu, lse.len(), Some(reference), |row, logits, other| {
            let Some(ReferenceChunk { logits: others, lse: other }) = other else { return 0.0 };
            divergence_of_chunk(cpu.isa(), logits, lse[row], others, other)
        })
    }

    /// The sum over the chunks of the vocabulary, in order, of what `of_chunk` makes of a row and its logits, and of those of the
    /// reference if there is one.
    fn sums(
        &self,
        cpu: &Cpu,
        rows: usize,
        reference: Option<&ReferenceHead<'_>>,
        of_chunk: impl Fn(usize, &[f32], Option<ReferenceChunk<'_>>) -> f32 + Sync,
    ) -> Vec<f32> {
        let mut sums = vec![0f32; rows];
        let blocks = self.blocks(cpu, &Targets { offsets: vec![0; rows + 1], ids: Vec::new() });
        let out = SharedPtr(sums.as_mut_ptr());
        cpu.pool.run(blocks.len(), |i| {
            let (block, rows) = (&blocks[i], blocks[i].rows.clone());
            // SAFETY: blocks have disjoint rows, each with an element of `sums`.
            let out = unsafe { std::slice::from_raw_parts_mut(out.ptr().add(rows.start), rows.len()) };
            let mut own = cpu.buffer(rows.len() * CHUNK);
            let mut others = reference.map(|_| cpu.buffer(rows.len() * CHUNK));
            for columns in self.chunks() {
                let width = columns.len();
                if self.saved.is_none() {
                    self.logits(cpu, block, columns.clone(), &mut own, width);
                }
                if let (Some(reference), Some(others)) = (reference, &mut others) {
                    reference.logits(cpu, rows.clone(), columns.clone(), others);
                }
                for (at, (row, sum)) in rows.clone().zip(&mut *out).enumerate() {
                    let chunk = at * width..(at + 1) * width;
                    let other = reference.zip(others.as_deref()).map(|(of, all)| of.chunk(row, &all[chunk.clone()]));
                    let logits = self.saved.map_or(&own[chunk], |saved| saved.chunk(row, &columns, self.vocab));
                    *sum += of_chunk(row, logits, other);
                }
            }
        });
        sums
    }
}

multiversion! {
    /// Sum of `p * -ln p` over a chunk of a row's logits.
    fn entropy_of_chunk(logits: &[f32], lse: f32) -> f32 {
        // A logit of -inf has p = 0, and its term is 0 as well.
        sum_by(logits, |x| exp(x - lse) * (lse - x).min(f32::MAX))
    }
}

multiversion! {
    /// Sum of `p (ln p - ln q)` over a chunk of the logits of two rows.
    fn divergence_of_chunk(logits: &[f32], lse: f32, others: &[f32], other_lse: f32) -> f32 {
        sum_of_pairs(logits, others, |x, other| {
            let log = (x - lse).max(f32::MIN);
            exp(log) * (log - (other - other_lse).max(f32::MIN))
        })
    }
}
