//! Ops of ranks that have a part of the vocabulary each.

use super::Cuda;
use super::exchange::gather;
use super::head::HeadState;
use crate::backend::cuda::ops::logits::score_part;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::vocabulary::{join_logits, spread};
use crate::backend::{HeadPart, LinearCall, ReferenceRows, ScorePart, ScoreRequest, Targets, VocabularyOps};
use crate::collective::Ranks;

impl VocabularyOps<Self> for Cuda {
    fn spread(cuda: &Self, from: &DeviceRows, at: &[usize], rows: usize) -> DeviceRows {
        cuda.done(spread(&cuda.device, from, at, rows))
    }

    fn head_part(
        cuda: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        targets: &Targets,
        tokens: usize,
        save_logits: bool,
    ) -> HeadPart<Self> {
        cuda.done(cuda.head_part_of(head, hidden, targets, tokens, save_logits))
    }

    fn set_log_sums(state: &mut HeadState, log_sums: Vec<f32>) {
        state.lse = log_sums;
    }

    fn entropies(
        cuda: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        rows: &[usize],
        state: &HeadState,
    ) -> Vec<f32> {
        cuda.done(cuda.sums_of_distributions(head, hidden, rows, state, None))
    }

    fn divergences(
        cuda: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        rows: &[usize],
        state: &HeadState,
        reference: &ReferenceRows<'_, Self>,
    ) -> Vec<f32> {
        cuda.done(cuda.sums_of_distributions(head, hidden, rows, state, Some(reference)))
    }

    fn gather_logits(cuda: &Self, own: &DeviceRows, rows: usize, ranks: &Ranks, out: &mut DeviceRows) {
        let elements = rows * own.width();
        let mine = cuda.done(own.data().copy(0..elements));
        let Some(parts) = gather(&cuda.device, ranks, mine, &vec![elements; ranks.world()]) else { return };
        cuda.done(join_logits(&cuda.device, &parts.iter().collect::<Vec<_>>(), rows, out));
    }

    fn score_part(cuda: &Self, logits: &DeviceRows, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart> {
        cuda.done(score_part(&cuda.device, logits, tokens, requests))
    }
}
