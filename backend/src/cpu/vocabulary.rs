//! Ops of ranks that have a part of the vocabulary each.

use super::Cpu;
use super::head::{self, HeadState};
use super::parallel::for_rows;
use super::rows::HostRows;
use super::sampling;
use crate::collective::Ranks;
use crate::{HeadPart, LinearCall, ReferenceRows, Rows, ScorePart, ScoreRequest, Targets, VocabularyOps, join_columns};

/// A row that is not here.
const ELSEWHERE: usize = usize::MAX;

impl VocabularyOps<Self> for Cpu {
    fn spread(cpu: &Self, from: &HostRows, at: &[usize], rows: usize) -> HostRows {
        let width = from.width();
        let mut places = vec![ELSEWHERE; rows];
        at.iter().enumerate().for_each(|(i, row)| places[*row] = i);
        let mut to = HostRows::alloc(cpu, rows, width);
        for_rows(cpu, &mut to, width, |row, to| match places[row] {
            ELSEWHERE => to.fill(-0.0),
            place => to.copy_from_slice(&from[place * width..][..width]),
        });
        to
    }

    fn head_part(
        cpu: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &HostRows,
        targets: &Targets,
        tokens: usize,
        save_logits: bool,
    ) -> HeadPart<Self> {
        head::part(cpu, head, hidden, targets, tokens, save_logits)
    }

    fn set_log_sums(state: &mut HeadState, log_sums: Vec<f32>) {
        state.lse = log_sums;
    }

    fn entropies(
        cpu: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &HostRows,
        rows: &[usize],
        state: &HeadState,
    ) -> Vec<f32> {
        head::entropies(cpu, head, hidden, rows, state)
    }

    fn divergences(
        cpu: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &HostRows,
        rows: &[usize],
        state: &HeadState,
        reference: &ReferenceRows<'_, Self>,
    ) -> Vec<f32> {
        head::divergences(cpu, head, hidden, rows, state, reference)
    }

    fn gather_logits(_: &Self, own: &HostRows, rows: usize, ranks: &Ranks, out: &mut HostRows) {
        let width = out.width();
        if let Some(parts) = ranks.all_gather(own[..rows * own.width()].to_vec()) {
            join_columns(&parts, rows, out, width);
        }
    }

    fn score_part(cpu: &Self, logits: &HostRows, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart> {
        sampling::score_part(cpu, logits, tokens, requests)
    }
}
