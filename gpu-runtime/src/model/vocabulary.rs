//! Vocabulary parallelism (Shoeybi et al. 2019, arXiv:1909.08053): tensor parallel ranks have the rows of embedding and unembedding of
//! some tokens each, [`ModelConfig::held_tokens`].
//!
//! A row of the embedding is added to what the other ranks have of it, -0, which gives its own bits. A token's log-probability is its
//! logit, which one rank has, minus the log-sum-exp, which is put together from each rank's largest logit and sum in the order of
//! ranks ([`LogSum::of`]): in a loss head, for prompts, and for sampled tokens alike, so that these agree to the bit. A rank
//! computes the gradients of its rows in full, and a term of that with respect to the hidden states.

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::weights::{Model, Weights};
use crate::backend::{
    Backend, GradientSinks, HeadGradient, HeadPart, LinearCall, LogSum, Logits, ReferenceRows, RowScores, Rows,
    SampledToken, ScorePart, ScoreRequest, Targets, TokenRequest, VocabularyOps as _,
};
use crate::config::ModelConfig;

impl<B: Backend> Model<B> {
    /// Whether other ranks have a part of the vocabulary.
    pub(super) fn shares_vocabulary(&self) -> bool {
        !self.tensor_ranks.is_single()
    }
}

/// Those of `tokens` that this rank holds: their indices in `tokens`, and their rows in the rank's part.
pub(super) fn held(c: &ModelConfig, tokens: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let own = tokens.iter().enumerate().filter_map(|(at, token)| Some((at, row_of(c, *token)?)));
    own.unzip()
}

/// The row of a token in this rank's part.
fn row_of(c: &ModelConfig, token: u32) -> Option<u32> {
    let held = c.held_tokens();
    held.contains(&(token as usize)).then(|| token - held.start as u32)
}

/// Targets as rows of this rank's part.
fn held_targets(c: &ModelConfig, targets: &Targets) -> Targets {
    let ids = targets.ids.iter().map(|id| row_of(c, *id).unwrap_or(Targets::ELSEWHERE)).collect();
    Targets { offsets: targets.offsets.clone(), ids }
}

impl<B: Backend> Weights<B> {
    /// Embeddings of tokens, `[tokens, hidden]`. Tokens beyond the vocabulary are a bug of the caller and panic, on all ranks alike.
    pub(super) fn embed(&self, backend: &B, tokens: &[u32]) -> B::Rows {
        let (model, c) = (&self.model, &self.model.config);
        if !model.shares_vocabulary() {
            return self.embed_held(backend, tokens);
        }
        assert!(tokens.iter().all(|token| (*token as usize) < c.vocab_size), "a token is outside the vocabulary");
        let (at, own) = held(c, tokens);
        let mut x = B::Family::spread(backend, &self.embed_held(backend, &own), &at, tokens.len());
        x.all_reduce(&model.tensor_ranks);
        x
    }
}

/// Log-probabilities of targets at temperature 1 from normalised hidden states, as [`Backend::target_logprobs`] defines them;
/// `head` has the part of the unembedding that is here.
pub(super) fn head_logprobs<B: Backend>(
    backend: &B,
    model: &Model<B>,
    head: &LinearCall<'_, B>,
    hidden: &B::Rows,
    targets: &Targets,
    save_logits: bool,
) -> (Vec<f32>, B::HeadState) {
    if !model.shares_vocabulary() {
        return backend.target_logprobs(head, hidden, targets, save_logits);
    }
    let (c, ranks) = (&model.config, &model.tensor_ranks);
    let own = held_targets(c, targets);
    let part = B::Family::head_part(backend, head, hidden, &own, c.held_tokens().len(), save_logits);
    let HeadPart { sums, mut logits, mut state } = part;
    // One rank has each of them, the others -0.
    ranks.all_reduce(&mut logits);
    let lse = targets.normalise(&all_sums(model, &sums), &mut logits);
    B::Family::set_log_sums(&mut state, lse);
    (logits, state)
}

/// Terms of the rows' log-sum-exps, from the terms of each rank.
fn all_sums<B: Backend>(model: &Model<B>, own: &[LogSum]) -> Vec<LogSum> {
    let mine = own.iter().flat_map(|sum| [sum.max, sum.sum]).collect();
    let Some(all) = model.tensor_ranks.all_gather(mine) else { return own.to_vec() };
    let of = |row: usize, part: &[f32]| LogSum { max: part[2 * row], sum: part[2 * row + 1] };
    (0..own.len()).map(|row| LogSum::of(all.iter().map(|part| of(row, part)))).collect()
}

/// Entropies of some rows, as [`VocabularyOps::entropies`](crate::backend::VocabularyOps::entropies) defines them, of the whole
/// vocabulary.
pub(super) fn head_entropies<B: Backend>(
    backend: &B,
    model: &Model<B>,
    head: &LinearCall<'_, B>,
    hidden: &B::Rows,
    rows: &[usize],
    state: &B::HeadState,
) -> Vec<f32> {
    of_all_parts(model, B::Family::entropies(backend, head, hidden, rows, state))
}

