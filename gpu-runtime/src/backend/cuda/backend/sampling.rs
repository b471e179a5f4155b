//! Tokens and log-probabilities from rows of logits.

use super::Cuda;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::logits::{sample_tokens, score};
use crate::backend::{Logits, RowScores, SampledToken, ScoreRequest, TokenRequest};

impl Cuda {
    /// Tokens of a part of a log-sum-exp: the chunks of the loss head, so that log-probabilities of both have the same bits.
    fn part(&self, logits: &Logits<'_, Self>) -> usize {
        logits.part.min(self.chunk)
    }

    pub(super) fn sample_each(
        &self,
        logits: &Logits<'_, Self>,
        requests: &[TokenRequest<'_>],
    ) -> Result<Vec<SampledToken>> {
        sample_tokens(&self.device, logits.rows, self.part(logits), requests)
    }

    pub(super) fn score_each(&self, logits: &Logits<'_, Self>, requests: &[ScoreRequest]) -> Result<Vec<RowScores>> {
        score(&self.device, logits.rows, self.part(logits), requests)
    }
}
