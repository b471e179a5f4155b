//! Log-probabilities of targets in the loss head.

use std::ops::Range;

use super::super::Cpu;
use super::super::parallel::SharedPtr;
use super::super::stream::stream;
use super::log_sum_exp::add_chunk;
use super::{CHUNK, Head, RowBlock};
use crate::{LogSum, Targets};

impl Head<'_> {
    /// Log-probabilities of the targets, in their order, and the log-sum-exp of every row.
    #[cfg(test)]
    pub(in crate::cpu) fn target_logprobs(
        &self,
        cpu: &Cpu,
        targets: &Targets,
        save: Option<&mut [f32]>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (mut logits, sums) = self.target_logits(cpu, targets, save);
        let lse = targets.normalise(&sums, &mut logits);
        (logits, lse)
    }

    /// Logits of the targets, in their order, -0 of those beyond the vocabulary, and what the log-sum-exp of every row is of.
    /// `save`, of `[rows, vocabulary]` elements, receives all logits, as [`SavedLogits`](super::SavedLogits) has them.
    pub(super) fn target_logits(
        &self,
        cpu: &Cpu,
        targets: &Targets,
        save: Option<&mut [f32]>,
    ) -> (Vec<f32>, Vec<LogSum>) {
        let vocab = self.vocab;
        assert!(
            save.as_ref().is_none_or(|save| save.len() >= self.x.rows() * vocab),
            "too few elements for the logits"
        );
        let save = save.map(|save| SharedPtr(save.as_mut_ptr()));
        let mut logits = vec![-0f32; targets.ids.len()];
        let blocks = self.blocks(cpu, targets);
        let mut sums = vec![LogSum::EMPTY; targets.offsets.len() - 1];
        let (out, states) = (SharedPtr(logits.as_mut_ptr()), SharedPtr(sums.as_mut_ptr()));
        cpu.pool.run(blocks.len(), |i| {
            let rows = blocks[i].rows.clone();
            let at = targets.offsets[rows.start]..targets.offsets[rows.end];
            // SAFETY: blocks have disjoint rows and targets, which lie in their vectors.
            let (logits, sums) = unsafe {
                (
                    std::slice::from_raw_parts_mut(out.ptr().add(at.start), at.len()),
                    std::slice::from_raw_parts_mut(states.ptr().add(rows.start), rows.len()),
                )
            };
            self.block_logits(cpu, &blocks[i], targets, logits, sums, |columns, logits| {
                let Some(save) = save else { return };
                let at = self.x.rows() * columns.start + rows.start * columns.len();
                // SAFETY: blocks have disjoint rows, all of them rows of `x`, and `save` has a row for each row of `x`.
                let to = unsafe { std::slice::from_raw_parts_mut(save.ptr().add(at), logits.len()) };
                stream(cpu.isa(), logits, to);
            });
        });
        (logits, sums)
    }

    /// Computes one block: `out` receives the logits of its targets, `sums` has its rows, `save` receives all logits of
    /// a chunk.
    fn block_logits(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        targets: &Targets,
        out: &mut [f32],
        sums: &mut [LogSum],
        save: impl Fn(&Range<usize>, &[f32]),
    ) {
        let rows = block.rows.clone();
        let mut logits = cpu.buffer(rows.len() * CHUNK);
        let first = targets.offsets[rows.start];
        for columns in self.chunks() {
            self.logits(cpu, block, columns.clone(), &mut logits, columns.len());
            save(&columns, &logits[..rows.len() * columns.len()]);
            for (i, (state, logits)) in sums.iter_mut().zip(logits.chunks_exact(columns.len())).enumerate() {
                let row = rows.start + i;
                *state = add_chunk(cpu.isa(), logits, 1.0, *state);
                for t in targets.offsets[row]..targets.offsets[row + 1] {
                    let id = targets.ids[t] as usize;
                    if columns.contains(&id) {
                        out[t - first] = logits[id - columns.start];
                    }
                }
            }
        }
    }
}