/// The sums of what each rank's part of the vocabulary contributes.
fn of_all_parts<B: Backend>(model: &Model<B>, mut sums: Vec<f32>) -> Vec<f32> {
    if model.shares_vocabulary() {
        model.tensor_ranks.all_reduce(&mut sums);
    }
    sums
}

/// Divergences of some rows, as [`VocabularyOps::divergences`](crate::backend::VocabularyOps::divergences) defines them, over the whole
/// vocabulary.
pub(super) fn head_divergences<B: Backend>(
    backend: &B,
    model: &Model<B>,
    head: &LinearCall<'_, B>,
    hidden: &B::Rows,
    rows: &[usize],
    state: &B::HeadState,
    reference: &ReferenceRows<'_, B>,
) -> Vec<f32> {
    of_all_parts(model, B::Family::divergences(backend, head, hidden, rows, state, reference))
}

/// Log-sum-exps of the logits of rows, over the whole vocabulary.
pub(super) fn head_log_sums<B: Backend>(
    backend: &B,
    model: &Model<B>,
    head: &LinearCall<'_, B>,
    hidden: &B::Rows,
) -> Vec<f32> {
    let targets = Targets { offsets: vec![0; hidden.rows() + 1], ids: Vec::new() };
    let tokens = model.config.held_tokens().len();
    let sums = B::Family::head_part(backend, head, hidden, &targets, tokens, false).sums;
    let sums = if model.shares_vocabulary() { all_sums(model, &sums) } else { sums };
    targets.normalise(&sums, &mut [])
}

/// Gradient with respect to the hidden states of rows, as [`Backend::head_backward`] defines it; those of the unembedding's rows, or
/// of B of adapters on it, are of this rank's part, and those of A a term.
pub(super) fn head_backward<B: Backend>(
    backend: &B,
    model: &Model<B>,
    head: &LinearCall<'_, B>,
    hidden: &B::Rows,
    gradient: &HeadGradient<'_, B>,
    state: &B::HeadState,
    sinks: &mut GradientSinks<'_, '_, B>,
) -> B::Rows {
    let param = model.table.head;
    if !model.shares_vocabulary() {
        return backend.head_backward(head, hidden, gradient, state, param, sinks);
    }
    let gradient = HeadGradient { targets: &held_targets(&model.config, gradient.targets), ..*gradient };
    let mut dx = backend.head_backward(head, hidden, &gradient, state, param, sinks);
    dx.all_reduce(&model.tensor_ranks);
    dx
}

/// Rows whose logits are computed, as the end of a pass has them.
pub(crate) struct LastRows<'a, B: Backend> {
    pub(crate) weights: &'a Weights<B>,
    /// Residual stream after the last block.
    pub(crate) x: &'a B::Rows,
    /// Groups that cover the rows in order.
    pub(crate) groups: &'a [RowGroup<B>],
}

impl<B: Backend> Clone for LastRows<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for LastRows<'_, B> {}

/// Buffers for the logits of some rows: always of the same length, so that the pool can reuse them.
pub(crate) struct LogitBuffer<B: Backend> {
    rows: usize,
    /// `[rows, vocabulary]`, and where ranks share that, of this rank's tokens.
    whole: Option<B::Rows>,
    own: Option<B::Rows>,
}

