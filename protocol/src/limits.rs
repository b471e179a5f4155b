//! Limits that more than one crate enforces or reports.

/// `ttl_seconds` of a checkpoint: one hour at least.
pub const MIN_TTL_SECONDS: i64 = 3_600;
/// `ttl_seconds` of a checkpoint: ten years at most.
pub const MAX_TTL_SECONDS: i64 = 315_360_000;
/// Samples that one request may ask for.
pub const MAX_NUM_SAMPLES: u32 = 1_024;
/// Candidates per position that one request may ask for.
pub const MAX_TOPK_LOGPROBS: u32 = 1_024;
/// Candidates that one request may come to hold for its sampled tokens; see [`sampled_candidates`].
pub const MAX_SAMPLED_CANDIDATES: u64 = 1 << 26;
/// Largest LoRA rank.
pub const MAX_LORA_RANK: u32 = 4_096;
/// LoRA scale is `LORA_ALPHA / rank`.
pub const LORA_ALPHA: f32 = 32.0;
/// Datums in one `forward_backward` request.
pub const MAX_DATUMS: usize = 65_536;
/// Columns of `target_tokens` and `target_prompt_logprobs`, whatever the vocabulary; see [`max_targets`].
pub const MAX_TARGETS: usize = 1_024;
/// Columns of `target_tokens` and `target_prompt_logprobs` that cost as much as a token; see [`scored_tokens`].
pub const TARGETS_PER_TOKEN: u64 = 64;
/// Chunks of one input; as many provenance spans of one example.
pub const MAX_CHUNKS: usize = 16_384;
/// Inputs of the loss function of one example.
pub const MAX_LOSS_INPUTS: usize = 64;
/// Settings of the loss function in one request.
pub const MAX_LOSS_SETTINGS: usize = 1_024;
/// Chunks, loss inputs and provenance spans of one `forward_backward` request together.
pub const MAX_PARTS: usize = 524_288;
/// Stop token ids in one request.
pub const MAX_STOP_TOKENS: usize = 1_024;
/// Stop strings in one request.
pub const MAX_STOP_STRINGS: usize = 64;
/// Bytes of one stop string.
pub const MAX_STOP_STRING_BYTES: usize = 1_024;
/// Lowest temperature but 0, so that logits divided by it stay finite; lower ones mean greedy decoding.
pub const MIN_TEMPERATURE: f32 = 1e-6;

/// Targets of one position for a model of this vocabulary, at most.
pub fn max_targets(vocab_size: usize) -> usize {
    vocab_size.min(MAX_TARGETS)
}

/// Candidates of a request whose sequences get `max_tokens` tokens each, with `topk` candidates beside each token.
pub fn sampled_candidates(num_samples: u32, max_tokens: usize, topk: u32) -> u64 {
    u64::from(num_samples).saturating_mul(max_tokens as u64).saturating_mul(u64::from(topk))
}

/// What so many tokens cost of which each has so many targets: the targets count from the [`TARGETS_PER_TOKEN`]th on.
pub fn scored_tokens(tokens: u64, targets: u64) -> u64 {
    tokens.max(tokens.saturating_mul(targets).div_ceil(TARGETS_PER_TOKEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_cost_beyond_a_tokens_worth() {
        assert_eq!([0, 1, 64, 65, 1_024].map(|targets| scored_tokens(10, targets)), [10, 10, 10, 11, 160]);
        assert_eq!(scored_tokens(u64::MAX, 2), u64::MAX);
    }

    #[test]
    fn candidates_are_counted_without_overflow() {
        assert_eq!(sampled_candidates(1_024, 64, 1_024), MAX_SAMPLED_CANDIDATES);
        assert_eq!(sampled_candidates(u32::MAX, usize::MAX, 2), u64::MAX);
    }

    #[test]
    fn a_small_vocabulary_has_fewer_targets() {
        assert_eq!([0, 512, 50_000].map(max_targets), [0, 512, MAX_TARGETS]);
    }
}
