//! Checks of sampled tokens and of tokens' scores.

use super::access::{HostAccess, Numbers, Results};
use crate::{Logits, SamplingRule, ScoreRequest, TokenRequest};

/// Samples with each cut, and the most likely token.
pub(super) fn samples<B: HostAccess>(b: &B, vocab: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let logits: Vec<f32> = n.take(3 * vocab).into_iter().map(|x| 6.0 * x).collect();
    let logits = b.rows(&logits, vocab);
    let plain = SamplingRule { temperature: 1.0, min_p: 0.0, top_k: None, top_p: 1.0, u: 0.37, changes: None };
    let rules = [
        plain,
        SamplingRule { temperature: 0.0, ..plain },
        SamplingRule { temperature: 0.7, top_k: Some(5), ..plain },
        SamplingRule { top_p: 0.8, u: 0.91, ..plain },
        SamplingRule { min_p: 0.2, u: 0.05, ..plain },
    ];
    let requests: Vec<_> =
        rules.into_iter().enumerate().map(|(i, rule)| TokenRequest { row: i % 3, rule, report: 4 }).collect();
    let sampled = b.sample(&Logits { rows: &logits, part: vocab }, &requests);
    let topk = || sampled.iter().flat_map(|sample| sample.topk.iter());
    vec![
        ("tokens", sampled.iter().map(|sample| sample.token as f32).collect()),
        ("logprobs", sampled.iter().map(|sample| sample.logprob).collect()),
        ("top-k tokens", topk().map(|(token, _)| *token as f32).collect()),
        ("top-k logprobs", topk().map(|(_, logprob)| *logprob).collect()),
    ]
}

/// Scores of targets, the most likely tokens, and alternatives.
pub(super) fn scores<B: HostAccess>(b: &B, vocab: usize, seed: u64) -> Results {
    let logits = b.rows(&Numbers(seed).take(3 * vocab), vocab);
    let request = |row: usize| {
        let targets = vec![row as u32, (vocab - 1) as u32];
        ScoreRequest { row, targets, topk: 5, alternatives: (row > 0).then(|| (0.8, vec![0.1, 0.6])) }
    };
    let scored = b.score(&Logits { rows: &logits, part: vocab }, &[request(2), request(0)]);
    let pairs = || scored.iter().flat_map(|row| row.topk.iter().chain(&row.alternatives));
    vec![
        ("targets", scored.iter().flat_map(|row| row.targets.clone()).collect()),
        ("tokens", pairs().map(|(token, _)| *token as f32).collect()),
        ("logprobs", pairs().map(|(_, logprob)| *logprob).collect()),
    ]
}
