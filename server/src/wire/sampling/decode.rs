//! Stored results of samples, read for those who answer in other forms than the store's.

use bytes::Bytes;
use prost::Message;
use trainyard_protocol::{SampleResult, SampledSequence, StopReason, TopkLogprobs};

use super::super::proto;
use super::super::results::ResultError;

/// Reads a result that [`encode_result`](super::encode_result) wrote; scores of targets and alternative tokens are left
/// out.
///
/// # Errors
/// When the bytes are no result.
pub fn decode_result(payload: &Bytes) -> Result<SampleResult, ResultError> {
    let response = proto::SampleResponse::decode(payload.clone())?;
    Ok(SampleResult {
        sequences: response.sequences.iter().map(sequence).collect::<Result<_, _>>()?,
        prompt_logprobs: response.prompt_logprobs.as_deref().map(floats),
        topk_prompt_logprobs: response.topk_prompt_logprobs.as_ref().map(topk).transpose()?,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        prompt_cache_hit_tokens: u32::try_from(response.prompt_cache_hit_tokens).unwrap_or(0),
    })
}

fn sequence(sequence: &proto::SampledSequence) -> Result<SampledSequence, ResultError> {
    let stop_reason = match sequence.stop_reason() {
        proto::StopReason::Stop => StopReason::Stop,
        proto::StopReason::Length => StopReason::Length,
    };
    let tokens = ids(&sequence.tokens);
    let logprobs = sequence.logprobs.as_deref().map(floats).unwrap_or_default();
    if logprobs.len() != tokens.len() {
        return Err(ResultError::Content("logprobs"));
    }
    let topk = sequence.topk_sampled_logprobs.as_ref().map(topk).transpose()?;
    Ok(SampledSequence { stop_reason, tokens, logprobs, topk })
}

fn topk(rows: &proto::TopkLogprobs) -> Result<TopkLogprobs, ResultError> {
    let (k, token_ids, logprobs) = (rows.k as usize, ids(&rows.token_ids), floats(&rows.logprobs));
    if token_ids.len() != logprobs.len() || token_ids.len() != k.saturating_mul(rows.length as usize) {
        return Err(ResultError::Content("topk_logprobs"));
    }
    Ok(TopkLogprobs { k, token_ids, logprobs })
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

fn ids(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
