//! Entropies of the rows' distributions over the vocabulary.

use super::super::Cpu;
use super::super::parallel::SharedPtr;
use super::super::vexp::{exp, multiversion, sum_by};
use super::{CHUNK, Head};
use crate::Targets;

impl Head<'_> {
    /// What this vocabulary contributes to the entropy of each row, whose log-sum-exps over the whole vocabulary are `lse`.
    pub(in crate::cpu) fn entropies(&self, cpu: &Cpu, lse: &[f32]) -> Vec<f32> {
        let mut entropies = vec![0f32; lse.len()];
        let blocks = self.blocks(cpu, &Targets { offsets: vec![0; lse.len() + 1], ids: Vec::new() });
        let out = SharedPtr(entropies.as_mut_ptr());
        cpu.pool.run(blocks.len(), |i| {
            let (block, rows) = (&blocks[i], blocks[i].rows.clone());
            // SAFETY: blocks have disjoint rows, each with an element of `entropies`.
            let out = unsafe { std::slice::from_raw_parts_mut(out.ptr().add(rows.start), rows.len()) };
            let mut own = cpu.buffer(rows.len() * CHUNK);
            for columns in self.chunks() {
                let width = columns.len();
                if self.saved.is_none() {
                    self.logits(cpu, block, columns.clone(), &mut own, width);
                }
                for ((row, entropy), own) in rows.clone().zip(&mut *out).zip(own.chunks_exact(width)) {
                    let logits = self.saved.map_or(own, |saved| saved.chunk(row, &columns, self.vocab));
                    *entropy += entropy_of_chunk(cpu.isa(), logits, lse[row]);
                }
            }
        });
        entropies
    }
}

multiversion! {
    /// Sum of `p * -ln p` over a chunk of a row's logits.
    fn entropy_of_chunk(logits: &[f32], lse: f32) -> f32 {
        // A logit of -inf has p = 0, and its term is 0 as well.
        sum_by(logits, |x| exp(x - lse) * (lse - x).min(f32::MAX))
    }
}
