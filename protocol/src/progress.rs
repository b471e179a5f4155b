//! Tokens of samples in progress.

use serde::{Deserialize, Serialize};

use crate::{SampledSequence, StopReason, TopkLogprobs};

/// Consecutive tokens of one sequence of a sample, in the form of its final result. Executing a sample again gives the
/// same tokens, so indices stay valid after a worker is replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleProgress {
    /// Index of the sequence in the result.
    pub sequence: usize,
    /// Index of the first of these tokens in the sequence.
    pub first_index: usize,
    /// Token ids, at least one.
    pub tokens: Vec<u32>,
    /// Log-probabilities, one per token, as in [`SampledSequence::logprobs`].
    pub logprobs: Vec<f32>,
    /// Candidates per token, if the request asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk: Option<TopkLogprobs>,
    /// Set when the sequence ended with the last of these tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<StopReason>,
}

impl SampleProgress {
    /// Returns the index behind the last of these tokens.
    pub fn end_index(&self) -> usize {
        self.first_index.saturating_add(self.tokens.len())
    }

    /// Returns the part from index `from` on, or `None` if it is empty. Arrays of different lengths give `None` too.
    pub fn starting_at(mut self, from: usize) -> Option<Self> {
        let known = from.saturating_sub(self.first_index);
        let tokens = self.tokens.len();
        let whole = self.logprobs.len() == tokens && self.topk.as_ref().is_none_or(|topk| topk.has_rows(tokens));
        if known >= tokens || !whole {
            return None;
        }
        self.first_index += known;
        self.tokens.drain(..known);
        self.logprobs.drain(..known);
        if let Some(topk) = &mut self.topk {
            topk.token_ids.drain(..known * topk.k);
            topk.logprobs.drain(..known * topk.k);
        }
        Some(self)
    }
}

impl SampleProgress {
    /// Returns the part before index `to`.
    pub fn ending_at(mut self, to: usize) -> Self {
        let tokens = to.saturating_sub(self.first_index);
        if tokens < self.tokens.len() {
            self.tokens.truncate(tokens);
            self.logprobs.truncate(tokens);
            if let Some(topk) = &mut self.topk {
                topk.token_ids.truncate(tokens.saturating_mul(topk.k));
                topk.logprobs.truncate(tokens.saturating_mul(topk.k));
            }
            self.end = None;
        }
        self
    }
}

impl TopkLogprobs {
    fn has_rows(&self, rows: usize) -> bool {
        let cells = rows.checked_mul(self.k);
        cells == Some(self.token_ids.len()) && cells == Some(self.logprobs.len())
    }
}

impl SampledSequence {
    /// Returns the tokens of sequence `sequence` from index `from` on, or `None` if there are none.
    pub fn progress_from(&self, sequence: usize, from: usize) -> Option<SampleProgress> {
        let rows = |topk: &TopkLogprobs| TopkLogprobs {
            k: topk.k,
            token_ids: topk.token_ids.get(from.saturating_mul(topk.k)..).unwrap_or_default().to_vec(),
            logprobs: topk.logprobs.get(from.saturating_mul(topk.k)..).unwrap_or_default().to_vec(),
        };
        let tokens = self.tokens.get(from..).filter(|tokens| !tokens.is_empty())?.to_vec();
        Some(SampleProgress {
            sequence,
            first_index: from,
            tokens,
            logprobs: self.logprobs.get(from..).unwrap_or_default().to_vec(),
            topk: self.topk.as_ref().map(rows),
            end: Some(self.stop_reason),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn sequence() -> SampledSequence {
        SampledSequence {
            stop_reason: StopReason::Stop,
            tokens: vec![5, 6, 7],
            logprobs: vec![-0.5, -0.25, -0.125],
            topk: Some(TopkLogprobs { k: 2, token_ids: (0..6).collect(), logprobs: vec![-1.0; 6] }),
        }
    }

    #[test]
    fn parts_of_a_sequence_begin_where_asked() {
        let all = sequence().progress_from(3, 0).unwrap();
        assert_eq!((all.first_index, all.end_index(), all.end), (0, 3, Some(StopReason::Stop)));
        for from in 0..3 {
            let part = sequence().progress_from(3, from).unwrap();
            assert_eq!(all.clone().starting_at(from).as_ref(), Some(&part));
            assert_eq!(part.topk.unwrap().token_ids, (2 * from as u32..6).collect::<Vec<_>>());
        }
        let head = all.clone().ending_at(2);
        assert_eq!(
            (head.tokens.as_slice(), head.end, head.topk.map(|topk| topk.token_ids.len())),
            (&[5, 6][..], None, Some(4))
        );
        assert_eq!(all.clone().ending_at(3), all);
        assert_eq!(sequence().progress_from(3, 3), None);
        assert_eq!(all.starting_at(3), None);
    }

    #[test]
    fn what_contradicts_itself_is_nothing() {
        let mut bad = sequence().progress_from(0, 0).unwrap();
        bad.logprobs.pop();
        assert_eq!(bad.starting_at(0), None);
        let mut bad = sequence().progress_from(0, 0).unwrap();
        bad.topk = Some(TopkLogprobs { k: usize::MAX, token_ids: vec![1], logprobs: vec![0.0] });
        assert_eq!(bad.starting_at(1), None);
    }

    #[test]
    fn json_keeps_every_bit() {
        let mut progress = sequence().progress_from(0, 1).unwrap();
        progress.logprobs = vec![-1.000_000_1, f32::from_bits(0x8000_0001)];
        let text = serde_json::to_string(&progress).unwrap();
        let back: SampleProgress = serde_json::from_str(&text).unwrap();
        assert_eq!(back.logprobs.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0xbf80_0001, 0x8000_0001]);
        assert_eq!(back, progress);
    }
}
