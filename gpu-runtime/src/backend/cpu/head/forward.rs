//! Log-probabilities of targets.

use super::super::Cpu;
use super::super::parallel::SharedPtr;
use super::super::stream::stream;
use super::log_sum_exp::{LogSum, add_chunk};
use super::{CHUNK, Head, RowBlock};
use crate::backend::Targets;

impl Head<'_> {
    /// Log-probabilities of the targets, in their order, and the log-sum-exp of every row. `save`, `[rows, vocabulary]`,
    /// receives the logits.
    pub(in crate::backend::cpu) fn target_logprobs(
        &self,
        cpu: &Cpu,
        targets: &Targets,
        save: Option<&mut [f32]>,
    ) -> (Vec<f32>, Vec<f32>) {
        let vocab = self.w.n();
        assert!(
            save.as_ref().is_none_or(|save| save.len() >= self.x.rows() * vocab),
            "too few elements for the logits"
        );
        let save = save.map(|save| SharedPtr(save.as_mut_ptr()));
        let mut logprobs = vec![0f32; targets.ids.len()];
        let blocks = self.blocks(cpu, targets);
        let mut lse = vec![0f32; targets.offsets.len() - 1];
        let (out, sums) = (SharedPtr(logprobs.as_mut_ptr()), SharedPtr(lse.as_mut_ptr()));
        cpu.pool.run(blocks.len(), |i| {
            let rows = blocks[i].rows.clone();
            let at = targets.offsets[rows.start]..targets.offsets[rows.end];
            // SAFETY: blocks have disjoint rows and targets, which lie in their vectors.
            let (logprobs, lse) = unsafe {
                (
                    std::slice::from_raw_parts_mut(out.ptr().add(at.start), at.len()),
                    std::slice::from_raw_parts_mut(sums.ptr().add(rows.start), rows.len()),
                )
            };
            // SAFETY: blocks have disjoint rows, all of them rows of `x`, and `save` has a row for each row of `x`.
            let save = save.map(|save| unsafe {
                std::slice::from_raw_parts_mut(save.ptr().add(rows.start * vocab), rows.len() * vocab)
            });
            self.block_logprobs(cpu, &blocks[i], targets, logprobs, lse, save);
        });
        (logprobs, lse)
    }

    /// The same of one block: `out` are the log-probabilities of its targets, `lse` has its rows.
    fn block_logprobs(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        targets: &Targets,
        out: &mut [f32],
        lse: &mut [f32],
        mut save: Option<&mut [f32]>,
    ) {
        let rows = block.rows.clone();
        let (mut logits, vocab) = (cpu.buffer(rows.len() * CHUNK), self.w.n());
        let mut states = vec![LogSum::EMPTY; rows.len()];
        let first = targets.offsets[rows.start];
        for columns in self.chunks() {
            self.logits(cpu, block, columns.clone(), &mut logits, columns.len());
            for (i, (state, logits)) in states.iter_mut().zip(logits.chunks_exact(columns.len())).enumerate() {
                let row = rows.start + i;
                *state = add_chunk(cpu.isa(), logits, 1.0, *state);
                if let Some(save) = &mut save {
                    stream(cpu.isa(), logits, &mut save[i * vocab..][columns.clone()]);
                }
                for t in targets.offsets[row]..targets.offsets[row + 1] {
                    let id = targets.ids[t] as usize;
                    if columns.contains(&id) {
                        out[t - first] = logits[id - columns.start];
                    }
                }
            }
        }
        for (row, (lse, state)) in rows.zip(lse.iter_mut().zip(states)) {
            *lse = state.value();
            for t in targets.offsets[row]..targets.offsets[row + 1] {
                out[t - first] -= *lse;
            }
        }
    }
}
