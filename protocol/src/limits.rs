//! Limits that more than one crate enforces or reports.

use crate::OpError;

/// Smallest `ttl_seconds` of a checkpoint: one hour.
pub const MIN_TTL_SECONDS: i64 = 3_600;
/// Largest `ttl_seconds` of a checkpoint: ten years.
pub const MAX_TTL_SECONDS: i64 = 315_360_000;
/// Maximum number of bytes of an `x-idempotency-key`; clients send a UUID with a prefix.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 256;
/// Maximum number of entries of a `user_metadata`.
pub const MAX_METADATA_ENTRIES: usize = 256;
/// Maximum number of bytes of a key of a `user_metadata`.
pub const MAX_METADATA_KEY_BYTES: usize = 256;
/// Maximum number of bytes of a value of a `user_metadata`, as JSON.
pub const MAX_METADATA_VALUE_BYTES: usize = 16_384;
/// Maximum total bytes of a `user_metadata`: of its keys, and of its values as JSON.
pub const MAX_METADATA_BYTES: usize = 65_536;
/// Maximum total bytes of a session's tags.
pub const MAX_TAG_BYTES: usize = 65_536;
/// Maximum number of tags of a session.
pub const MAX_TAGS: usize = 256;
/// Maximum number of bytes of a tag, and of other short texts of a session: names, versions, reasons.
pub const MAX_TEXT_BYTES: usize = 4_096;
/// Maximum number of samples that one request may ask for.
pub const MAX_NUM_SAMPLES: u32 = 1_024;
/// Maximum number of candidates per position that one request may ask for.
pub const MAX_TOPK_LOGPROBS: u32 = 1_024;
/// Maximum number of candidates that one request may hold, for its sampled tokens and for its prompt; see
/// [`check_candidates`].
pub const MAX_CANDIDATES: u64 = 1 << 22;
/// Largest rank of a LoRA adapter.
pub const MAX_LORA_RANK: u32 = 4_096;
/// Numerator of the scale of adapters that do not set another, which is `LORA_ALPHA / rank`.
pub const LORA_ALPHA: f32 = 32.0;
/// Maximum number of datums in one `forward_backward` request.
pub const MAX_DATUMS: usize = 65_536;
/// Maximum number of columns of `target_tokens` and `target_prompt_logprobs`, whatever the vocabulary; see
/// [`max_targets`].
pub const MAX_TARGETS: usize = 1_024;
/// Number of columns of `target_tokens` and `target_prompt_logprobs` that cost as much as a token; see
/// [`scored_tokens`].
pub const TARGETS_PER_TOKEN: u64 = 64;
/// Maximum number of chunks of one input, and of provenance spans of one example.
pub const MAX_CHUNKS: usize = 16_384;
/// Maximum number of images of one request, unless the server is configured otherwise.
pub const MAX_IMAGES: usize = 1_024;
/// Maximum number of pixels of the different images of one request, unless the server is configured otherwise.
pub const MAX_IMAGE_PIXELS: u64 = 1 << 28;
/// Maximum number of inputs of the loss function of one example.
pub const MAX_LOSS_INPUTS: usize = 64;
/// Maximum number of settings of the loss function in one request.
pub const MAX_LOSS_SETTINGS: usize = 1_024;
/// Maximum number of chunks, loss inputs and provenance spans of one `forward_backward` request together.
pub const MAX_PARTS: usize = 524_288;
/// Maximum number of stop token ids in one request.
pub const MAX_STOP_TOKENS: usize = 1_024;
/// Maximum number of stop strings in one request.
pub const MAX_STOP_STRINGS: usize = 64;
/// Maximum number of bytes of one stop string.
pub const MAX_STOP_STRING_BYTES: usize = 1_024;
/// Maximum number of tokens of a `logit_bias`.
pub const MAX_LOGIT_BIASES: usize = 1_024;
/// Largest bias of a token's logit; the lowest is its negative.
pub const MAX_LOGIT_BIAS: f32 = 100.0;
/// Largest presence and frequency penalty; the lowest is its negative.
pub const MAX_PENALTY: f32 = 2.0;
/// Largest repetition penalty of a request.
pub const MAX_REPETITION_PENALTY: f32 = 100.0;
/// Maximum number of bytes of a `json_schema`.
pub const MAX_SCHEMA_BYTES: usize = 32_768;
/// Maximum number of values in a `json_schema`, nested ones included.
pub const MAX_SCHEMA_VALUES: usize = 2_048;
/// Lowest temperature except 0, so that logits divided by it stay finite; lower ones mean greedy decoding.
pub const MIN_TEMPERATURE: f32 = 1e-6;

/// Returns the maximum number of targets of one position for a model of this vocabulary.
pub fn max_targets(vocab_size: usize) -> usize {
    vocab_size.min(MAX_TARGETS)
}

/// Checks the number of datums of a training request.
///
/// # Errors
/// A user error, for none and for more than [`MAX_DATUMS`].
pub fn check_datums(count: usize) -> Result<(), OpError> {
    match count {
        0 => Err(OpError::user("data: at least one datum is required")),
        1..=MAX_DATUMS => Ok(()),
        _ => Err(OpError::user(format!("data: {count} datums, at most {MAX_DATUMS} are allowed"))),
    }
}

/// Refuses more targets per position than [`max_targets`]. The error is a text to append to the field's name.
pub fn check_targets(columns: u64, vocab_size: usize) -> Result<(), String> {
    let most = max_targets(vocab_size);
    if columns <= most as u64 { Ok(()) } else { Err(format!("{columns} columns, at most {most} are allowed")) }
}

/// Refuses a sample whose result would contain more candidates than [`MAX_CANDIDATES`], which stay in memory until it
/// ends: `topk_sample` for each of the `max_tokens` tokens of every sequence, and `topk_prompt` for each token of the
/// prompt.
pub fn check_candidates(
    num_samples: u32,
    max_tokens: usize,
    topk_sample: u32,
    prompt: usize,
    topk_prompt: u32,
) -> Result<(), OpError> {
    let candidates = |counts: [u64; 3]| counts.into_iter().fold(1, u64::saturating_mul);
    if candidates([num_samples.into(), max_tokens as u64, topk_sample.into()]) > MAX_CANDIDATES {
        return Err(OpError::user(format!(
            "num_samples * max_tokens * topk_sample_logprobs: {num_samples} * {max_tokens} * {topk_sample} is more than \
             {MAX_CANDIDATES}"
        )));
    }
    if candidates([1, prompt as u64, topk_prompt.into()]) > MAX_CANDIDATES {
        return Err(OpError::user(format!(
            "prompt tokens * topk_prompt_logprobs: {prompt} * {topk_prompt} is more than {MAX_CANDIDATES}"
        )));
    }
    Ok(())
}

/// Returns the cost, in tokens, of `tokens` tokens with `targets` targets each under a custom loss, where a target
/// costs as much as a token.
pub fn custom_loss_tokens(tokens: u64, targets: u64) -> u64 {
    tokens.saturating_mul(targets.max(1))
}

/// Returns the cost, in tokens, of `tokens` tokens with `targets` targets each: targets count from the
/// [`TARGETS_PER_TOKEN`]th on.
pub fn scored_tokens(tokens: u64, targets: u64) -> u64 {
    tokens.max(tokens.saturating_mul(targets).div_ceil(TARGETS_PER_TOKEN))
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
