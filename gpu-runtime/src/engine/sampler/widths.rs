//! Limits of each share's part of a pass while several shares have work.
//!
//! All requests wait for the end of a pass, which takes longer the more rows it has. While one share has work, a pass
//! is as wide as its requests allow. Beside other shares, the rows of a share take about as long as reading the weights
//! does: the time of a request grows with the number of shares that have work, and not with the number of their
//! requests. The sequences of a share that do not all fit take turns. Prompts are computed in whole blocks, which may have
//! more rows: a share then has fewer in the passes that follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantShare};

use super::Sampler;
use super::part::PassPart;
use super::spread::Spread;
use super::task::SampleTask;
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::model::Weights;

/// Passes that stay limited after the last one beside which another share had work: a client that waits for each of its
/// requests has none between two of them.
pub(super) const LIMITED_PASSES: usize = 64;

/// Rows of a share in a pass.
#[derive(Clone, Copy)]
struct RowLimit {
    rows: usize,
    /// Rows that earlier passes had beyond their limits.
    debt: usize,
}

/// Rows of a pass by share.
pub(super) struct RowLimits(BTreeMap<Arc<str>, RowLimit>);

impl RowLimits {
    fn of(&self, share: &str) -> RowLimit {
        self.0.get(share).copied().unwrap_or(RowLimit { rows: 1, debt: 0 })
    }

    /// Prompt rows of a share: at least one block of them, or none while it has a debt.
    pub(super) fn of_prompts(&self, share: &str) -> usize {
        let RowLimit { rows, debt } = self.of(share);
        match rows.saturating_sub(debt) {
            _ if debt == 0 => rows.max(BLOCK),
            left @ BLOCK.. => left,
            _ => 0,
        }
    }

    /// Rows of a share's sequences beside its prompt rows: enough that the sequences always go on.
    fn of_sequences(&self, share: &str, prompt_rows: usize) -> usize {
        let RowLimit { rows, debt } = self.of(share);
        rows.saturating_sub(prompt_rows + debt).max(rows / 4).max(1)
    }
}

fn differ<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.next().is_some_and(|first| names.any(|name| name != first))
}

impl<B: Backend> Sampler<B> {
    /// Takes note of the shares that have work here or, as in the argument, elsewhere in the engine. Call it before each step.
    pub(in crate::engine) fn note_shares<'a>(&mut self, elsewhere: impl Iterator<Item = &'a TenantShare>) {
        let own = self.waiting.shares().chain(self.active.iter().map(|task| &task.share));
        let here = own.map(|share| &*share.name).chain(self.spread.iter().flat_map(Spread::shares));
        if differ(elsewhere.map(|share| &*share.name).chain(here)) {
            self.limited_passes = LIMITED_PASSES;
        }
    }

    /// The rows that each share may take of the next pass, in proportion to weights; `None` while only one share has work.
    pub(super) fn row_limits(&mut self) -> Option<RowLimits> {
        let decodes = |task: &SampleTask<B>| task.targets().any(|target| task.is_decoding(target));
        // Where all shares have only prompts, none has to wait for its debt.
        if self.limited_passes == 0 || !self.active.iter().any(decodes) {
            self.row_debts.clear();
        }
        if self.limited_passes == 0 {
            return None;
        }
        let shares = self.waiting.shares().chain(self.active.iter().map(|task| &task.share));
        let weights: BTreeMap<Arc<str>, usize> =
            shares.map(|share| (Arc::clone(&share.name), share.weight.get() as usize)).collect();
        let total: usize = weights.values().sum();
        let all = self.balanced_rows.max(1) * weights.len();
        let rows = |weight: usize| (all * weight).checked_div(total).unwrap_or(0).max(1);
        let limit = |(share, weight): (Arc<str>, usize)| {
            let debt = self.row_debts.get(&share).copied().unwrap_or(0);
            (share, RowLimit { rows: rows(weight), debt })
        };
        Some(RowLimits(weights.into_iter().map(limit).collect()))
    }

    /// Takes note of the rows that shares have in a limited pass.
    pub(super) fn note_rows(&mut self, limits: RowLimits, parts: &[PassPart]) {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for part in parts {
            *taken.entry(&*self.active[part.task].share.name).or_default() += part.positions.len();
        }
        let debts = limits.0.into_iter().map(|(share, RowLimit { rows, debt })| {
            let taken = taken.get(&*share).copied().unwrap_or(0);
            (share, (debt + taken).saturating_sub(rows))
        });
        self.row_debts = debts.filter(|(_, debt)| *debt > 0).collect();
    }

    /// Those of the decoding sequences `decoding` that the next pass computes beside `prompts`. Sessions of a share get equal
    /// parts.
    pub(super) fn within_limits(
        &mut self,
        limits: &RowLimits,
        decoding: Vec<PassPart>,
        prompts: &[PassPart],
        weights: &Weights<B>,
    ) -> Vec<PassPart> {
        // In elements that are read, as if computing a row took as long as reading its part of the weights.
        let row = (weights.model.whole.table.elements() / self.balanced_rows.max(1)).max(1);
        let mut chosen: Vec<PassPart> = Vec::new();
        let turns = self.by_turn(decoding);
        self.decode_turns.retain(|share, _| self.active.iter().any(|task| task.share.name == *share));
        for (share, parts) in turns {
            let own = prompts.iter().filter(|part| self.active[part.task].share.name == share);
            let rows = limits.of_sequences(&share, own.map(|part| part.positions.len()).sum());
            let (mut left, mut is_first) = (rows * row, true);
            for part in parts {
                let cost = row + self.active[part.task].elements_read(part.target);
                if cost > left && !is_first {
                    break;
                }
                (left, is_first) = (left.saturating_sub(cost), false);
                chosen.push(part);
            }
            if let Some(last) = chosen.last() {
                self.decode_turns.insert(share, self.active[last.task].session.clone());
            }
        }
        for part in &chosen {
            self.last_turn += 1;
            self.active[part.task].set_last_turn(part.target, self.last_turn);
        }
        chosen
    }

    /// The decoding sequences of each share in the order of their turns: sessions take turns, from the one after that which was
    /// last in an earlier pass, and those sequences of a session are first that wait longest.
    fn by_turn(&self, decoding: Vec<PassPart>) -> BTreeMap<Arc<str>, Vec<PassPart>> {
        let mut shares: BTreeMap<Arc<str>, BTreeMap<SessionId, Vec<PassPart>>> = BTreeMap::new();
        for part in decoding {
            let task = &self.active[part.task];
            let sessions = shares.entry(Arc::clone(&task.share.name)).or_default();
            sessions.entry(task.session.clone()).or_default().push(part);
        }
        let in_order = |(share, sessions): (Arc<str>, BTreeMap<SessionId, Vec<PassPart>>)| {
            let last = self.decode_turns.get(&share);
            let (count, before) = (sessions.len(), sessions.keys().filter(|session| Some(*session) <= last).count());
            let mut turns = Vec::new();
            for (at, mut parts) in sessions.into_values().enumerate() {
                parts.sort_by_key(|part| {
                    let task = &self.active[part.task];
                    (task.last_turn(part.target), task.arrival, part.target)
                });
                let place = (at + count - before) % count;
                turns.extend(parts.into_iter().enumerate().map(|(round, part)| ((round, place), part)));
            }
            turns.sort_by_key(|(turn, _)| *turn);
            (share, turns.into_iter().map(|(_, part)| part).collect())
        };
        shares.into_iter().map(in_order).collect()
    }
}
