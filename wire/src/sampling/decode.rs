//! Reads stored results of samples, for endpoints that answer in another form.

use bytes::Bytes;
use prost::Message;
use trainyard_protocol::{SampledSequence, StopReason, TopkLogprobs};

use super::super::proto;
use super::super::results::ResultError;

/// Result of a sample, without `target_prompt_logprobs` and `prompt_alt_tokens`.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleOutput {
    /// Sequences in the order of the request's sequence ids.
    pub sequences: Vec<SampledSequence>,
    /// Log-probabilities of the prompt, one per token; NaN for the first one.
    pub prompt_logprobs: Option<Vec<f32>>,
    /// Candidates for the tokens of the prompt; row 0 has none.
    pub topk_prompt_logprobs: Option<TopkLogprobs>,
    /// Number of prompt tokens that the prefix cache served.
    pub prompt_cache_hit_tokens: u32,
}

/// Reads bytes that [`encode_result`](super::encode_result) wrote.
///
/// # Errors
///
/// An error if the bytes are not such a result.
pub fn decode_result(payload: &Bytes) -> Result<SampleOutput, ResultError> {
    let response = proto::SampleResponse::decode(payload.clone())?;
    Ok(SampleOutput {
        sequences: response.sequences.iter().map(sequence).collect::<Result<_, _>>()?,
        prompt_logprobs: response
            .prompt_logprobs
            .as_deref()
            .map(|bytes| floats("prompt_logprobs", bytes))
            .transpose()?,
        topk_prompt_logprobs: response.topk_prompt_logprobs.as_ref().map(topk).transpose()?,
        prompt_cache_hit_tokens: u32::try_from(response.prompt_cache_hit_tokens).unwrap_or(0),
    })
}

fn sequence(found: &proto::SampledSequence) -> Result<SampledSequence, ResultError> {
    let stop_reason = match found.stop_reason() {
        proto::StopReason::Stop => StopReason::Stop,
        proto::StopReason::Length => StopReason::Length,
    };
    let tokens = ids("tokens", &found.tokens)?;
    let logprobs = floats("logprobs", found.logprobs.as_deref().unwrap_or_default())?;
    if logprobs.len() != tokens.len() {
        return Err(ResultError::Content("logprobs"));
    }
    let topk = found.topk_sampled_logprobs.as_ref().map(topk).transpose()?;
    if topk.as_ref().is_some_and(|topk| topk.token_ids.len() != topk.k.saturating_mul(tokens.len())) {
        return Err(ResultError::Content("topk_sampled_logprobs"));
    }
    Ok(SampledSequence { stop_reason, tokens, logprobs, topk })
}

fn topk(rows: &proto::TopkLogprobs) -> Result<TopkLogprobs, ResultError> {
    let (token_ids, logprobs) = (ids("token_ids", &rows.token_ids)?, floats("topk_logprobs", &rows.logprobs)?);
    if token_ids.len() != logprobs.len() {
        return Err(ResultError::Content("topk_logprobs"));
    }
    Ok(TopkLogprobs { k: rows.k as usize, token_ids, logprobs })
}

fn words<'a>(part: &'static str, bytes: &'a [u8]) -> Result<impl Iterator<Item = [u8; 4]> + 'a, ResultError> {
    match bytes.as_chunks::<4>() {
        (words, []) => Ok(words.iter().copied()),
        _ => Err(ResultError::Content(part)),
    }
}

fn ids(part: &'static str, bytes: &[u8]) -> Result<Vec<u32>, ResultError> {
    Ok(words(part, bytes)?.map(u32::from_le_bytes).collect())
}

fn floats(part: &'static str, bytes: &[u8]) -> Result<Vec<f32>, ResultError> {
    Ok(words(part, bytes)?.map(f32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::SampleResult;

    use super::super::{ComputedWith, encode_result};
    use super::*;

    fn result() -> SampleResult {
        let topk = |rows: usize| TopkLogprobs { k: 2, token_ids: vec![7; 2 * rows], logprobs: vec![-1.5; 2 * rows] };
        let sequence = |stop_reason, tokens: Vec<u32>| SampledSequence {
            stop_reason,
            logprobs: vec![-0.25; tokens.len()],
            topk: Some(topk(tokens.len())),
            tokens,
        };
        SampleResult {
            sequences: vec![sequence(StopReason::Stop, vec![1, 2]), sequence(StopReason::Length, vec![3])],
            prompt_logprobs: Some(vec![0.0, -2.0]),
            topk_prompt_logprobs: Some(topk(2)),
            target_prompt_logprobs: None,
            prompt_alt_tokens: None,
            prompt_cache_hit_tokens: 5,
        }
    }

    #[test]
    fn results_are_read_as_written() {
        let written = result();
        let read = decode_result(&encode_result(&written, None, ComputedWith::default())).unwrap();
        assert_eq!(read.sequences, written.sequences);
        assert_eq!(read.prompt_logprobs, written.prompt_logprobs);
        assert_eq!(read.topk_prompt_logprobs, written.topk_prompt_logprobs);
        assert_eq!(read.prompt_cache_hit_tokens, 5);
    }

    #[test]
    fn contradictions_are_errors() {
        let response =
            || proto::SampleResponse::decode(encode_result(&result(), None, ComputedWith::default())).unwrap();
        let refused = |response: proto::SampleResponse| decode_result(&response.encode_to_vec().into()).is_err();
        assert!(!refused(response()));
        let mut bad = response();
        bad.sequences[0].tokens = Bytes::from_static(&[1, 2, 3]);
        assert!(refused(bad));
        let mut bad = response();
        bad.sequences[0].logprobs = None;
        assert!(refused(bad));
        let mut bad = response();
        bad.sequences[1].topk_sampled_logprobs.as_mut().unwrap().k = 1 << 31;
        assert!(refused(bad));
        assert!(decode_result(&Bytes::from_static(b"\xff")).is_err());
    }
}
