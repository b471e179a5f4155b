//! Ops of ranks that have a part of the vocabulary each.

use super::super::{DeviceRows, Result, join_logits, score_part, spread};
use super::Cuda;
use super::head::HeadState;
use crate::backend::{HeadPart, LinearCall, ScorePart, ScoreRequest, Targets, VocabularyOps};
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

    /// Through the host.
    fn gather_logits(cuda: &Self, own: &DeviceRows, rows: usize, ranks: &Ranks, out: &mut DeviceRows) {
        let mine = cuda.done(own.data().part_to_host(0..rows * own.width()));
        let Some(parts) = ranks.all_gather(mine) else { return };
        let uploaded: Result<Vec<_>> = parts.iter().map(|part| cuda.device.upload(part)).collect();
        let joined = uploaded.and_then(|parts| {
            let parts: Vec<_> = parts.iter().collect();
            join_logits(&cuda.device, &parts, rows, out)
        });
        cuda.done(joined);
    }

    fn score_part(cuda: &Self, logits: &DeviceRows, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart> {
        cuda.done(score_part(&cuda.device, logits, tokens, requests))
    }
}