impl<B: Backend> LogitBuffer<B> {
    /// Makes a buffer for up to `rows` rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows, whole: None, own: None }
    }

    /// Samples a token for each request from its row of `last`. All ranks compute the same from the logits of all.
    pub(crate) fn sample(
        &mut self,
        backend: &B,
        last: LastRows<'_, B>,
        requests: &[TokenRequest<'_>],
    ) -> Vec<SampledToken> {
        backend.sample(&self.logits(backend, last), requests)
    }

    /// Scores rows of `last` as the requests ask. Ranks tell each other log-sum-exps, targets' logits and their most likely tokens, and
    /// all logits only where alternatives are sampled.
    pub(crate) fn score(&mut self, backend: &B, last: LastRows<'_, B>, requests: &[ScoreRequest]) -> Vec<RowScores> {
        let model = &last.weights.model;
        if !model.shares_vocabulary() || requests.iter().any(|request| request.alternatives.is_some()) {
            return backend.score(&self.logits(backend, last), requests);
        }
        let (c, ranks) = (&model.config, &model.tensor_ranks);
        let held = c.held_tokens();
        let own = |request: &ScoreRequest| {
            let targets = request.targets.iter().map(|id| row_of(c, *id).unwrap_or(Targets::ELSEWHERE)).collect();
            ScoreRequest { targets, ..request.clone() }
        };
        let own: Vec<ScoreRequest> = requests.iter().map(own).collect();
        let logits = self.own_logits(backend, last);
        let parts = B::Family::score_part(backend, logits, held.len(), &own);
        let shifted = |(id, logit): (u32, f32)| (id + held.start as u32, logit);
        let mine: Vec<PartMessage> = parts
            .into_iter()
            .map(|ScorePart { sum, targets, topk }| {
                ((sum.max, sum.sum), targets, topk.into_iter().map(shifted).collect())
            })
            .collect();
        let all = ranks.all_of(mine);
        requests.iter().enumerate().map(|(at, request)| merged(request, &all, at)).collect()
    }

    /// Logits of all tokens.
    fn logits(&mut self, backend: &B, last: LastRows<'_, B>) -> Logits<'_, B> {
        let model = &last.weights.model;
        let c = &model.config;
        if model.shares_vocabulary() {
            self.own_logits(backend, last);
        }
        let rows = self.rows;
        let whole = self.whole.get_or_insert_with(|| backend.alloc(rows, c.vocab_size));
        match &self.own {
            Some(own) => B::Family::gather_logits(backend, own, last.x.rows(), &model.tensor_ranks, whole),
            None => last.project(backend, whole),
        }
        Logits { rows: whole, part: c.vocab_rows() }
    }

    /// Logits of this rank's tokens, in the first columns.
    fn own_logits(&mut self, backend: &B, last: LastRows<'_, B>) -> &B::Rows {
        let columns = last.weights.model.config.vocab_rows();
        let rows = self.rows;
        let own = self.own.get_or_insert_with(|| backend.alloc(rows, columns));
        last.project(backend, own);
        own
    }
}

impl<B: Backend> LastRows<'_, B> {
    /// Logits of the unembedding that is here, written to the first rows of `out`.
    fn project(&self, backend: &B, out: &mut B::Rows) {
        let Self { weights, x, groups } = *self;
        let hidden = weights.head_lhs(backend, x);
        let lora = unembedding_segments(groups, &[]);
        backend.linear(&weights.head(&lora), &hidden, None, out);
    }
}

/// One row's results on one rank: the terms of its log-sum-exp, logits of its targets, and the most likely tokens with
/// their logits.
type PartMessage = ((f32, f32), Vec<f32>, Vec<(u32, f32)>);

/// The scores of request `at`, merged from the results of all ranks.
fn merged(request: &ScoreRequest, all: &[Vec<PartMessage>], at: usize) -> RowScores {
    let of = || all.iter().filter_map(|rank| rank.get(at));
    let lse = LogSum::of(of().map(|((max, sum), ..)| LogSum { max: *max, sum: *sum })).value();
    let target = |index: usize| of().fold(-0.0, |sum, (_, targets, _)| sum + targets[index]) - lse;
    // Of each rank the best ones, best first, ties by lowest token: as of all tokens.
    let mut topk: Vec<(u32, f32)> = of().flat_map(|(.., topk)| topk.iter().copied()).collect();
    topk.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    topk.truncate(request.topk);
    RowScores {
        targets: (0..request.targets.len()).map(target).collect(),
        topk: topk.into_iter().map(|(id, logit)| (id, logit - lse)).collect(),
        alternatives: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::topk;

    #[test]
    fn the_most_likely_tokens_of_parts_are_those_of_all() {
        // With equal logits in several parts, and one that is not a number.
        let mut logits: Vec<f32> = (0..40).map(|i| ((i * 13) % 7) as f32).collect();
        logits[11] = f32::NAN;
        logits[12] = -0.0;
        for (part, count) in [(10, 3), (16, 20), (20, 40), (7, 9)] {
            let request = ScoreRequest { row: 0, targets: vec![5, 39], topk: count, alternatives: None };
            let of = |(index, logits): (usize, &[f32])| {
                let first = (index * part) as u32;
                let target = |id: &u32| id.checked_sub(first).and_then(|id| logits.get(id as usize)).copied();
                let targets = request.targets.iter().map(|id| target(id).unwrap_or(-0.0)).collect();
                let best = topk(logits, count).into_iter().map(|(id, logit)| (id + first, logit)).collect();
                vec![((0.0, 1.0), targets, best)]
            };
            let all: Vec<Vec<PartMessage>> = logits.chunks(part).enumerate().map(of).collect();
            // So that nothing is subtracted.
            let lse = LogSum::of(all.iter().map(|_| LogSum { max: 0.0, sum: 1.0 })).value();
            let scores = merged(&request, &all, 0);
            let expected: Vec<_> = topk(&logits, count).into_iter().map(|(id, logit)| (id, logit - lse)).collect();
            assert_eq!(scores.topk, expected, "parts of {part}");
            assert_eq!(scores.targets, [logits[5] - lse, logits[39] - lse]);
        }
    }
}
