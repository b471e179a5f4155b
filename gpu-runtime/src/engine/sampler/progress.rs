//! Known progress of a sequence that another replica samples.

use trainyard_protocol::{SampleProgress, StopReason, TopkLogprobs};

/// Tokens that the sequence has so far.
#[derive(Default)]
pub(super) struct SequenceProgress {
    tokens: Vec<u32>,
    logprobs: Vec<f32>,
    /// Candidates per token, if the request asked for them.
    topk: Option<TopkLogprobs>,
    end: Option<StopReason>,
}

impl SequenceProgress {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Appends what follows the tokens so far.
    pub(super) fn extend(&mut self, next: SampleProgress) {
        if next.first_index != self.tokens.len() {
            return;
        }
        self.tokens.extend(next.tokens);
        self.logprobs.extend(next.logprobs);
        self.end = next.end;
        match (&mut self.topk, next.topk) {
            (Some(held), Some(next)) => {
                held.token_ids.extend(next.token_ids);
                held.logprobs.extend(next.logprobs);
            }
            (held, next) => *held = held.take().or(next),
        }
    }

    /// Tokens from index `from` on, if there are any; `sequence` is the index of the sequence.
    pub(super) fn since(&self, sequence: usize, from: usize) -> Option<SampleProgress> {
        let tokens = self.tokens.get(from..).filter(|tokens| !tokens.is_empty())?;
        let topk = self.topk.as_ref().map(|topk| TopkLogprobs {
            k: topk.k,
            token_ids: topk.token_ids.get(from * topk.k..).unwrap_or_default().to_vec(),
            logprobs: topk.logprobs.get(from * topk.k..).unwrap_or_default().to_vec(),
        });
        let logprobs = self.logprobs.get(from..).unwrap_or_default().to_vec();
        Some(SampleProgress { sequence, first_index: from, tokens: tokens.to_vec(), logprobs, topk, end: self.end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first_index: usize, tokens: &[u32], end: Option<StopReason>) -> SampleProgress {
        let logprobs = tokens.iter().map(|token| -(*token as f32)).collect();
        let topk = TopkLogprobs { k: 2, token_ids: tokens.repeat(2), logprobs: vec![0.5; 2 * tokens.len()] };
        SampleProgress { sequence: 3, first_index, tokens: tokens.to_vec(), logprobs, topk: Some(topk), end }
    }

    #[test]
    fn parts_follow_each_other() {
        let mut progress = SequenceProgress::default();
        progress.extend(part(0, &[7], None));
        progress.extend(part(1, &[8], None));
        // Sampled again after a fault: known already.
        progress.extend(part(1, &[8], None));
        progress.extend(part(2, &[9], Some(StopReason::Stop)));
        assert_eq!(progress.since(3, 2), Some(part(2, &[9], Some(StopReason::Stop))));
        let all = progress.since(3, 0).unwrap_or(part(0, &[], None));
        assert_eq!((all.tokens, all.logprobs), (vec![7, 8, 9], vec![-7.0, -8.0, -9.0]));
        assert_eq!(progress.since(3, 3), None);
    }
}
